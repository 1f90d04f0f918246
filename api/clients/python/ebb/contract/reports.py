"""Operations that report: facts and their curves, statistics, forecasts, timelines and contradictions."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field

from ebb.contract.operation import (
    EXAMPLE_ID,
    EXAMPLE_OTHER_ID,
    STORE_SECONDS,
    Answer,
    Operation,
    Page,
    Params,
    Row,
    Timed,
)
from ebb.contract.recall import Filters
from ebb.contract.values import (
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
    whole_days,
)

Days = Annotated[int, Field(ge=1, le=366), Whole]
Ahead = Annotated[int, BeforeValidator(whole_days), Field(ge=1, le=366)]
Place = Annotated[int, Field(ge=0, le=1_000_000_000), Whole]


class ShowFact(Timed):
    """Return a fact; this does not count as use."""

    id: Annotated[FactId, Field(description="the fact's id, as storing it answered", examples=[EXAMPLE_ID])]


class ListFacts(Filters, Timed):
    """Return the facts of `ids`, in order, or a page of all facts that pass the filters, newest first.

    This does not count as use.
    """

    limit: Annotated[ListLimit, Field(description="how many at most")] = 100
    before: Annotated[FactId | None, Field(description="only facts stored before this one")] = None
    offset: Annotated[Place, Field(description="how many to skip, which shifts with what others store")] = 0
    ids: Annotated[
        Annotated[FactIds, Field(min_length=1, max_length=MOST_RESULTS)] | None, Field(description="these facts alone")
    ] = None
    cursor: Annotated[Cursor | None, Field(description="the `next` of the page before; else the first page")] = None


class ShowStats(Timed):
    """Return the numbers of facts by tier, fidelity and decay class, and of due facts."""


class ShowForecast(Timed):
    """Return what passes will do on each of the coming days, if nothing is used until then.

    With `set` the forecast is for other settings; nothing is changed.
    """

    days: Annotated[Days, Field(description="how many days to look ahead")] = 7
    shown: Annotated[
        Annotated[int, Field(ge=0, le=100), Whole], Field(description="facts listed for each day and change")
    ] = 3
    set: Annotated[
        Names | None,
        Field(description="settings as they would be: cold_threshold=0.35, confidenceDecay.halfLife=60 …"),
    ] = None
    ending: Annotated[
        Ahead | None, Field(description="also list the facts that end within so many days, as 7 or `7d`")
    ] = None
    by: Annotated[Literal["value", "date"], Field(description="list first what is worth most, or what ends first")] = (
        "date"
    )


class ShowTimeSeries(Timed):
    """Return the time series of the namespace's numbers of facts."""

    days: Annotated[Days, Field(description="how many days to look back")] = 14


class ListNamespaces(Params):
    """Return the names of namespaces in order."""

    prefix: Annotated[Prefix, Field(description="only names that begin so")] = ""
    limit: Annotated[Limit, Field(description="how many at most")] = 100


class ShowCurve(Timed):
    """Return the forgetting curve of a fact: how it faded, was used, and will fade."""

    id: Annotated[FactId, Field(description="the fact's id")]


class ShowNeighbours(Timed):
    """Return the facts with the strongest links to a fact, and the links among them."""

    id: Annotated[FactId, Field(description="the fact's id")]
    most: Annotated[Annotated[int, Field(ge=1, le=100), Whole], Field(description="how many facts at most")] = 20


class ShowTimeline(Timed):
    """Return the values of a property of an entity over time, with their speakers, earliest first.

    Superseded and ended facts are included, facts forgotten on request are not. This does not count as use.
    """

    entity: Annotated[Named, Field(description="the person or thing, in any case")]
    key: Annotated[Named, Field(description="which of its properties, in any case")]
    limit: Annotated[Limit, Field(description="how many facts at most")] = 100
    cursor: Annotated[Cursor | None, Field(description="the `next` of the page before; else the first page")] = None


class ListContradictions(Timed):
    """Return pairs of facts with one entity and key but different values, newest pair first."""

    limit: Annotated[Limit, Field(description="how many at most")] = 100
    cursor: Annotated[Cursor | None, Field(description="the `next` of the page before; else the first page")] = None


