"""Tools of agents: operations of the contract with fewer parameters, compact schemas and short answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

from ebb.contract.decay import HELD
from ebb.contract.documents import UPLOAD
from ebb.contract.facts import EDIT, REMEMBER, STORE
from ebb.contract.faults import faults, show
from ebb.contract.graph import LINK, RELATE
from ebb.contract.operation import Operation
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL
from ebb.contract.reports import FACTS, STATS
from ebb.contract.retention import FORGET, FORGOTTEN, HISTORY, REINFORCE, RESTORE, USED
from ebb.contract.values import Whole, parsed
from mcp.types import Tool as Listed
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.requests import Request

from api.client import Client
from api.mcp import answers
from api.transport import Answer
from workers.errors import InvalidInputError

Scope: TypeAlias = Literal["read", "write"]
Given: TypeAlias = dict[str, Any]

Few = Annotated[int, Field(ge=1, le=100), Whole]
"""A number of facts, limited to save tokens."""

MOST_UNKNOWN = 5
"""Maximum number of unknown arguments named in an error."""

KEPT = ("type", "enum")
"""The keywords of a parameter's schema; bounds and formats are stated in errors."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The client of a caller, and whether it may write, so that its recalls count as use."""

    client: Client
    writes: bool = True


Opener: TypeAlias = Callable[[Request | None, Scope], Opened]
"""Returns the memory for a call, given its HTTP request, if any, and scope; raises an `EbbError` if it is refused."""


def perform(memory: Opened, operation: Operation, given: Given) -> Answer:
    """Perform the operation unchanged."""
    return memory.client.perform(operation, given)


