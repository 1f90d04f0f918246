"""Validation of archives: facts with their history and decay state, and the other records of a namespace."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from ebb.contract.facts import NewFact
from ebb.contract.faults import faults, show
from ebb.contract.graph import Entity, RelationType, check_two
from ebb.contract.values import (
    FIRST_INSTANT,
    LAST_INSTANT,
    MOST_TIMES,
    ArchivedReason,
    ClassSource,
    Count,
    DecayClass,
    Document,
    Flag,
    Instant,
    KeptInstant,
    KeptSession,
    Role,
    Share,
    Text,
    Times,
)
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from workers.core import decay_intervals
from workers.core.episodes import branch
from workers.core.hygiene import changed
from workers.errors import InvalidInputError
from workers.validation.facts import DERIVED, check_validity, stored_fact

Never = Literal["infinity"]
SPELLS = rf"^\\x(?:[0-9a-f]{{{2 * decay_intervals.PACKED.size}}}){{0,{decay_intervals.MOST}}}$"
"""Decay intervals as `core.decay_intervals` packs them, in hexadecimal."""

MOST_COUNTED = 2**53
"""Maximum number of uses that a history counts, and of turns that a namespace had: more are still to be added."""

Turns = Annotated[int, Field(ge=0, le=MOST_COUNTED)]

WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT")
LEAST_SHARE = 1e-37
"""The least positive share that is kept, above the least normal number of single precision."""

OUTER = ("namespace", "state", "events")


def _infinite(value: Any) -> Any:
    """Return None for PostgreSQL's `-infinity`."""
    return None if value == "-infinity" else value


def _bounded(value: Any) -> Any:
    """Return a counter within its bound, which a database may have exceeded."""
    return min(value, MOST_TIMES) if isinstance(value, int) and not isinstance(value, bool) else value


