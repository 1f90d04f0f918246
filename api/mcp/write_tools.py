"""Tools by which an agent changes what is remembered."""

from typing import TYPE_CHECKING, Annotated

from ebb.contract.values import DecayClass
from pydantic import Field

from api.mcp.tool import (
    Call,
    ForgottenFor,
    Id,
    Ids,
    Run,
    Since,
    Until,
    brief,
    given,
    removes,
    writes,
    written,
)
from api.transport import Answer

if TYPE_CHECKING:
    from api.given import EditFields, FactFields

Entity = Annotated[str, Field(description="A person, project or thing, by its name.")]


def store(
    call: Call,
    text: Annotated[str, Field(description="One statement, clear without its context: names, no pronouns.")],
    tags: Annotated[list[str] | None, Field(description="Topics, to find it by.")] = None,
    category: Annotated[str | None, Field(description="Such as preference, decision or fact.")] = None,
    entity: Annotated[str | None, Field(description="Whom or what it is about.")] = None,
    key: Annotated[str | None, Field(description="Which of the entity's properties, such as phone.")] = None,
    value: Annotated[str | None, Field(description="That property's value.")] = None,
    importance: Annotated[float | None, Field(description="0 to 1; 0.5 if left out.", ge=0, le=1)] = None,
    decay_class: Annotated[
        DecayClass | None,
        Field(
            description="How long it matters: permanent; stable or durable 90 days, normal or active 14 days, from "
            "each use; from each statement only: short 2 days, session 24 hours, ephemeral or checkpoint 4 hours. In "
            "the last quarter confidence halves every hour, so a fact that is never used ends soon after its begin: "
            "stable after 67 days. Left out: by its words. `ends_at` says when."
        ),
    ] = None,
    source: Annotated[str | None, Field(description="Where it comes from.")] = None,
    source_date: Annotated[str | None, Field(description="When it was said, ISO 8601 with zone, or a date.")] = None,
    supersedes: Annotated[str | None, Field(description="The id of the fact that this one replaces.")] = None,
    again: Annotated[bool, Field(description="Even though it was forgotten on request before.")] = False,
) -> Answer:
    """Remember one fact for later sessions: who people are, what they prefer, what was decided and why.

    Returns {"id", "action", "decay_class", "class_reason", "ends_at", "ends_for"}: when it ends unless it is used, and
    why. `added`; `duplicate` of the fact with that id, which is strengthened; `updated` where it took the place of
    `supersedes`, or changed what `changed` names of a known fact; `ignored` names what was left out; `forgotten` where
    its owner wished that forgotten: then nothing is stored, and `again` is for when they say so.
    """
    fact: FactFields = given(  # type: ignore[assignment]  # of the names of these parameters
        tags=tags, category=category, entity=entity, key=key, value=value, importance=importance,
        decay_class=decay_class, source=source, source_date=source_date, supersedes=supersedes, again=again or None,
    )  # fmt: skip
    answer: Answer = brief(written(call).store(text, **fact))
    return answer


def update(
    call: Call,
    id: Id,  # noqa: A002 - the contract's name
    tags: Annotated[list[str] | None, Field(description="All tags that it shall have.")] = None,
    category: Annotated[str | None, Field(description="Such as preference, decision or fact.")] = None,
    entity: Annotated[str | None, Field(description="Whom or what it is about.")] = None,
    key: Annotated[str | None, Field(description="Which of the entity's properties, such as phone.")] = None,
    value: Annotated[str | None, Field(description="That property's value.")] = None,
    importance: Annotated[float | None, Field(description="0 to 1.", ge=0, le=1)] = None,
    confidence: Annotated[float | None, Field(description="How sure it is, 0 to 1.", ge=0, le=1)] = None,
    decay_class: Annotated[DecayClass | None, Field(description="How long it matters, as for `store`.")] = None,
    source: Annotated[str | None, Field(description="Where it comes from.")] = None,
) -> Answer:
    """Change what a fact says beside its text, such as how long it matters; what is left out stays.

    Returns {"id", "action", "changed", "decay_class", "ends_at", "ends_for"}. A text that is not true any more is
    better stored again with `supersedes`.
    """
    changes: EditFields = given(  # type: ignore[assignment]  # of the names of these parameters
        tags=tags, category=category, entity=entity, key=key, value=value, importance=importance,
        confidence=confidence, decay_class=decay_class, source=source,
    )  # fmt: skip
    answer: Answer = brief(written(call).edit(id, **changes))
    return answer


def link(
    call: Call,
    source: Id,
    target: Id,
    type: Annotated[  # noqa: A002 - the contract's name
        str, Field(description="SUPERSEDES, CAUSED_BY, PART_OF, RELATED_TO or DEPENDS_ON, from source to target.")
    ],
    strength: Annotated[float, Field(description="How close they are.", ge=0, le=1)] = 1.0,
) -> Answer:
    """Link two facts, so that whoever recalls one is shown the other too. Linking again changes the strength.

    Returns {"id", "source", "target", "type", "strength"}.
    """
    return written(call).link(source, target, type, strength)


def relate(
    call: Call,
    source: Entity,
    type: Annotated[str, Field(description="What it has to do with the target, such as works_on or knows.")],  # noqa: A002
    target: Entity,
    weight: Annotated[float | None, Field(description="How sure; 1 if left out.", ge=0, le=1)] = None,
    pinned: Annotated[bool | None, Field(description="Whether it never fades; left out: as it was.")] = None,
) -> Answer:
    """Note that an entity has to do with another, such as Mira works_on Ebb; each observation renews it.

    Returns {"from", "to", "type", "weight", "lastObserved"}; the weight halves every 90 days unless observed again.
    """
    return written(call).relate(source, target, type, weight=weight, pinned=pinned)


def reinforce(
    call: Call,
    id: Id,  # noqa: A002 - the contract's name
    boost: Annotated[float, Field(description="How much stronger.", gt=0, le=1)] = 0.2,
) -> Answer:
    """Strengthen a fact that proved true or useful, so that it fades later. Recalled facts are strengthened anyway.

    Returns {"id", "salience"}, the strength from 0 to 1.
    """
    return written(call).reinforce(id, boost)


def forget(call: Call, ids: Ids) -> Answer:
    """Forget facts because their owner asks for it. They can be restored for a while, and are not stored again.

    Returns {"results": [{"id", "action"}]}: `forgotten`, `unchanged` if it was already, `unknown` if there is no such
    fact here. What only changed is better stored anew with `supersedes`.
    """
    answer: Answer = brief(written(call).forget(ids))
    return answer


def restore(
    call: Call,
    ids: Annotated[list[str] | None, Field(description="Ids, as forgotten gives them; else which facts.")] = None,
    since: Since = None,
    until: Until = None,
    reason: ForgottenFor = None,
    run: Run = None,
) -> Answer:
    """Bring back facts that were forgotten or superseded: by ids, or all that were forgotten in a time or by a run.

    Ask `forgotten` first to see which these are. What was forgotten on request comes back only by its id or with
    `reason`. Returns {"results": [{"id", "action"}]}: `restored`, `unchanged` if it is there, or an `error`; without
    ids {"restored", "pinned", "refused"}, how many. A fact that ended twice by itself is pinned when restored again.
    """
    chosen = given(ids=ids, since=since, until=until, reason=reason, run=run)
    answer: Answer = brief(written(call).restore(**chosen))
    return answer


TOOLS = (
    writes(store),
    writes(update),
    writes(link),
    writes(relate),
    writes(reinforce),
    removes(forget),
    writes(restore),
)
