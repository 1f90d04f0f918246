"""Tools that tell what is remembered."""

from typing import Annotated, Any

from ebb.contract.decay import HELD
from ebb.contract.operation import Operation
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL
from ebb.contract.reports import FACTS
from ebb.contract.retention import FORGOTTEN
from pydantic import Field

from api.mcp.tool import Call, brief, read, reads, tool_of
from api.transport import Answer

Limit = Annotated[int, Field(description="How many facts at most.", ge=1, le=100)]
Query = Annotated[str, Field(description="A question or topic in your own words.", min_length=1)]

FEW = {"limit": Annotated[int, Field(ge=1, le=100)]}
"""Each fact costs an agent tokens."""

FILTERS = "tag category kind role pinned entity key session source documents"
SHOWN = (
    "id", "text", "tier", "created_at", "source_date", "ends_at", "tags", "entity", "key", "value", "role", "session",
)  # fmt: skip
"""What an agent sees of a listed fact."""


@tool_of(RECALL, f"query limit min_relevance {FILTERS} as_of deep explain", types=FEW)
def recall(call: Call, given: dict[str, Any]) -> Answer:
    """Find what is remembered about a question, by words and by meaning. Use it before you answer from memory.

    Returns {"results": [{"id", "text", "score", "tier", "created_at", …}], "by_meaning"}, best first; nothing that fits
    is an empty list, where `deep` may say how many facts fit that ended by themselves: ask again with `deep` for those.
    Where `by_meaning` is false only words were matched: ask again in other words. Being recalled strengthens facts. For
    one property of a known person or thing `lookup` is surer, and to fill a prompt within a budget of tokens use
    `context`.
    """
    return {"results": [], **brief(_asked(call, RECALL, given))}


@tool_of(LOOKUP, "entity key tag as_of limit cursor", types=FEW, defaults={"limit": 20})
def lookup(call: Call, given: dict[str, Any]) -> Answer:
    """Return the facts about one person or thing by its name, or one property of it: exact, nothing is searched.

    Returns {"results": [{"id", "text", "confidence", "key", "value", …}]}, the most confident first, then the newest.
    Where there are more than `limit`, `cut` says so, and `next` is the cursor of those that follow.
    """
    answer = _asked(call, LOOKUP, given)
    return {"results": [], **brief(answer), **_cut(answer)}


def _asked(call: Call, operation: Operation, given: dict[str, Any]) -> Answer:
    """Ask a question, which counts as use if the caller may write."""
    memory = read(call)
    return memory.client.perform(operation, given | {"touch": memory.touches})


def _cut(answer: Answer) -> Answer:
    """Return what tells an agent that there is more than it was given."""
    if answer["next"] is None:
        return {}
    return {
        "cut": f"These are the first {len(answer['results'])}: there are more. Give `next` as `cursor`, or a `key`."
    }


@tool_of(CONTEXT, "query limit max_tokens order deep", types=FEW)
def context(call: Call, given: dict[str, Any]) -> Answer:
    """Return remembered facts as a block of text to put before a prompt, within a budget of tokens.

    Returns {"context", "tokens", "facts", "by_meaning"}; `context` is empty where nothing fits. Do not store its text
    again.
    """
    return {"facts": [], **brief(_asked(call, CONTEXT, given))}


@tool_of(FACTS, f"limit cursor {FILTERS}", types=FEW, defaults={"limit": 20})
def facts(call: Call, given: dict[str, Any]) -> Answer:
    """List facts without a question, the newest first: all, or those that pass the filters. This is not use.

    Returns {"facts": [{"id", "text", "tier", "created_at", …}], "next"}; give `next` as `cursor` for those that follow.
    """
    found = read(call).client.perform(FACTS, given)
    shown = [{name: one.get(name) for name in SHOWN} for one in found["facts"]]
    return {"facts": [], **brief({"facts": shown, "next": found["next"]})}


def stats(call: Call) -> Answer:
    """Return how much is remembered: facts by tier, fidelity and decay class, what is due, held, or contradictory.

    Use it to see whether memory is empty or needs care, not to find facts.
    """
    return read(call).client.stats()


@tool_of(FORGOTTEN, "since until reason run limit cursor", types=FEW, defaults={"limit": 20})
def forgotten(call: Call, given: dict[str, Any]) -> Answer:
    """List what was forgotten and can be restored, newest first, with its reason and until when; see `restore`.

    Returns {"facts": [{"id", "text", "reason", "forgotten_at", "run", "restorable_until"}], "next"}.
    """
    memory = read(call)
    return {"facts": [], **brief(memory.client.forgotten(**given, asked=memory.writes))}


@tool_of(HELD, "limit cursor", types=FEW, defaults={"limit": 10})
def held(call: Call, given: dict[str, Any]) -> Answer:
    """List facts that are over but stay visible, because too many would have been forgotten at once.

    Returns {"held": [{"id", "text", "reason", "ended_at", …}], "total", "next"}. Their owner decides: `reinforce` keeps
    one, `forget` lets it go.
    """
    return read(call).client.perform(HELD, given)


TOOLS = (reads(recall), reads(lookup), reads(context), reads(facts), reads(stats), reads(held), reads(forgotten))
