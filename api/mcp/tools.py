"""The tools that agents have, each an operation of the contract."""

from collections.abc import Mapping
from typing import Any

from ebb.contract.conversation import REMEMBER
from ebb.contract.decay import HELD
from ebb.contract.documents import UPLOAD
from ebb.contract.facts import EDIT, STORE
from ebb.contract.graph import LINK, RELATE
from ebb.contract.operation import Operation
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL
from ebb.contract.reports import FACTS, STATS
from ebb.contract.retention import FORGET, FORGOTTEN, HISTORY, REINFORCE, RESTORE, USED

from api.mcp import answers
from api.mcp.tool import Few, Given, Opened, Tool, perform
from api.transport import Answer

FILTERS = "tag kind role entity session source"
FEW: Mapping[str, Any] = {"limit": Few}
PAGE: Mapping[str, Any] = {"limit": 20}
TAGS: Mapping[str, Any] = {"tags": list[str]}
"""A plain list, without the contract's alternatives."""

AS_ELSEWHERE = {"decay_class": str, "kind": str, "reason": str, "role": str}
"""The values are listed in another tool's schema and in errors, to save tokens."""


def asked(memory: Opened, operation: Operation, given: Given) -> Answer:
    """Ask a question, which counts as use if the caller may write."""
    return memory.client.perform(operation, given | {"touch": memory.touches})


def forgotten(memory: Opened, operation: Operation, given: Given) -> Answer:
    """List forgotten facts; those forgotten on request only if the caller may write."""
    return memory.client.perform(operation, given | {"asked": memory.writes})


def store(memory: Opened, _: Operation, given: Given) -> Answer:
    """Store a fact with an id, which makes retries idempotent."""
    return memory.client.store(**given)


def edit(memory: Opened, _: Operation, given: Given) -> Answer:
    """Change fields of a fact."""
    return memory.client.edit(**given)


def forget(memory: Opened, operation: Operation, given: Given) -> Answer:
    """Forget facts by ids at once, or by subject, which is a preview by default."""
    return perform(memory, operation, {**given, "dry_run": False} if "ids" in given else given)


def restore(memory: Opened, _: Operation, given: Given) -> Answer:
    """Restore facts."""
    return memory.client.restore(**given)


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
        shown=answers.recalled,
    ),
    Tool(
        "lookup",
        LOOKUP,
        "Facts about an exact name, or one key of it. `cursor`: earlier `next`.",
        "entity key as_of limit cursor",
        types=FEW,
        defaults=PAGE,
        act=asked,
        shown=answers.looked_up,
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
    Tool("history", HISTORY, "Events of a fact, also a forgotten one.", "id"),
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
        act=store,
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
        "id tags category entity key value importance confidence decay_class valid_until",
        types={**TAGS, **AS_ELSEWHERE},
        act=edit,
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
        "ids entity tag source session query dry_run",
        defaults={"dry_run": True},
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
        shown=answers.facts,
    ),
    Tool(
        "restore",
        RESTORE,
        "Restore forgotten or superseded facts by ids or what matches; requests only by ids or reason.",
        "ids since reason run",
        types=AS_ELSEWHERE,
        act=restore,
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
