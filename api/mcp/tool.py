"""Tools: operations of the contract with fewer parameters, compact schemas and short answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

from ebb.contract.faults import faults, show
from ebb.contract.operation import Operation
from mcp.types import Tool as Listed
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.requests import Request

from api.client import Client
from api.mcp.answers import whole
from api.transport import Answer
from workers.errors import InvalidInputError

Scope: TypeAlias = Literal["read", "write"]
Given: TypeAlias = dict[str, Any]

Few = Annotated[int, Field(ge=1, le=100)]
"""A number of facts, limited to save tokens."""

MOST_UNKNOWN = 5
"""Maximum number of unknown arguments named in an error."""

KEPT = ("type", "enum")
"""The keywords of a parameter's schema; bounds and formats are stated in errors."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The client of a caller, whether its recalls count as use, and whether it may write."""

    client: Client
    touches: bool = True
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
    enough. `act` performs the operation, `shown` shortens the answer.
    """

    name: str
    operation: Operation
    description: str
    names: str = ""
    types: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    act: Callable[[Opened, Operation, Given], Answer] = perform
    shown: Callable[[Answer], Answer] = whole
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
        made: type[BaseModel] = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)  # type: ignore[call-overload]
        return made

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
        """Return arguments as JSON, without those that equal the operation's defaults."""
        unknown = [name for name in arguments if name not in self.params.model_fields]
        if unknown:
            names = ", ".join(show(name)[1:-1] for name in unknown[:MOST_UNKNOWN])
            raise InvalidInputError(f"{names}: unknown; `{self.name}` takes {', '.join(self.params.model_fields)}.")
        said = {name: self._parsed(name, value) for name, value in arguments.items() if value is not None}
        try:
            given = self.params.model_validate(said).model_dump(mode="json")
        except ValidationError as error:
            raise InvalidInputError(faults(error)) from None
        fields = self.operation.params.model_fields
        return {name: value for name, value in given.items() if value not in (None, fields[name].default)}

    def _parsed(self, name: str, value: Any) -> Any:
        """Parse a list, number or flag that an agent gave as JSON text; return other values unchanged."""
        if not isinstance(value, str) or self.listed.input_schema["properties"][name]["type"] == "string":
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value

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
