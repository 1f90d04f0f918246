"""What goes in and out over HTTP, as pydantic models: the OpenAPI document is made of them.

What workers answer passes through as it is: a field that is new there needs no change here.
"""

from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from workers.intake import NewFact
from workers.intake.values import Instant, Kind

EXAMPLE_ID = "01a1fd54-5b58-7629-9b8d-dfaf36313cae"
MOST_FACTS = 10_000
MOST_RESULTS = 1_000


class Request(BaseModel):
    """A body: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid")

    def arguments(self) -> dict[str, Any]:
        """Return what was given, as plain JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class Answer(BaseModel):
    """A body that a worker answered."""

    model_config = ConfigDict(extra="allow")


class StoreRequest(NewFact):
    """A fact to remember, and whether it counts as used if it is known, and gets a decay class by its words."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The spare key hangs behind the kitchen clock", "tags": ["home"]},
                {"text": "Mira's phone is 0341 555 0172", "entity": "Mira", "key": "phone", "value": "0341 555 0172"},
            ]
        }
    )

    touch: bool = True
    classify: bool = True

    def arguments(self) -> dict[str, Any]:
        """Return what was given, as plain JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class BatchRequest(Request):
    """Facts to remember together; one that cannot be stored does not keep the others out."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"facts": [{"text": "Mira moved to Leipzig"}, {"text": "Anselm bakes"}]}]}
    )

    facts: list[dict[str, Any]] = Field(
        min_length=1, max_length=MOST_FACTS, description="facts as `POST /memory/facts`"
    )
    touch: bool = True
    classify: bool = True


class RecallRequest(Request):
    """A question, and what the facts must have that answer it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where is the other key?", "limit": 3, "explain": True}]}
    )

    query: str = Field(min_length=1)
    limit: int = Field(10, ge=1, le=MOST_RESULTS)
    tag: str | None = None
    category: str | None = None
    kind: Kind | None = None
    as_of: Instant | None = Field(None, description="what was true then")
    known_as_of: Instant | None = Field(None, description="what had been told by then")
    explain: bool = Field(default=False, description="each score taken apart, and what was left out by which rule")
    why: UUID | None = Field(None, description="a fact: why it was recalled, or was not; touches nothing")
    touch: bool | None = Field(None, description="whether this counts as use; if left out: with a key that may write")


class ReinforceRequest(Request):
    """How much stronger a fact shall become."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"boost": 0.2}]})

    boost: float = Field(0.2, gt=0, le=1)


class PinRequest(Request):
    """Until when a fact shall stay as it is; for good if left out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"until": "2027-06-01"}, {}]})

    until: Instant | None = None


class ResolveRequest(Request):
    """Two facts of which both hold, or the fact to keep and those that it supersedes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [EXAMPLE_ID], "keep": EXAMPLE_ID}]})

    ids: list[UUID] = Field(min_length=1, max_length=MOST_FACTS)
    keep: UUID | None = None
    both: bool = False


class DecayRequest(Request):
    """A pass over what is due, as of now or of another instant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}, {}]})

    dry_run: bool = Field(default=False, description="only count what would happen")
    now: Instant | None = Field(None, description="any instant, such as a year from now")
    force: bool = Field(default=False, description="forget past EBB_FORGET_LIMIT")


class ContextRequest(Request):
    """What an agent is about to answer, and how much of what it remembers fits before that.

    What is not given is as the settings have it.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where does Mira live now?", "max_tokens": 400, "format": "short"}]}
    )

    query: str = Field(min_length=1)
    limit: int = Field(10, ge=1, le=MOST_RESULTS)
    max_tokens: int | None = Field(None, ge=1)
    format: Literal["full", "short", "minimal"] | None = None
    order: Literal["rank", "stable"] | None = None
    summary_threshold: int | None = Field(None, ge=1)
    prefer_long_term: bool | None = None
    use_importance_recency: bool | None = None
    min_similarity: float | None = Field(None, gt=0, le=1)
    entity_lookup: bool | None = Field(None, description="facts of entities that the query names")
    entities: list[str] | None = Field(None, max_length=2_000, description="only of these; else of all")
    documents: bool = Field(default=False, description="also chunks of indexed files")
    tag: str | None = None
    category: str | None = None
    kind: Kind | None = None
    explain: bool = False
    touch: bool | None = Field(None, description="whether this counts as use; if left out: with a key that may write")


class SettingsRequest(Request):
    """Settings of the namespace by their paths: which shall hold, and which shall be as elsewhere again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"set": {"hygiene.confidenceDecay.halfLife": 60, "hygiene.episodicTTL": False}},
                {"unset": ["hygiene.confidenceDecay"]},
            ]
        }
    )

    set: dict[str, Any] = Field(default_factory=dict)
    unset: list[str] = Field(default_factory=list)


class LinkRequest(Request):
    """A link from one fact to another."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": EXAMPLE_ID, "target": EXAMPLE_ID, "type": "CAUSED_BY"}]}
    )

    source: UUID
    target: UUID
    type: str
    strength: float = Field(1.0, ge=0, le=1)


class EdgeRequest(Request):
    """An edge from one entity to another, as it was just observed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"from": "CoreAuthModule", "to": "JWTLibrary", "type": "depends_on", "weight": 1.0, "pinned": True}
            ]
        },
    )

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    type: str
    weight: float | None = Field(None, ge=0, le=1)
    pinned: bool | None = None