class Resolve(Timed):
    """Resolve a contradiction: one fact supersedes the others, or both of two are accepted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [EXAMPLE_OTHER_ID], "keep": EXAMPLE_ID}]})

    ids: Annotated[
        FactIds,
        Field(min_length=1, max_length=MOST_FACTS, description="the facts that no longer hold, or with `both` the two"),
    ]
    keep: Annotated[FactId | None, Field(description="the fact that takes their place")] = None
    both: Annotated[Flag, Field(description="two facts hold, though they differ")] = False


class Fact(Answer):
    """A fact with its current decay state."""

    id: UUID
    text: str
    tier: str
    fidelity: str
    salience: float
    retention: float
    effective_confidence: float
    ends_at: datetime | None = None
    ends_for: str | None = None
    role: Annotated[Role | None, Field(description="who said it")] = None
    content_salience: Annotated[
        float | None,
        Field(description="how much of what is asked later its text is likely to answer, 0 to 1; null: not estimated"),
    ] = None


class Facts(Page):
    """A page of facts, newest first."""

    facts: list[Fact]


class Stats(Answer):
    """The numbers of a namespace's facts by tier, fidelity and decay class, and of due facts."""

    facts: int
    tiers: dict[str, int]
    fidelity: dict[str, int]


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


class Forecast(Answer):
    """What passes will do on each of the coming days.

    A day has `at`, the counts of each change and of each reason to forget, and the first facts of each. With other
    settings, `unchanged` has what would come of those that hold.
    """

    days: list[Row]
    totals: Totals | None = None
    unchanged: Totals | None = None
    ending: list[EndingFact] | None = None


class TimeSeries(Answer):
    """Numbers of facts over time: instants in epoch seconds, and for each name a list of numbers at these."""

    at: list[float]


class Namespaces(Answer):
    """Names of namespaces."""

    namespaces: list[str]


class Curve(Answer):
    """A forgetting curve: `salience` and `confidence` at each instant, in epoch seconds.

    `hits` are the newest 16 uses with the salience before and after each; `whole` is true if there were no others.
    """

    at: list[float]
    salience: list[float]


class Neighbours(Answer):
    """The facts linked with one, the links among all, and the total number of linked facts."""

    facts: list[Row]
    links: list[Row]
    total: int


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
    role: Annotated[Role | None, Field(description="who said it")] = None
    source: str | None = None
    session: str | int | None = None
    turn: int | None = None
    superseded_by: UUID | None = None
    state: str


class Timeline(Page):
    """What facts say of a property of an entity, in the order in which it became true."""

    statements: list[Statement]


class Contradictions(Page):
    """Pairs of facts that have different values for the same entity and key."""

    contradictions: list[Row]
    total: int


class Resolved(Answer):
    """The fact that was kept and those that it superseded, or the two that were accepted."""


FACT = Operation("memory.fact", ShowFact, Fact, "recall", route="GET /memory/facts/{id}")
FACTS = Operation("memory.facts", ListFacts, Facts, "recall", route="GET /memory/facts", seconds=STORE_SECONDS)
STATS = Operation("memory.stats", ShowStats, Stats, "recall", route="GET /memory/stats", seconds=STORE_SECONDS)
FORECAST = Operation(
    "memory.forecast", ShowForecast, Forecast, "recall", route="GET /memory/forecast", seconds=STORE_SECONDS
)
TIME_SERIES = Operation("memory.course", ShowTimeSeries, TimeSeries, "recall", route="GET /memory/time-series")
NAMESPACES = Operation("memory.namespaces", ListNamespaces, Namespaces, "recall", "system", "GET /namespaces")
CURVE = Operation("memory.curve", ShowCurve, Curve, "recall", route="GET /memory/facts/{id}/curve")
NEIGHBOURS = Operation(
    "memory.neighbours", ShowNeighbours, Neighbours, "recall", route="GET /memory/facts/{id}/neighbours"
)
TIMELINE = Operation("memory.timeline", ShowTimeline, Timeline, "recall", route="GET /memory/timeline")
CONTRADICTIONS = Operation(
    "memory.contradictions", ListContradictions, Contradictions, "recall", route="GET /memory/contradictions",
    seconds=STORE_SECONDS,
)  # fmt: skip
RESOLVE = Operation(
    "memory.resolve", Resolve, Resolved, "store", "write", "POST /memory/contradictions/resolve", STORE_SECONDS,
    accepted=True,
)  # fmt: skip