@dataclass(frozen=True)
class Tool:
    """A tool with the parameters `names` of its operation, in order.

    `types` and `defaults` replace those of the contract; `words` are descriptions of parameters whose names are not
    enough. Of `any_of` one is needed. `act` performs the operation, `shown` shortens the answer.
    """

    name: str
    operation: Operation
    description: str
    names: str = ""
    types: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    any_of: str = ""
    act: Callable[[Opened, Operation, Given], Answer] = perform
    shown: Callable[[Answer], Answer] = answers.whole
    destroys: bool = False

    @property
    def scope(self) -> Scope:
        """Return the scope that a call of it needs."""
        return "read" if self.operation.scope == "read" else "write"

    @cached_property
    def params(self) -> type[BaseModel]:
        """Return the model of its arguments."""
        own = self.operation.params.model_fields
        fields = {name: self._field(own[name], name) for name in self.names.split()}
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)  # type: ignore[call-overload]  # fields of several types

    @cached_property
    def listed(self) -> Listed:
        """Return the tool's description for clients."""
        schema = self.params.model_json_schema()
        properties = {name: self._compact(name, one) for name, one in schema["properties"].items()}
        required = {"required": schema["required"]} if "required" in schema else {}
        if self.scope == "read":
            hints = ToolAnnotations(read_only_hint=True)
        else:
            hints = ToolAnnotations(destructive_hint=self.destroys)
        return Listed(
            name=self.name,
            description=self.description,
            input_schema={"type": "object", "properties": properties, **required},
            annotations=hints,
        )

    def run(self, open_: Callable[[Scope], Opened], arguments: Mapping[str, Any]) -> Answer:
        """Call the tool on the memory opened for its scope.

        Raises:
            EbbError: the arguments are invalid, the caller is refused, or the operation fails.
        """
        given = self._checked(arguments)
        memory = open_(self.scope)
        return self.shown(self.act(memory, self.operation, given))

    def _checked(self, arguments: Mapping[str, Any]) -> Given:
        """Return arguments as JSON, and the tool's own defaults; null is the same as left out."""
        self._check_names(arguments)
        parsed = {name: self._parsed(name, value) for name, value in arguments.items()}
        said = {name: value for name, value in parsed.items() if value is not None}
        try:
            given = self.params.model_validate(said).model_dump(mode="json")
        except ValidationError as error:
            raise InvalidInputError(faults(error)) from None
        any_of = self.any_of.split()
        if any_of and said.keys().isdisjoint(any_of):
            raise InvalidInputError(f"give any of {', '.join(any_of)}.")
        if self.operation.clears:  # a blank value removes the one that there is
            return {name: given[name] for name in said}
        fields = self.operation.params.model_fields
        return {
            name: value
            for name, value in given.items()
            if value is not None and (name in said or value != fields[name].default)
        }

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        known = self.params.model_fields
        if unknown := [name for name in arguments if name not in known]:
            names = ", ".join(show(name)[1:-1] for name in unknown[:MOST_UNKNOWN])
            raise InvalidInputError(f"{names}: unknown; `{self.name}` takes {', '.join(known) or 'nothing'}.")

    def _parsed(self, name: str, value: Any) -> Any:
        """Parse a list, number or flag that an agent gave as JSON text; return other values unchanged."""
        is_text = self.listed.input_schema["properties"][name]["type"] == "string"
        return value if is_text or not isinstance(value, str) else parsed(value)

    def _field(self, own: Any, name: str) -> tuple[Any, Any]:
        kind = self.types.get(name, Annotated[own.annotation, *own.metadata] if own.metadata else own.annotation)
        default = self.defaults.get(name, ... if own.is_required() else own.default)
        return (kind if default is ... else kind | None if name in self.types else kind, default)

    def _compact(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
        kept = {part: choices[0][part] for part in KEPT if part in choices[0]}
        inner = choices[0].get("items")
        items = {} if inner is None else {"items": {"type": inner.get("type", "object")}}
        return kept | items | ({"description": self.words[name]} if name in self.words else {})


FILTERS = "tag kind role entity session source"
SUBJECT = "ids entity tag source session query"
SELECTION = "ids since reason run"
CHANGES = "tags category entity key value importance confidence decay_class valid_until"
FEW: Mapping[str, Any] = {"limit": Few}
PAGE: Mapping[str, Any] = {"limit": 20}
TAGS: Mapping[str, Any] = {"tags": list[str]}
"""A plain list, without the contract's alternatives."""

AS_ELSEWHERE = {"decay_class": str, "kind": str, "reason": str, "role": str}
"""The values are listed in another tool's schema and in errors, to save tokens."""


def asked(memory: Opened, operation: Operation, given: Given) -> Answer:
    """Ask a question, which counts as use if the caller may write."""
    return memory.client.perform(operation, given | {"touch": memory.writes})


def forgotten(memory: Opened, operation: Operation, given: Given) -> Answer:
    """List forgotten facts; those forgotten on request only if the caller may write."""
    return memory.client.perform(operation, given | {"asked": memory.writes})


def forget(memory: Opened, operation: Operation, given: Given) -> Answer:
    """Forget facts by ids at once, or by subject, which is a preview by default."""
    return perform(memory, operation, given if "ids" in given else {"dry_run": True, **given})


TOOLS = (
    Tool(
        "recall",
        RECALL,
        "Search memory before answering what earlier sessions may know. `deep` counts faded facts that fit better.",
        f"query limit min_relevance {FILTERS} as_of known_as_of deep why",
        types=FEW,
        words={
            "min_relevance": "0 to 1, 0: all",
            "as_of": "true then, ISO 8601",
            "known_as_of": "stored by then",
            "why": "id: why (not) found",
        },
        act=asked,
        shown=answers.found,
    ),
    Tool(
        "lookup",
        LOOKUP,
        "Facts about an exact name, or one key of it. `cursor`: earlier `next`.",
        "entity key as_of limit cursor",
        types=FEW,
        defaults=PAGE,
        act=asked,
        shown=answers.found,
    ),
    Tool(
        "context",
        CONTEXT,
        "Fitting facts as text for a prompt; do not store it.",
        "query max_tokens min_relevance kind deep",
        types={**FEW, **AS_ELSEWHERE},
        act=asked,
        shown=answers.injected,
    ),
    Tool(
        "list",
        FACTS,
        "Facts by ids or filters, newest first.",
        f"ids {FILTERS} pinned limit cursor",
        types={**FEW, **AS_ELSEWHERE},
        defaults=PAGE,
        shown=answers.facts,
    ),
    Tool("history", HISTORY, "Events of a fact, also a forgotten one.", "id", shown=answers.history),
    Tool("stats", STATS, "Counts of facts."),
    Tool(
        "store",
        STORE,
        "Remember one statement, clear without context (names, no pronouns). If it replaces a fact, give that id as "
        "`supersedes`. Action `forgotten`: its owner wanted that gone; `again` only if they ask.",
        "text entity key value tags category importance decay_class source_date valid_from valid_until supersedes "
        "again",
        types=TAGS,
        words={
            "entity": "who or what it is about",
            "key": "e.g. phone",
            "importance": "0 to 1",
            "decay_class": "days unused: stable 90, normal 14, short 2, session 1",
            "source_date": "when said",
        },
        act=lambda memory, _, given: memory.client.store(**given),  # with an id, so that a retry stores nothing twice
        shown=answers.stored,
    ),
    Tool(
        "remember",
        REMEMBER,
        "Store a conversation; known messages are skipped.",
        "messages session",
        types={"messages": list[Any]},
        words={"messages": "role, content"},
        shown=answers.remembered,
    ),
    Tool("upload", UPLOAD, "Store a Markdown file; replaces that of its path.", "path text", destroys=True),
    Tool(
        "update",
        EDIT,
        "Change fields. Text no longer true: `store` with `supersedes`.",
        f"id {CHANGES}",
        types={**TAGS, **AS_ELSEWHERE},
        any_of=CHANGES,
        shown=answers.stored,
    ),
    Tool("link", LINK, "Link facts: recalling one finds the other.", "source target type"),
    Tool("relate", RELATE, "Relate entities: Mira works_on Ebb.", "source type target last_observed"),
    Tool("reinforce", REINFORCE, "Strengthen a fact that proved true.", "id"),
    Tool("used", USED, "Facts that your answer used last longer.", "ids"),
    Tool(
        "forget",
        FORGET,
        "Forget on request: ids, or all of a subject; preview first, then `dry_run` false.",
        f"{SUBJECT} dry_run",
        any_of=SUBJECT,
        act=forget,
        shown=answers.forgot,
        destroys=True,
    ),
    Tool(
        "forgotten",
        FORGOTTEN,
        "Forgotten facts and why.",
        "since reason run limit cursor",
        types=FEW,
        defaults=PAGE,
        act=forgotten,
        shown=answers.facts,
    ),
    Tool(
        "restore",
        RESTORE,
        "Restore forgotten or superseded facts by ids or what matches; requests only by ids or reason.",
        SELECTION,
        types=AS_ELSEWHERE,
        any_of=SELECTION,
        act=lambda memory, _, given: memory.client.restore(**given),
    ),
    Tool(
        "held",
        HELD,
        "Ended facts kept as too many would go: `reinforce` or `forget`.",
        "limit cursor",
        types=FEW,
        defaults=PAGE,
        shown=answers.facts,
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}
