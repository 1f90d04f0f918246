"""Operations of decay: passes, prunes, near-duplicates, the janitor, held facts, purge."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field, model_validator

from ebb.contract.operation import (
    BATCH_SECONDS,
    EXAMPLE_ID,
    Answer,
    Page,
    Reaching,
    Scoped,
    Timed,
    administers,
    examples,
    reads,
    writes,
)
from ebb.contract.values import MOST_FACTS, Cursor, FactIds, Flag, Instant, Limit

NOW = "the instant of the pass; only with `dry_run` one in the future"


class Decay(Reaching):
    """Run one pass over due facts, which cool, lose dimensions or are forgotten; return its counters at the end."""

    model_config = examples({"dry_run": True}, {})

    dry_run: Flag = Field(default=False, description="only count what would happen")
    force: Flag = Field(default=False, description="forget past EBB_FORGET_LIMIT")
    now: Instant | None = Field(default=None, description=NOW)


class Prune(Reaching):
    """Forget expired facts (hard), and halve the confidence of those near their expiry or forget them (soft)."""

    model_config = examples({"dry_run": True})

    hard: Flag = Field(default=True, description="forget what has expired")
    soft: Flag = Field(default=True, description="halve or remove what nears its expiry")
    dry_run: Flag = Field(default=False, description="only count what would happen")
    now: Instant | None = Field(default=None, description=NOW)

    @model_validator(mode="after")
    def _hard_or_soft(self) -> Self:
        if not self.hard and not self.soft:
            raise ValueError("soft: is false, as `hard` is; a prune that shall do nothing is none")
        return self


class Backfill(Reaching):
    """Give facts whose decay class was not chosen the one that their words have today.

    Lifetimes begin when a fact was last confirmed. What would be over by its new lifetime keeps what it has, unless
    `prune` is true.
    """

    model_config = examples({"dry_run": True})

    dry_run: Flag = Field(default=False, description="only say what would change")
    prune: Flag = Field(
        default=False, description="also classify, and so forget, what would be over by its new lifetime"
    )


class ListRuns(Scoped):
    """Return the latest passes over a namespace's facts, newest first, or with `everything` all passes.

    The counts of passes over all namespaces are included only with `everything`.
    """

    limit: Limit = Field(default=20, description="how many at most")
    before: Instant | None = Field(default=None, description="the `next` of the page before")
    everything: Flag = Field(default=False, description="passes over any namespace, with all that they did")


class Consolidate(Reaching):
    """Return near-duplicates; with `apply` they are merged, which `restore` undoes.

    With `everywhere` each namespace with new facts gets a run of its own.
    """

    model_config = examples({"apply": True})

    apply: Flag = Field(default=False, description="merge them")
    force: Flag = Field(default=False, description="merge past EBB_FORGET_LIMIT")
    limit: Limit = Field(default=100, description="how many groups to list at most")


class RunJanitor(Reaching):
    """Run the janitor: cull facts of low confidence and age episodes; return the changes since its last run.

    With `everywhere` each namespace with due facts gets a run of its own.
    """

    model_config = examples({})

    now: Instant | None = Field(
        default=None, description="the instant of the run, which is not ahead of the database's clock"
    )


class ShowJanitor(Scoped):
    """Return the report of the janitor's last run; `totalRuns` is 0 before the first."""


class ListHeld(Scoped):
    """Return facts that have ended but stay visible because of the forget limit, by the time when they ended."""

    limit: Limit = Field(default=100, description="how many at most")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")


class Decide(Timed):
    """A decision on held facts."""

    model_config = examples({"ids": [EXAMPLE_ID]}, {"everything": True})

    ids: Annotated[FactIds, Field(min_length=1, max_length=MOST_FACTS)] | None = Field(
        default=None, description="these facts"
    )
    everything: Flag = Field(default=False, description="all that are held")

    @model_validator(mode="after")
    def _ids_or_everything(self) -> Self:
        if self.everything == (self.ids is not None):
            raise ValueError("ids: give the ids of held facts, or `everything` for all that are held, not both")
        return self


class LetGo(Decide):
    """Forget held facts, which can be restored. If `left` is not 0, repeat the call for the rest."""


class Keep(Decide):
    """Keep facts that are held or end soon, as if they had been stored now.

    If `left` is not 0, repeat the call for the rest.
    """


class Purge(Reaching):
    """Erase facts that were forgotten on request EBB_RETENTION_DAYS ago; repeat the call while some are `left`.

    Facts that decay forgot are moved to deep memory, and erased from there after EBB_DEEP_DAYS, by default never.
    """

    model_config = examples({"dry_run": True})

    dry_run: Flag = Field(default=False, description="only count what would be erased")


class Decayed(Answer):
    """The counters of a pass; `held` facts have ended but stay visible because of the forget limit."""

    processed: int
    changed: int
    forgotten: int
    hot: int = Field(description="processed facts that are hot now")
    warm: int = Field(description="processed facts that are warm now")
    cold: int = Field(description="processed facts that are cold now")
    compressed: int = Field(description="facts whose vector lost dimensions")
    fingerprinted: int = Field(description="facts that only the signature of their vector is left of")
    stale: int = Field(description="permanent episodes that became stale")
    held: int
    duration_ms: float
    segments: int = Field(description="parts in which the facts were processed")


