"""Operations of decay: passes, prunes, near-duplicates, the janitor, held facts, purge."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field

from ebb.contract.operation import (
    BATCH_SECONDS,
    EXAMPLE_ID,
    LONG_SECONDS,
    STORE_SECONDS,
    Answer,
    Operation,
    Page,
    Reaching,
    Scoped,
    Timed,
)
from ebb.contract.values import MOST_FACTS, Cursor, FactIds, Flag, Instant, Limit

NOW = "the instant of the pass; only with `dry_run` one in the future"


class Decay(Reaching):
    """Run one pass: what is due cools, shrinks and is forgotten; return its counters when it is done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}, {}]})

    dry_run: Annotated[Flag, Field(description="only count what would happen")] = False
    force: Annotated[Flag, Field(description="forget past EBB_FORGET_LIMIT")] = False
    now: Annotated[Instant | None, Field(description=NOW)] = None


class Prune(Reaching):
    """Forget what has expired (hard), and halve or remove what nears its expiry (soft)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}]})

    hard: Annotated[Flag, Field(description="forget what has expired")] = True
    soft: Annotated[Flag, Field(description="halve or remove what nears its expiry")] = True
    dry_run: Annotated[Flag, Field(description="only count what would happen")] = False
    now: Annotated[Instant | None, Field(description=NOW)] = None


class Backfill(Reaching):
    """Give facts whose decay class was not chosen the one that their words have today.

    Lifetimes begin when a fact was last confirmed. What would be over by its new lifetime keeps what it has, unless
    `prune` is true.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}]})

    dry_run: Annotated[Flag, Field(description="only say what would change")] = False
    prune: Annotated[
        Flag, Field(description="also classify, and so forget, what would be over by its new lifetime")
    ] = False


class ListRuns(Scoped):
    """Return the latest passes over a namespace's facts, the newest first, or with `everything` any.

    What a pass over all namespaces did is reported only with `everything`.
    """

    limit: Annotated[Limit, Field(description="how many at most")] = 20
    before: Annotated[Instant | None, Field(description="the `next` of the page before")] = None
    everything: Annotated[Flag, Field(description="passes over any namespace, with all that they did")] = False


class Consolidate(Reaching):
    """Return near-duplicates; with `apply` they are merged, which `restore` undoes.

    With `everywhere` each namespace that has something new gets a run of its own.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"apply": True}]})

    apply: Annotated[Flag, Field(description="merge them")] = False
    force: Annotated[Flag, Field(description="merge past EBB_FORGET_LIMIT")] = False
    limit: Annotated[Limit, Field(description="how many groups to list at most")] = 100


class RunJanitor(Reaching):
    """Run the janitor: cull what is no longer believed and let episodes age; return what that was since its last run.

    With `everywhere` each namespace in which something is due gets a run of its own.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    now: Annotated[
        Instant | None, Field(description="the instant of the run, which is not ahead of the database's clock")
    ] = None


class ShowJanitor(Scoped):
    """Return the report of the janitor's last run; `totalRuns` is 0 before the first."""


class ListHeld(Scoped):
    """Return facts that have ended but stay visible, because of the forget limit; those that ended first come first."""

    limit: Annotated[Limit, Field(description="how many at most")] = 100
    cursor: Annotated[Cursor | None, Field(description="the `next` of the page before; else the first page")] = None


class Decide(Timed):
    """Decide about held facts."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [EXAMPLE_ID]}, {"everything": True}]})

    ids: Annotated[
        Annotated[FactIds, Field(min_length=1, max_length=MOST_FACTS)] | None, Field(description="these facts")
    ] = None
    everything: Annotated[Flag, Field(description="all that are held")] = False


class LetGo(Decide):
    """Forget held facts, which can be restored. If `left` is not 0, call again for the rest."""


class Keep(Decide):
    """Keep facts that are held or end soon, as if they had been stored now.

    If `left` is not 0, call again for the rest.
    """


class Purge(Reaching):
    """Erase for good what was forgotten on request EBB_RETENTION_DAYS ago; call again while something is `left`.

    What ended by itself sinks into deep memory, from where EBB_DEEP_DAYS erases it, by default never.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}]})

    dry_run: Annotated[Flag, Field(description="only count what would be erased")] = False