class EdgesDecayRequest(Request):
    """A pass over all edges."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dryRun": False}]})

    dry_run: bool = Field(default=False, alias="dryRun", description="only say which edges would change")


class Stored(Answer):
    """What became of a fact."""

    id: UUID = Field(examples=[EXAMPLE_ID])
    action: str = Field(examples=["added"], description="added, duplicate, updated, retracted, unchanged or forgotten")
    embedded: bool = Field(description="whether it has its vector; without, it is found by its words until it has")


class StoredMany(Answer):
    """What became of each fact, in order, or the error that kept it out."""

    results: list[dict[str, Any]]


class Fact(Answer):
    """A fact as it is now."""

    id: UUID
    text: str
    tier: str
    fidelity: str
    salience: float
    retention: float
    effective_confidence: float


class Fate(Answer):
    """What became of a fact that was to be forgotten or restored."""

    id: UUID
    action: str
    forgotten_at: datetime | None = None
    reason: str | None = None


class Reinforced(Answer):
    """How strong a fact is now."""

    id: UUID
    salience: float


class Pinned(Answer):
    """Whether a fact is pinned, and until when; no instant: for good."""

    id: UUID
    action: str
    pinned: bool
    until: datetime | None


class Page(Answer):
    """Part of a listing; `next` is what to give as `cursor` for the part after, null behind the last."""

    next: str | None = None


class Facts(Page):
    """Facts as they are now, the newest first."""

    facts: list[Fact]


class History(Page):
    """A fact as it stands, and what happened to it, oldest first."""

    id: UUID
    text: str
    state: str
    events: list[dict[str, Any]]


class Result(Answer):
    """One recalled fact."""

    id: UUID
    text: str
    score: float
    tier: str
    fidelity: str


class Recalled(Answer):
    """The facts that fit best, best first."""

    results: list[Result]


class Known(Answer):
    """One fact about an entity."""

    id: UUID
    text: str
    confidence: float
    tier: str
    fidelity: str


class LookedUp(Page):
    """Facts about an entity, or one key of it, the most confident first."""

    results: list[Known]


class Injected(Answer):
    """What fits a prompt, as a block of text to put before it."""

    context: str
    tokens: int


class Link(Answer):
    """A link between two facts."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    strength: float


class Edge(Answer):
    """An edge between two entities, with its weight as of now."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {"from": "Alex", "to": "ProjectAlpha", "type": "works_on", "weight": 0.08, "lastObserved": "2025-09-01"}
            ]
        },
    )

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    type: str
    weight: float
    last_observed: date = Field(alias="lastObserved")


class EdgesDecayed(Answer):
    """What a pass over the edges did."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"processed": 843, "decayed": 31, "belowMinimum": 9, "pinned": 12}]},
    )

    processed: int
    decayed: int
    below_minimum: int = Field(alias="belowMinimum")
    pinned: int


class Stats(Answer):
    """What a namespace holds, by tier, fidelity and decay class, and what is due."""

    facts: int
    tiers: dict[str, int]
    fidelity: dict[str, int]


class Forecast(Answer):
    """What passes will do on each of the coming days."""

    days: list[dict[str, Any]]


class Contradictions(Page):
    """Pairs of facts that say different values of the same."""

    contradictions: list[dict[str, Any]]
    total: int


class Resolved(Answer):
    """Which fact was kept and which it superseded, or which two both hold."""


class NamespaceSettings(Answer):
    """How a namespace is kept: all settings that hold there, and those of them that it has set itself."""

    settings: dict[str, Any]
    own: dict[str, Any]
    changed: bool


class Decayed(Answer):
    """What a pass did."""

    processed: int
    changed: int
    forgotten: int


class ConsolidateRequest(Request):
    """Whether near-duplicates are merged, even past the forget limit, and how many groups are told."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"apply": True}]})

    apply: bool = False
    force: bool = False
    limit: int = Field(100, ge=1, le=MOST_RESULTS)


class Consolidated(Answer):
    """Facts that say nearly the same: the groups that were merged, or would be, and how many are left."""

    applied: bool
    merged: int
    total: int
    facts: int
    groups: list[dict[str, Any]]


class Janitor(Answer):
    """What the last run of the janitor told, in the words of its document."""

    totalRuns: int  # noqa: N815  the document's own name
    lastRunAt: datetime | None = None  # noqa: N815


class Runs(Answer):
    """Passes, the newest first; `next` is what to give as `before` for those that came earlier."""

    runs: list[dict[str, Any]]
    next: datetime | None


class Accepted(BaseModel):
    """A write that will be done: its task, and the fact's id where it makes one."""

    task: UUID
    id: UUID | None = None


class TaskState(BaseModel):
    """How a task stands. `ended` is one whose result was kept for five minutes, and is not any more."""

    task: UUID
    state: Literal["waiting", "done", "failed", "ended"]
    result: Any = None
    error: str | None = None


class Problem(BaseModel):
    """What went wrong, as RFC 9457 says it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:ebb:problem:not-found"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["id: no live fact is in namespace 'default'; look for it with `recall`."])
    instance: str | None = Field(None, examples=[f"/memory/facts/{EXAMPLE_ID}"])


class Live(BaseModel):
    """That this process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """Whether memory can be used, and what is down: `ready`, `degraded` (not all of it) or `down`."""

    status: Literal["ready", "degraded", "down"]
    checks: dict[str, str]
