"""Operations that report: facts and their curves, statistics, forecasts, timelines and contradictions."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BeforeValidator, Field, model_validator

from ebb.contract.operation import (
    EXAMPLE_ID,
    EXAMPLE_OTHER_ID,
    STORE_SECONDS,
    Answer,
    Page,
    Params,
    Timed,
    examples,
    reads,
    writes,
)
from ebb.contract.recall import Filters
from ebb.contract.values import (
    MOST_AHEAD,
    MOST_FACTS,
    MOST_RESULTS,
    Cursor,
    FactId,
    FactIds,
    Flag,
    Limit,
    ListLimit,
    Named,
    Names,
    Prefix,
    Role,
    Whole,
    days_of_a_year,
)

Days = Annotated[int, Field(ge=1, le=MOST_AHEAD), Whole]
Ahead = Annotated[int, Field(ge=1, le=MOST_AHEAD), BeforeValidator(days_of_a_year)]
Place = Annotated[int, Field(ge=0, le=1_000_000_000), Whole]


class ShowFact(Timed):
    """Return a fact; this does not count as use."""

    id: FactId = Field(description="the fact's id, as storing it answered", examples=[EXAMPLE_ID])


class ListFacts(Filters, Timed):
    """Return the facts of `ids`, in order, or a page of all facts that pass the filters, newest first.

    This does not count as use.
    """

    limit: ListLimit = Field(default=100, description="how many at most")
    before: FactId | None = Field(default=None, description="only facts stored before this one")
    offset: Place = Field(default=0, description="how many to skip, which shifts with what others store")
    ids: Annotated[FactIds, Field(min_length=1, max_length=MOST_RESULTS)] | None = Field(
        default=None, description="these facts alone"
    )
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")


class ShowStats(Timed):
    """Return the numbers of facts by tier, fidelity and decay class, and of due facts."""


class ShowForecast(Timed):
    """Return what passes will do on each of the coming days, if nothing is used until then.

    With `set` the forecast is for other settings; nothing is changed.
    """

    days: Days = Field(default=7, description="how many days to look ahead")
    shown: Annotated[int, Field(ge=0, le=100), Whole] = Field(
        default=3, description="facts listed for each day and change"
    )
    set: Names | None = Field(
        default=None, description="settings as they would be: cold_threshold=0.35, confidenceDecay.halfLife=60 …"
    )
    ending: Ahead | None = Field(
        default=None, description="also list the facts that end within so many days, as 7 or `7d`"
    )
    by: Literal["value", "date"] = Field(
        default="date", description="list first what is worth most, or what ends first"
    )


class ShowTimeSeries(Timed):
    """Return the time series of the namespace's numbers of facts."""

    days: Days = Field(default=14, description="how many days to look back")


class ListNamespaces(Params):
    """Return the names of namespaces in order."""

    prefix: Prefix = Field(default="", description="only names that begin so")
    limit: Limit = Field(default=100, description="how many at most")


class ShowCurve(Timed):
    """Return the forgetting curve of a fact: how it faded, was used, and will fade."""

    id: FactId = Field(description="the fact's id")


class ShowNeighbours(Timed):
    """Return the facts with the strongest links to a fact, and the links among them."""

    id: FactId = Field(description="the fact's id")
    most: Annotated[int, Field(ge=1, le=100), Whole] = Field(default=20, description="how many facts at most")


class ShowTimeline(Timed):
    """Return the values of a property of an entity over time, with their speakers, earliest first.

    Superseded and ended facts are included, facts forgotten on request are not. This does not count as use.
    """

    entity: Named = Field(description="the person or thing, in any case")
    key: Named = Field(description="which of its properties, in any case")
    limit: Limit = Field(default=100, description="how many facts at most")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")


class ListContradictions(Timed):
    """Return pairs of facts with one entity and key but different values, newest pair first."""

    limit: Limit = Field(default=100, description="how many at most")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")


