"""Operations of retention: reinforce, pin, forget, restore and history."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from ebb.contract.operation import EXAMPLE_ID, LONG_SECONDS, Answer, Page, Scoped, Timed, examples, reads, writes
from ebb.contract.values import (
    MOST_FACTS,
    Cursor,
    FactId,
    FactIds,
    Flag,
    Instant,
    Limit,
    ListLimit,
    Name,
    Reason,
    Session,
    Tag,
    Text,
    Whole,
    not_blank,
)

Id = Annotated[FactId, Field(description="the fact's id, as storing it answered", examples=[EXAMPLE_ID])]
Ids = Annotated[FactIds, Field(min_length=1, max_length=MOST_FACTS, description="the facts' ids")]


class Reinforce(Timed):
    """Strengthen a fact that proved true or useful, and confirm it, so that it fades later."""

    model_config = examples({"boost": 0.2})

    id: Id
    boost: Annotated[float, Field(gt=0, le=1), Whole] = Field(
        default=0.2, description="how much stronger, above 0 and up to 1"
    )


class Use(Timed):
    """Report which recalled facts were really used; these are strengthened once more and confirmed."""

    model_config = examples({"ids": [EXAMPLE_ID]})

    ids: Ids


class Pin(Timed):
    """Pin a fact without end or until an instant: it neither fades nor ends."""

    model_config = examples({"until": "2027-06-01T00:00:00Z"}, {})

    id: Id
    until: Instant | None = Field(default=None, description="only until then, ISO 8601 with zone or a date")
    off: Flag = Field(default=False, description="end the pin: it fades on from now")

    @model_validator(mode="after")
    def _until_or_off(self) -> Self:
        if self.off and self.until is not None:
            raise ValueError("until: cannot be given together with `off`, which ends the pin now")
        return self


class Forget(Timed):
    """Forget facts because their owner asks for it: by ids, or all that fit a subject, also superseded and ended ones.

    Until they are purged, they can be restored, all of them by the `run` of the answer.
    """

    model_config = examples({"ids": ["01a1fd56-1f4b-7b0c-9c8e-3d5f0a7b2c11"]})

    ids: Ids | None = None
    purge: Flag = Field(default=False, description="erase them at once, for good")
    entity: Name | None = Field(default=None, description="what is about this person or thing, in any case")
    key: Name | None = Field(default=None, description="what is about this property, in any case")
    tag: Tag | None = Field(default=None, description="what has this tag")
    category: Name | None = Field(default=None, description="what is of this category")
    session: Session | None = Field(default=None, description="what is from this conversation")
    source: Name | None = Field(default=None, description="what is from this source")
    query: Annotated[Text, AfterValidator(not_blank)] | None = Field(
        default=None, description="what contains all of these words, in any form"
    )
    dry_run: Flag = Field(default=False, description="only count what fits a subject, and show the first")

    @property
    def subject(self) -> dict[str, Any]:
        """Return the criteria of the subject by name."""
        return {name: one for name in SUBJECT if (one := getattr(self, name)) is not None}

    @model_validator(mode="after")
    def _ids_or_subject(self) -> Self:
        if (self.ids is None) != bool(self.subject) or (self.dry_run and self.ids is not None):
            raise ValueError(f"give either ids, or any of {', '.join(SUBJECT)}, to which dry_run belongs")
        return self


SUBJECT = ("entity", "key", "tag", "category", "session", "source", "query")
"""The criteria of forgetting by subject."""


class Selection(Scoped):
    """A selection of forgotten facts by time, reason and run."""

    since: Instant | None = Field(
        default=None, description="forgotten at this instant or later, ISO 8601 with zone or a date"
    )
    until: Instant | None = Field(default=None, description="forgotten before this instant")
    reason: Reason | None = Field(
        default=None,
        description="forgotten for this reason; asked is a request, the others ended it without one",
    )
    run: UUID | None = Field(default=None, description="forgotten by this run, whose id `forgotten` shows")


class ListForgotten(Selection):
    """Return forgotten facts that can be restored, newest first, each with its reason and the run that forgot it."""

    limit: Limit = Field(default=100, description="how many at most")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")
    asked: Flag = Field(default=True, description="also what was forgotten on request")


class Restore(Selection, Timed):
    """Restore facts by their ids, or all that were forgotten in a period, for a reason or by a run.

    A time or a run alone matches what ended by itself; give `reason` for what was forgotten on request. What ended by
    itself and is restored again is pinned. Interrupted, it continues when it is asked again.
    """

    model_config = examples({"since": "2026-11-22T12:00:00Z", "dry_run": True}, {"ids": [EXAMPLE_ID]})

    ids: Annotated[FactIds, Field(min_length=1, max_length=MOST_FACTS)] | None = Field(
        default=None, description="the facts' ids; else which ones, by the others"
    )
    dry_run: Flag = Field(default=False, description="only count what matches")

    @property
    def selects(self) -> bool:
        """Return whether it selects facts by other criteria than ids."""
        return any(one is not None for one in (self.since, self.until, self.reason, self.run))

    @model_validator(mode="after")
    def _ids_or_selection(self) -> Self:
        if self.selects == (self.ids is not None) or (self.dry_run and not self.selects):
            raise ValueError("ids: give either ids, or any of since, until, reason and run, which may be a dry run")
        return self


class ShowHistory(Timed):
    """Return the events of a fact, live or forgotten, oldest first."""

    id: Id
    limit: ListLimit | None = Field(default=None, description="how many events at most; else all")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")
    links: Flag = Field(default=True, description="also its links, of which there may be very many")


class Reinforced(Answer):
    """The current strength of a fact, from 0 to 1."""

    id: UUID
    salience: float


class Used(Answer):
    """The facts whose use counts, and the ids that are unknown or not live."""

    used: list[UUID]
    unknown: list[UUID]


class Pinned(Answer):
    """Whether a fact is pinned, and until when; null means without end."""

    id: UUID
    action: str = Field(description="pinned, unpinned or unchanged")
    pinned: bool
    until: datetime | None


class Outcome(Answer):
    """The outcome of a fact to forget or restore; for a forgotten one, since when and why."""

    id: UUID
    action: str = Field(
        description="forgotten, purged, restored, unchanged, unknown, refused, kept, or in a dry run matching"
    )
    error: str | None = Field(default=None, description="why it was refused")
    text: str | None = Field(default=None, description="the beginning of its text, if a subject was forgotten")
    forgotten_at: datetime | None = None
    reason: str | None = None
    pinned: bool = Field(
        default=False, description="restored for the second time, so that it does not end by itself any more"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_action(cls, given: Any) -> Any:
        """Add the action, which older workers leave out of refused facts and of dry runs."""
        if isinstance(given, dict) and "action" not in given:
            return given | {"action": "refused" if "error" in given else "matching"}
        return given


class Forgot(Answer):
    """The outcome of each fact, in order; for a subject, of the first hundred, with a receipt."""

    results: list[Outcome]
    matching: int | None = Field(default=None, description="how many facts fitted the subject")
    done: int | None = Field(default=None, description="how many of them were forgotten or erased")
    kept: int | None = Field(
        default=None, description="of a session, how many only left it, as they were also said elsewhere"
    )
    left: bool | None = Field(default=None, description="whether time ran out before the last of them; ask again")
    run: UUID | None = Field(default=None, description="by which those that were forgotten can be restored")
    at: datetime | None = Field(default=None, description="when they were forgotten")


class Restored(Answer):
    """The outcome of each id, or the numbers of outcomes of the matching facts."""

    results: list[Outcome] | None = None
    matching: int | None = None
    restored: int | None = None
    pinned: int | None = Field(
        default=None, description="those restored for the second time, which do not end by themselves"
    )
    unchanged: int | None = Field(default=None, description="those that were live already")
    refused: int | None = None
    errors: list[Outcome] | None = Field(default=None, description="the first that were refused")


class ForgottenFact(Answer):
    """A forgotten fact: the reason, time and run, and until when it can be restored."""

    id: UUID
    text: str
    kind: str
    reason: str
    forgotten_at: datetime
    run: UUID | None = None
    restorable_until: datetime | None = None


class Forgotten(Page):
    """Forgotten facts that can be restored, newest first."""

    facts: list[ForgottenFact]


class Event(Answer):
    """An event of a fact, with its time and details."""

    at: datetime
    what: str
    details: dict[str, Any]


class History(Page):
    """A fact with its state and its events, oldest first."""

    id: UUID
    text: str
    state: str
    pinned: bool = False
    pinned_until: datetime | None = None
    ends_at: datetime | None = None
    ends_for: str | None = None
    held: bool = Field(default=False, description="whether it has ended but stays visible because of the forget limit")
    events: list[Event]


REINFORCE = writes("memory.reinforce", Reinforce, Reinforced, "POST /memory/facts/{id}/reinforce")
USED = writes("memory.used", Use, Used, "POST /memory/used")
PIN = writes("memory.pin", Pin, Pinned, "POST /memory/facts/{id}/pin")
FORGET = writes("memory.forget", Forget, Forgot, "POST /memory/forget")
RESTORE = writes("memory.restore", Restore, Restored, "POST /memory/restore", LONG_SECONDS)
FORGOTTEN = reads("memory.forgotten", ListForgotten, Forgotten, "GET /memory/forgotten")
HISTORY = reads("memory.history", ShowHistory, History, "GET /memory/facts/{id}/history")