class Pruned(Answer):
    """The numbers of expired facts, of facts that soft decay halved, and of those among them that it forgot."""

    expired: int
    decayed: int
    deleted: int
    held: int
    dry_run: bool
    duration_ms: float
    segments: int = Field(description="parts in which the facts were processed")


class Reclassified(Answer):
    """The number of facts that changed from one decay class to another."""

    was: str = Field(alias="from")
    to: str
    facts: int


class Backfilled(Answer):
    """The number of examined facts, the changes of classes, and the number of facts whose new lifetime is over."""

    examined: int
    changes: list[Reclassified]
    overdue: int


class Run(Answer):
    """A pass over the facts of one namespace, or of all; counts are null where another namespace's are among them."""

    id: UUID
    work: str = Field(description="decay, prune, hard prune, soft prune, startup prune, janitor …")
    namespace: str | None = Field(description="null: all namespaces")
    planned_for: datetime
    started_at: datetime
    finished_at: datetime | None = Field(description="null: it goes on")
    scheduled: bool = Field(description="whether the schedule began it")
    dry_run: bool
    force: bool = Field(description="whether it forgot past EBB_FORGET_LIMIT")
    processed: int | None
    changed: int | None
    compressed: int | None
    fingerprinted: int | None
    forgotten: int | None
    held: int | None
    duration_ms: float | None


class Runs(Answer):
    """Passes, newest first; `next` is the `before` of the next page."""

    runs: list[Run]
    next: datetime | None


class GroupedFact(Answer):
    """A fact of a group of near-duplicates."""

    id: UUID
    text: str


class NearDuplicate(GroupedFact):
    """A fact that is merged into the one that is kept."""

    similarity: float = Field(description="how similar it is to the fact that is kept, up to 1")


class Group(Answer):
    """A group of near-duplicates: the fact that is kept, and those that are merged into it."""

    keep: GroupedFact
    merge: list[NearDuplicate]


class Consolidated(Answer):
    """The groups of near-duplicates that were merged, or would be, and the number of those left."""

    applied: bool
    merged: int
    total: int
    facts: int
    groups: list[Group]
    compared: int = Field(description="facts that were compared with others")


class Janitor(Answer):
    """The report of the janitor's last run, with the documented field names; before the first there are no others."""

    namespace: str
    totalRuns: int
    lastRunAt: datetime | None = None
    lastRunTurn: int | None = Field(default=None, description="the namespace's number of turns then")
    lastCulledFactIds: list[UUID] = Field(default_factory=list)
    lastCulledFacts: int = 0
    lastCulledEpisodeIds: list[UUID] = Field(default_factory=list)
    lastCulledEpisodes: int = 0
    lastMarkedStaleEpisodeIds: list[UUID] = Field(default_factory=list)
    lastMarkedStaleEpisodes: int = 0
    skipped: str | None = Field(default=None, description="why it did nothing this time")


class HeldFact(Answer):
    """A fact that has ended but stays visible: when and why it ended."""

    id: UUID
    text: str
    decay_class: str | None
    reason: str | None = Field(description="expired, faded, culled, aged or crowded")
    ended_at: datetime
    created_at: datetime


class HeldFacts(Page):
    """Facts that have ended but stay visible, by the time when they ended."""

    held: list[HeldFact]
    total: int


class Decided(Answer):
    """The number of facts that were forgotten or kept, the first ids, and the number of facts still held."""

    decided: int
    ids: list[UUID]
    left: int


class Purged(Answer):
    """The numbers of facts that were erased, moved to deep memory, and left to be erased.

    They were forgotten on request before one instant, superseded or retracted before another, if such facts are erased,
    or ended before the last, if facts in deep memory are.
    """

    purged: int
    left: int
    forgotten_before: datetime
    sunk: int | None = None
    superseded_before: datetime | None = None
    ended_before: datetime | None = None


DECAY = administers("decay.plan", Decay, Decayed, "POST /memory/decay?everywhere", accepted=True)
PRUNE = administers("decay.prune", Prune, Pruned, "POST /memory/prune")
BACKFILL = administers("decay.backfill", Backfill, Backfilled, "POST /memory/backfill")
RUNS = reads("decay.runs", ListRuns, Runs, "GET /memory/decay/runs", spelled={"everything": "everywhere"})
CONSOLIDATE = administers(
    "memory.consolidate", Consolidate, Consolidated, "POST /memory/consolidate", accepted=True, inside=("everywhere",)
)
JANITOR = administers(
    "memory.janitor", RunJanitor, Janitor, "POST /memory/janitor", accepted=True, inside=("everywhere",)
)
JANITOR_SNAPSHOT = reads("memory.janitor_snapshot", ShowJanitor, Janitor, "GET /memory/janitor")
HELD = reads("memory.held", ListHeld, HeldFacts, "GET /memory/held")
LET_GO = writes("memory.let_go", LetGo, Decided, "POST /memory/held/let-go")
KEEP = writes("memory.keep", Keep, Decided, "POST /memory/held/keep")
PURGE = administers("memory.purge", Purge, Purged, "POST /memory/purge", BATCH_SECONDS)