BOTH = 2
"""Number of facts that are accepted together."""


class Resolve(Timed):
    """Resolve a contradiction: one fact supersedes the others, or both of two are accepted."""

    model_config = examples({"ids": [EXAMPLE_OTHER_ID], "keep": EXAMPLE_ID})

    ids: FactIds = Field(
        min_length=1, max_length=MOST_FACTS, description="the facts that no longer hold, or with `both` the two"
    )
    keep: FactId | None = Field(default=None, description="the fact that takes their place")
    both: Flag = Field(default=False, description="two facts hold, though they differ")

    @property
    def others(self) -> list[FactId]:
        """Return the distinct facts besides the one to keep."""
        return [id_ for id_ in dict.fromkeys(self.ids) if id_ != self.keep]

    @model_validator(mode="after")
    def _keep_or_both(self) -> Self:
        if self.both == (self.keep is not None) or len(self.others) < 1 or (self.both and len(self.others) != BOTH):
            raise ValueError("ids: give the fact to keep and those it supersedes, or two facts and accept both")
        return self


class Occurrence(Answer):
    """Another session in which a fact was said, or another turn of its own session."""

    session: str | int
    turn: int | None = None
    role: Role | None = Field(default=None, description="who said it")
    said_at: datetime


class Fact(Answer):
    """A fact with its current decay state."""

    id: UUID
    text: str
    tier: str
    fidelity: str
    salience: float
    retention: float
    effective_confidence: float
    namespace: str
    kind: str = Field(description="semantic, episodic, chunk or item")
    summary: str | None = Field(description="what is shown in place of a long text")
    session: str | int | None = Field(description="the conversation that it is from")
    turn: int | None = Field(description="its turn there, or of a chunk its first line")
    role: Role | None = Field(default=None, description="who said it")
    source_date: datetime | None = Field(description="the date of its source")
    created_at: datetime
    category: str | None
    entity: str | None = Field(description="the person or thing that it is about")
    key: str | None = Field(description="which of the entity's properties")
    value: str | None = Field(description="that property's value")
    tags: list[str]
    importance: float = Field(description="from 0 to 1")
    source: str | None = Field(description="where it comes from")
    metadata: dict[str, Any] | None
    decay_class: str | None
    decay_class_source: str | None = Field(description="auto: by its words; explicit: as given")
    confidence: float = Field(description="as stored or confirmed")
    coactivations: int = Field(description="how often it was recalled with others")
    durability: str | None = Field(description="of an episode, persistent or permanent")
    occurred: int | None = Field(description="of an episode, the number of turns of the namespace when it was stored")
    normalized_hash: str
    recall_count: int = Field(description="how often it was recalled or stated again")
    last_accessed: float | None = Field(description="when it was last recalled or stated again, in epoch seconds")
    last_accessed_at: datetime | None = Field(description="when it was last recalled or stated again")
    valid_from: datetime | None = Field(description="since when it is true")
    valid_until: datetime | None = Field(description="when it stops being true")
    superseded_at: datetime | None
    superseded_by: UUID | None
    supersedes_id: UUID | None
    content_salience: float | None = Field(
        default=None,
        description="how much of what is asked later its text is likely to answer, 0 to 1; null: not estimated",
    )
    access_count: int = Field(description="the same as `recall_count`")
    last_confirmed_at: datetime | None
    last_seen_at: datetime | None = Field(description="when its decay began: stored or last used")
    strength: float
    dims: int = Field(description="dimensions of its vector; 0: none")
    decay_summary: str | None = Field(description="what a faded fact is shortened to")
    expires_at: datetime | None = Field(description="when its lifetime ends; null: never")
    ends_at: datetime | None = Field(default=None, description="when it ends if it is never used; null: never")
    ends_for: str | None = None
    due_at: datetime | None = Field(description="when a pass will next change it")
    stale: bool = Field(description="a permanent episode that was not used for long")
    pinned: bool
    pinned_until: datetime | None = Field(description="when its pin ends or ended; null: never")
    forgotten_at: datetime | None
    forgotten_reason: str | None
    forgotten_by: UUID | None = None
    tombstone_at: datetime | None = None
    said_again: list[Occurrence] | None = Field(default=None, description="where else it was said, oldest first")