class Decayed(Answer):
    """What a pass did; `held` facts have ended but stay visible because of the forget limit."""

    processed: int
    changed: int
    forgotten: int


class Pruned(Answer):
    """How many facts had expired, and how many soft decay halved; `deleted` of these it removed."""

    expired: int
    decayed: int
    deleted: int
    held: int


class Reclassified(Answer):
    """How many facts went from one decay class to another."""

    was: str = Field(alias="from")
    to: str
    facts: int


class Backfilled(Answer):
    """How many facts were examined, which classes changed, and how many facts would be over by their new lifetime."""

    examined: int
    changes: list[Reclassified]
    overdue: int


class Runs(Answer):
    """Passes, the newest first; `next` is the `before` of those that came earlier."""

    runs: list[dict[str, Any]]
    next: datetime | None


class Consolidated(Answer):
    """The groups of near-duplicates that were merged, or would be, and how many are left."""

    applied: bool
    merged: int
    total: int
    facts: int
    groups: list[dict[str, Any]]


class Janitor(Answer):
    """The report of the janitor's last run, in its documented field names."""

    totalRuns: int  # noqa: N815  the document's own name
    lastRunAt: datetime | None = None  # noqa: N815


class HeldFacts(Page):
    """Facts that have ended but stay visible, those that ended first in front."""

    held: list[dict[str, Any]]
    total: int


class Decided(Answer):
    """How many held facts were decided about, the ids of the first of them, and how many are still held."""

    decided: int
    ids: list[UUID]
    left: int


class Purged(Answer):
    """How many facts were erased and sank into deep memory, and how many are left to be erased.

    They had been forgotten on request before an instant, or ended by themselves before another, if that counts.
    """

    purged: int
    left: int
    forgotten_before: datetime
    sunk: int | None = None
    ended_before: datetime | None = None


DECAY = Operation(
    "decay.plan", Decay, Decayed, "maintenance", "admin", "POST /memory/decay?everywhere", LONG_SECONDS,
    accepted=True,
)  # fmt: skip
PRUNE = Operation("decay.prune", Prune, Pruned, "maintenance", "admin", "POST /memory/prune", LONG_SECONDS)
BACKFILL = Operation(
    "decay.backfill", Backfill, Backfilled, "maintenance", "admin", "POST /memory/backfill", LONG_SECONDS
)
RUNS = Operation(
    "decay.runs", ListRuns, Runs, "recall", route="GET /memory/decay/runs", spelled={"everything": "everywhere"}
)
CONSOLIDATE = Operation(
    "memory.consolidate", Consolidate, Consolidated, "maintenance", "admin", "POST /memory/consolidate", LONG_SECONDS,
    accepted=True, inside=("everywhere",),
)  # fmt: skip
JANITOR = Operation(
    "memory.janitor", RunJanitor, Janitor, "maintenance", "admin", "POST /memory/janitor", LONG_SECONDS, accepted=True,
    inside=("everywhere",),
)  # fmt: skip
JANITOR_SNAPSHOT = Operation("memory.janitor_snapshot", ShowJanitor, Janitor, "recall", route="GET /memory/janitor")
HELD = Operation("memory.held", ListHeld, HeldFacts, "recall", route="GET /memory/held")
LET_GO = Operation(
    "memory.let_go", LetGo, Decided, "store", "write", "POST /memory/held/let-go", STORE_SECONDS, accepted=True
)
KEEP = Operation("memory.keep", Keep, Decided, "store", "write", "POST /memory/held/keep", STORE_SECONDS, accepted=True)
PURGE = Operation("memory.purge", Purge, Purged, "maintenance", "admin", "POST /memory/purge", BATCH_SECONDS)