def _not_negative(value: Any) -> Any:
    """Return a lifetime of at least zero; earlier versions pinned held facts with less."""
    return max(value, 0.0) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _is_within(value: Any, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _not_tiny(value: float) -> float:
    """Return a share as single precision can hold it: PostgreSQL refuses smaller ones but 0."""
    return value if value >= LEAST_SHARE else 0.0


def _is_instant(value: Any) -> bool:
    """Return whether PostgreSQL reads a value as an instant, as it writes them in JSON."""
    if value in (None, "infinity", "-infinity"):
        return True
    try:
        return isinstance(value, str) and WRITTEN.match(value) is not None and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


ManyTimes = Annotated[Times, BeforeValidator(_bounded)]


ROUNDED = timedelta(seconds=1)
"""How far a computed expiry may be from that of an archive, which is rounded."""


class Strict(BaseModel):
    """A part of an archive that has no other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class State(Strict):
    """The anchor of a fact and its counters; derived values are not part of it."""

    base: Share
    coactivations: ManyTimes = 0
    last_seen_at: KeptInstant
    confidence: Share = 1.0
    last_confirmed_at: KeptInstant
    expires_at: KeptInstant | Never = "infinity"
    decay_class: DecayClass | None = None
    decay_class_source: ClassSource | None = None
    halvings: Annotated[int, Field(ge=0, lt=2**15)] = 0
    confirmations: ManyTimes = 0
    compared: bool = False
    recall_count: ManyTimes = 0
    last_accessed_at: Annotated[KeptInstant | None, BeforeValidator(_infinite)] = None
    spells: Annotated[str, Field(pattern=SPELLS)] | None = None
    held: bool = False
    stale: bool = False
    branch: Annotated[int, Field(ge=0, le=3)] = 0
    pinned_until: Annotated[KeptInstant | Never | None, BeforeValidator(_infinite)] = None
    kept_lifetime: Annotated[FiniteFloat, Field(ge=0), BeforeValidator(_not_negative)] | Never | None = None
    encoded_at: KeptInstant | None = None
    occurred: Turns | None = None
    outrun_at: KeptInstant | Never | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse a class without its source, and a source without a class."""
        if (self.decay_class is None) != (self.decay_class_source is None):
            raise ValueError("decay_class and decay_class_source go together; give both or none")
        return self

    def with_ttl(self, seconds: float) -> Self:
        """Return the state of an item with a lifetime of its own; earlier versions wrote that of its class."""
        used_at = max(self.last_confirmed_at, self.last_seen_at)
        decay_class = "durable" if self.decay_class == "permanent" else self.decay_class
        update: dict[str, Any] = {"decay_class": decay_class, "last_confirmed_at": used_at}
        if self.pinned_until == "infinity":
            return self.model_copy(update=update | {"kept_lifetime": seconds})
        since = max(used_at, self.pinned_until or used_at)
        expires_at = since + min(timedelta(seconds=seconds), LAST_INSTANT - since)
        if self.expires_at != "infinity" and self.expires_at < expires_at + ROUNDED:
            return self
        return self.model_copy(update=update | {"expires_at": expires_at})


class Event(Strict):
    """An event in the history of a fact."""

    at: Instant
    what: Annotated[Text, Field(max_length=128)]
    details: Document = {}

    @field_validator("details")
    @classmethod
    def _countable(cls, details: dict[str, Any], rest: ValidationInfo) -> dict[str, Any]:
        """Leave out what could not be computed with later: numbers of uses, lengths of time, ends of validity."""
        longest = (rest.data["at"] - FIRST_INSTANT).total_seconds() if "at" in rest.data else 0
        times, seconds = details.get("times"), details.get("seconds")
        right = {
            "times": isinstance(times, int) and _is_within(times, MOST_COUNTED),
            "seconds": _is_within(seconds, longest),
            "valid_until": _is_instant(details.get("valid_until")),
        }
        return {name: one for name, one in details.items() if right.get(name, True)}


class ArchivedEvent(Event):
    """An event that the line of its fact had no room for; the last one in that line is of the instant `after`."""

    fact: UUID
    after: Instant


class Validity(BaseModel):
    """When a fact was valid, what superseded it, and whether it was forgotten.

    `over` is true if it was not live any more, though no pass had forgotten it yet.
    Archives of earlier versions do not tell an estimated salience from a given one, which is never estimated again.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    valid_from: Instant
    valid_until: Instant | None = None
    superseded_at: Instant | None = None
    superseded_by: UUID | None = None
    supersedes_id: UUID | None = None
    forgotten_at: Instant | None = None
    forgotten_reason: ArchivedReason | None = None
    forgotten_by: UUID | None = None
    tombstone_at: Instant | None = None
    created_at: Instant
    content_salience: Annotated[Share, AfterValidator(_not_tiny)] | None = None
    salience_given: Flag = True
    over: Flag = False
    state: State
    events: list[Event] = []

    @property
    def ended(self) -> bool:
        """Return whether it was forgotten or superseded."""
        return self.forgotten_at is not None or self.superseded_at is not None

    @property
    def live(self) -> bool:
        """Return whether it was live when the archive was written."""
        return not self.ended and not self.over

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse a forgotten fact without its reason, and a reason without its instant."""
        if (self.forgotten_at is None) != (self.forgotten_reason is None):
            raise ValueError("forgotten_at and forgotten_reason go together; give both or none")
        return self


@dataclass(frozen=True, slots=True)
class ArchivedFact:
    """A fact in an archive."""

    id: UUID
    fact: NewFact
    past: Validity


class ArchivedLink(Strict):
    """A link between two facts."""

    source: UUID
    target: UUID
    type: Literal["SUPERSEDES", "UPDATES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"]
    strength: Share
    created_at: Instant

    @model_validator(mode="after")
    def _of_two(self) -> Self:
        if self.source == self.target:
            raise ValueError("target: is its source; a link is between two facts")
        return self


class Pair(Strict):
    """Two facts in the order of their ids."""

    fact: UUID
    other: UUID

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.fact >= self.other:
            raise ValueError("other: is not greater than `fact`; give two facts, the one with the smaller id first")
        return self


class ArchivedContradiction(Pair):
    """Two contradicting facts, and when both were accepted."""

    found_at: Instant
    accepted_at: Instant | None = None


class ArchivedLikeness(Pair):
    """Two near-duplicates, and since when they are known to differ in meaning."""

    similarity: FiniteFloat
    found_at: Instant
    apart_at: Instant | None = None


class ArchivedOccurrence(Strict):
    """Another session in which a fact was said, or another turn of its own session."""

    fact: UUID
    id: UUID
    session: KeptSession
    turn: Count | None = None
    role: Role | None = None
    said_at: Instant


class ArchivedDocument(Strict):
    """An indexed Markdown file, as it was when last read."""

    path: Text
    folder: Text
    digest: Annotated[str, Field(pattern=r"^\\x(?:[0-9a-f]{2})*$")]
    read_at: Instant


class ArchivedRelation(Strict):
    """A relation between two entities, as last observed."""

    source: Entity
    target: Entity
    type: RelationType
    initial_weight: Share
    last_observed: Instant
    pinned: bool = False
    created_at: Instant

    @model_validator(mode="after")
    def _of_two(self) -> Self:
        check_two(self.source, self.target)
        return self


class ArchivedWish(Strict):
    """The salted digest of a fact that must stay forgotten, with the salt of its namespace."""

    salt: UUID
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    fact: UUID
    forgotten_at: Instant
    reason: ArchivedReason


class ArchivedNamespace(Strict):
    """A namespace's own settings and counters."""

    salt: UUID
    turns: Turns = 0
    settings: Document = {}

    @field_validator("settings")
    @classmethod
    def _allowed(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Refuse settings that `ebb settings` would refuse: a pass over all namespaces computes with them."""
        try:
            return changed({}, settings, None)
        except InvalidInputError as error:
            raise ValueError(str(error).removesuffix(".")) from None


Record = ArchivedFact | Strict

KINDS: dict[str, type[Strict]] = {
    "link": ArchivedLink,
    "contradiction": ArchivedContradiction,
    "likeness": ArchivedLikeness,
    "occurrence": ArchivedOccurrence,
    "document": ArchivedDocument,
    "relation": ArchivedRelation,
    "wish": ArchivedWish,
    "event": ArchivedEvent,
    "own": ArchivedNamespace,
}
"""Kinds of records other than facts, by the key that such a line has beside its namespace."""

NO_RECORD = (
    f"Is neither a fact of an export, which has a `state`, nor one of {', '.join(KINDS)}; store a new fact as such, "
    "and leave out the lines `archive` at the beginning and end of an export."
)


def _beside(kind: str, model: type[Strict], given: Any) -> Strict:
    """Return a record that is no fact.

    Raises:
        InvalidInputError: it is not such a record.
    """
    if not isinstance(given, dict):
        raise InvalidInputError(f"{kind}: input should be an object; given {show(given)}.")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError(f"{kind}: {faults(error)}") from None


def _content(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a new fact has too."""
    content = {name: value for name, value in given.items() if name not in (*DERIVED, *OUTER)}
    if "coactivations" in content:
        content["coactivations"] = _bounded(content["coactivations"])
    if isinstance(session := content.get("session"), str) and not session.strip():
        content["session"] = None  # as an earlier version took it
    return content


def archived(given: Any, max_text: int) -> Record:
    """Return the record in a line of an archive; it is a fact if it has a `state`.

    Raises:
        InvalidInputError: it is not such a record, or has an invalid value, or a fact that ended before it began.
    """
    if not isinstance(given, dict):
        raise InvalidInputError("A line of an archive is a JSON object.")
    for kind, model in KINDS.items():
        if kind in given:
            return _beside(kind, model, given[kind])
    if "state" not in given:
        raise InvalidInputError(NO_RECORD)
    try:
        past = Validity.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError(faults(error, known=State.model_fields)) from None
    if past.valid_until != past.valid_from:  # both are equal if it was superseded by one that was true as early
        check_validity(past.valid_from, past.valid_until)
    fact = stored_fact(_content(given), max_text)
    if fact.id is None:
        raise InvalidInputError("id: is missing; an archived fact has one.")
    if fact.kind != "episodic" and past.state.branch not in (0, branch(fact.kind, None)):
        raise InvalidInputError(f"state.branch: {past.state.branch} is not of a {fact.kind} fact; leave it out.")
    return ArchivedFact(fact.id, fact, past)