class Facts(Page):
    """A page of facts, newest first."""

    facts: list[Fact]


class Gap(Answer):
    """A period without passes, in which facts would have ended, and that is not confirmed yet."""

    began: datetime = Field(alias="from")
    until: datetime


class Stats(Answer):
    """The numbers of a namespace's facts by tier, fidelity and decay class, and of due facts."""

    facts: int
    tiers: dict[str, int]
    fidelity: dict[str, int]
    decay_classes: dict[str, int]
    decay_class_sources: dict[str, int] = Field(description="by words (auto), explicit, or none")
    expired_pending: int = Field(description="facts that have ended and that the next pass will forget")
    forgotten: int
    forgotten_by_reason: dict[str, int]
    pending_embeddings: int = Field(description="facts without their vector")
    due: int
    held: int = Field(description="facts that stay visible because of the forget limit")
    contradictions: int
    pinned: int
    turns: int = Field(description="stored turns of conversations, by which episodes age")
    episodes: dict[str, int] = Field(description="by durability, and stale ones")
    deep: int = Field(default=0, description="forgotten facts in deep memory")
    regretted: int = Field(default=0, description="questions whose best result was in deep memory")
    gap: Gap | None = None
    branch_of: str | None = Field(default=None, description="the namespace that this is a branch of")


class Totals(Answer):
    """The totals of a forecast: facts left, forgotten, held, and forgotten ones recalled in the last 30 days.

    Bytes are an estimate of the space that purging the forgotten facts frees.
    """

    facts: int
    forgotten: int
    held: int
    recalled_lately: int
    bytes_freed: int


class EndingFact(Answer):
    """A fact that ends soon: when and why, and its value from 0 to 1."""

    id: UUID
    text: str
    ends_at: datetime
    ends_for: str
    value: float


class ForecastFact(Answer):
    """A fact that will change, and the change."""

    id: UUID
    change: str
    text: str = Field(description="the beginning of its text")


class ForecastDay(Answer):
    """What a pass at the end of a day will do: the count of each change and of each reason to forget."""

    at: datetime
    warm: int
    cold: int
    compressed: int
    fingerprinted: int
    stale: int
    expired: int
    faded: int
    culled: int
    aged: int
    crowded: int = 0
    forgotten: int = Field(description="for all reasons together")
    held: int = Field(description="facts that the forget limit holds back")
    facts: list[ForecastFact] = Field(description="the first facts of each change")


class Forecast(Answer):
    """What passes will do on each of the coming days.

    With other settings, `unchanged` has what would come of those that hold.
    """

    days: list[ForecastDay]
    totals: Totals | None = None
    unchanged: Totals | None = None
    ending: list[EndingFact] | None = None


class TimeSeries(Answer):
    """Numbers of facts over time: instants in epoch seconds, and for each name a list of numbers at these."""

    at: list[float]
    tiers: dict[str, list[int]]
    fidelity: dict[str, list[int]]
    classes: dict[str, list[int]]
    forgotten: dict[str, list[int]] = Field(description="by reason")
    due: list[int]


class Namespaces(Answer):
    """Names of namespaces."""

    namespaces: list[str]


class Hit(Answer):
    """A use, with the salience before and after it."""

    at: float
    before: float
    after: float


class TierSpan(Answer):
    """A time in which a fact is in a tier."""

    tier: str
    begins: float = Field(alias="from")
    until: float


class CurveChange(Answer):
    """A change of a fact by a pass: a tier, a smaller vector, a halved confidence, or its end."""

    at: float
    what: str
    past: bool


