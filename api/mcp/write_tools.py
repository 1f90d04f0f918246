"""Tools by which an agent changes what is remembered."""

from typing import Any

from ebb.contract.conversation import REMEMBER
from ebb.contract.facts import EDIT, STORE
from ebb.contract.graph import LINK, RELATE
from ebb.contract.retention import FORGET, REINFORCE, RESTORE, USED

from api.mcp.tool import Call, brief, removes, tool_of, writes, written
from api.transport import Answer

STATEMENT = (
    "text tags category entity key value importance decay_class role source source_date valid_from valid_until "
    "supersedes again"
)
FIELDS = "id tags category entity key value importance confidence decay_class source role valid_until"
TAGS = {"tags": list[str] | None}
"""Agents give lists."""

LIFETIMES = (
    "How long it matters: permanent; stable or durable 90 days, normal or active 14 days, from "
    "each use; from each statement only: short 2 days, session 24 hours, ephemeral or checkpoint 4 hours. In "
    "the last quarter confidence halves every hour, so a fact that is never used ends soon after its begin: "
    "stable after 67 days. Left out: by its words. `ends_at` says when."
)


@tool_of(
    STORE,
    STATEMENT,
    types=TAGS,
    words={
        "text": "One statement, clear without its context: names, no pronouns.",
        "tags": "Topics, to find it by.",
        "decay_class": LIFETIMES,
        "again": "Even though it was forgotten on request before.",
    },
)
def store(call: Call, given: dict[str, Any]) -> Answer:
    """Remember one fact for later sessions: who people are, what they prefer, what was decided and why.

    Returns {"id", "action", "decay_class", "class_reason", "ends_at", "ends_for"}: when it ends unless it is used, and
    why. `added`; `duplicate` of the fact with that id, which is strengthened; `updated` where it took the place of
    `supersedes`, or changed what `changed` names of a known fact; `ignored` names what was left out; `forgotten` where
    its owner wished that forgotten: then nothing is stored, and `again` is for when they say so.
    """
    answer: Answer = brief(written(call).store(**given))
    return answer


@tool_of(REMEMBER, "messages session", types={"messages": list[Any]})
def remember(call: Call, given: dict[str, Any]) -> Answer:
    """Store the messages of a conversation as turns, so that later sessions recall what was said.

    All of a conversation may be given each time. Returns {"added", "known", "errors"}: how many turns are new.
    """
    answer = written(call).remember(**given)
    errors = [one["error"] for one in answer["turns"] if "error" in one]
    return {"added": answer["added"], "known": len(answer["turns"]) - answer["added"] - len(errors), "errors": errors}


@tool_of(EDIT, FIELDS, types=TAGS, words={"decay_class": "How long it matters, as for `store`."})
def update(call: Call, given: dict[str, Any]) -> Answer:
    """Change what a fact says beside its text, such as how long it matters; what is left out stays.

    Returns {"id", "action", "changed", "decay_class", "ends_at", "ends_for"}. A text that is not true any more is
    better stored again with `supersedes`.
    """
    answer: Answer = brief(written(call).edit(**given))
    return answer


@tool_of(LINK, "source target type strength")
def link(call: Call, given: dict[str, Any]) -> Answer:
    """Link two facts, so that recall of one finds the other too. Linking again changes the strength.

    Returns {"id", "source", "target", "type", "strength"}.
    """
    return written(call).perform(LINK, given)


@tool_of(RELATE, "source type target weight pinned")
def relate(call: Call, given: dict[str, Any]) -> Answer:
    """Record that an entity is related to another, such as Mira works_on Ebb; each observation renews it.

    Returns {"from", "to", "type", "weight", "lastObserved"}; the weight halves every 90 days unless observed again.
    """
    return written(call).perform(RELATE, given)


@tool_of(REINFORCE, "id boost")
def reinforce(call: Call, given: dict[str, Any]) -> Answer:
    """Strengthen a fact that proved true or useful, so that it fades later. Recalled facts are strengthened anyway.

    Returns {"id", "salience"}, the strength from 0 to 1.
    """
    return written(call).reinforce(**given)


@tool_of(USED, "ids")
def used(call: Call, given: dict[str, Any]) -> Answer:
    """Say which recalled facts your answer really used: these are strengthened once more and confirmed.

    Returns {"used": [ids], "unknown": [ids]}: `unknown` are those that are not here, or not any more.
    """
    return written(call).used(**given)


@tool_of(FORGET, "ids")
def forget(call: Call, given: dict[str, Any]) -> Answer:
    """Forget facts because their owner asks for it. They can be restored for a while, and are not stored again.

    Returns {"results": [{"id", "action"}]}: `forgotten`, `unchanged` if it was already, `unknown` if there is no such
    fact here. What only changed is better stored again with `supersedes`.
    """
    answer: Answer = brief(written(call).forget(**given))
    return answer


@tool_of(RESTORE, "ids since until reason run")
def restore(call: Call, given: dict[str, Any]) -> Answer:
    """Restore facts that were forgotten or superseded: by ids, or all that were forgotten in a time or by a run.

    Ask `forgotten` first to see which these are. What was forgotten on request comes back only by its id or with
    `reason`. Returns {"results": [{"id", "action"}]}: `restored`, `unchanged` if it is there, or an `error`; without
    ids {"restored", "pinned", "refused"}, how many. A fact that ended twice by itself is pinned when restored again.
    """
    answer: Answer = brief(written(call).restore(**given))
    return answer


TOOLS = (
    writes(store),
    writes(remember),
    writes(update),
    writes(link),
    writes(relate),
    writes(reinforce),
    writes(used),
    removes(forget),
    writes(restore),
)