class Curve(Answer):
    """A forgetting curve: `salience` and `confidence` at each instant, all in epoch seconds.

    `hits` are the newest 16 uses with the salience before and after each; `whole` is true if there were no others.
    """

    at: list[float]
    salience: list[float]
    now: float
    begins: float = Field(alias="from", description="the first instant")
    since: float = Field(description="when its decay began: stored or last used")
    until: float = Field(description="the last instant")
    confidence: list[float | None] = Field(description="null before it was last confirmed")
    hits: list[Hit]
    whole: bool
    tiers: list[TierSpan]
    changes: list[CurveChange]
    ends_at: float | None = Field(description="when it ends if it is never used; null: never")
    ends_for: str | None
    strength: float
    pinned: bool


class Neighbour(Answer):
    """A fact that is linked with another."""

    id: UUID
    text: str = Field(description="the beginning of its text")


class NeighbourLink(Answer):
    """A link between two facts."""

    source: UUID
    target: UUID
    type: str
    strength: float = Field(description="how close they are, 0 to 1")


class Neighbours(Answer):
    """The facts linked with one, the links among all, and the number of its own links."""

    facts: list[Neighbour]
    links: list[NeighbourLink]
    total: int = Field(description="its links, of which a fact may have several, including those to forgotten facts")


class Statement(Answer):
    """What a fact says of a property, since when that is true, until when, and who said it when.

    Without `valid_until` it is true still, as far as anything was said. `state` is `live`, `superseded`, `over` where
    it has ended by itself and no pass has come yet, or `forgotten` with the reason.
    """

    id: UUID
    text: str
    value: str | None = None
    valid_from: datetime
    valid_until: datetime | None = None
    said_at: datetime
    role: Role | None = Field(default=None, description="who said it")
    source: str | None = None
    session: str | int | None = None
    turn: int | None = None
    superseded_by: UUID | None = None
    state: str


class Timeline(Page):
    """What facts say of a property of an entity, in the order in which it became true."""

    statements: list[Statement]


class ContradictoryFact(Answer):
    """One of two facts that contradict each other."""

    id: UUID
    value: str
    text: str
    created_at: datetime


class Contradiction(Answer):
    """Two facts that have different values for the same entity and key, the older first."""

    entity: str
    key: str
    found_at: datetime
    facts: list[ContradictoryFact]


class Contradictions(Page):
    """Pairs of facts that have different values for the same entity and key."""

    contradictions: list[Contradiction]
    total: int


class Resolved(Answer):
    """The fact that was kept and those that it superseded, or the two that were accepted."""

    kept: UUID | None = None
    superseded: list[UUID] = Field(default_factory=list)
    accepted: list[UUID] = Field(default_factory=list)


FACT = reads("memory.fact", ShowFact, Fact, "GET /memory/facts/{id}")
FACTS = reads("memory.facts", ListFacts, Facts, "GET /memory/facts", STORE_SECONDS)
STATS = reads("memory.stats", ShowStats, Stats, "GET /memory/stats", STORE_SECONDS)
FORECAST = reads("memory.forecast", ShowForecast, Forecast, "GET /memory/forecast", STORE_SECONDS)
TIME_SERIES = reads("memory.course", ShowTimeSeries, TimeSeries, "GET /memory/time-series")
NAMESPACES = reads("memory.namespaces", ListNamespaces, Namespaces, "GET /namespaces", scope="system")
CURVE = reads("memory.curve", ShowCurve, Curve, "GET /memory/facts/{id}/curve")
NEIGHBOURS = reads("memory.neighbours", ShowNeighbours, Neighbours, "GET /memory/facts/{id}/neighbours")
TIMELINE = reads("memory.timeline", ShowTimeline, Timeline, "GET /memory/timeline")
CONTRADICTIONS = reads(
    "memory.contradictions", ListContradictions, Contradictions, "GET /memory/contradictions", STORE_SECONDS
)
RESOLVE = writes("memory.resolve", Resolve, Resolved, "POST /memory/contradictions/resolve")
