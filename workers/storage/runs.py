"""Decay runs: a row for each pass and each of its tasks, with their counts; the last run of each janitor."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from uuid import UUID

from ebb.contract.decay import Janitor, Run

from workers.errors import InvalidInputError
from workers.storage.connection import Connection, fetch_all, fetch_one, scalar
from workers.storage.due import Work

BEGIN = """
    insert into decay_runs (id, work, planned_for, slot, asked_by, dry_run, force, namespace, passed_at)
    values (%(id)s, %(work)s, %(now)s, %(slot)s, %(asked_by)s, %(dry_run)s, %(force)s, %(namespace)s,
        last_pass(%(namespace)s))
    on conflict do nothing
    returning id
"""

ADD_PARTS = """
    insert into decay_parts (run, segment, part, quota, further)
    select %(run)s, segment, part, quota, further::smallint[]
    from unnest(%(segments)s::int[], %(parts)s::int[], %(quotas)s::bigint[], %(further)s::text[])
        as new (segment, part, quota, further)
    on conflict do nothing
"""

# Locked, so that two deliveries of a task run one after the other.
LOCK_PART = """
    select work, planned_for, dry_run, force, namespace, quota - processed as quota,
        part * quota + processed as place, passed_at, segment || further as segments
    from decay_parts join decay_runs on decay_runs.id = decay_parts.run
    where run = %(run)s and segment = %(segment)s and part = %(part)s and done_at is null
    for no key update of decay_parts
"""

FINISH_PART = """
    update decay_parts set done_at = statement_timestamp()
    where run = %(run)s and segment = %(segment)s and part = %(part)s and done_at is null
"""

# The transaction that closes the last part closes the run; the row lock ensures that only one does.
FINISH = """
    update decay_runs set finished_at = statement_timestamp()
    where id = %(run)s and finished_at is null
        and not exists (select from decay_parts where run = %(run)s and done_at is null)
    returning id
"""

PARTS = "select segment, part from decay_parts where run = %(run)s and done_at is null"

# After an hour, capacities wait no longer: another part may fail each time.
CROWDED_IS_LEFT = """
    select coalesce(
        bool_and(segment = %(crowded)s) or max(started_at) < statement_timestamp() - interval '1 hour', false
    )
    from decay_parts join decay_runs on decay_runs.id = decay_parts.run
    where run = %(run)s and done_at is null
"""

STATE = """
    select true as begun, finished_at is not null as finished, asked_by, work, dry_run
    from decay_runs where id = %(run)s
"""

BEGUN_FOR = "select work, namespace from decay_runs where id = %(run)s"

OPEN_PARTS = """
    select run, segment, part
    from decay_parts join decay_runs on decay_runs.id = decay_parts.run
    where finished_at is null and done_at is null and started_at < statement_timestamp() - %(older_than)s
    order by started_at
    limit 1000
"""

CROWDED = 32_767
"""Pseudo-segment of the part of a pass that enforces capacities."""


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one task of a run, at most `quota` facts.

    `place` is the offset in the segments, for parts of a dry run; `namespace` restricts the run to one namespace;
    `passed_at` is the time of the previous pass.
    """

    work: Work
    planned_for: datetime
    dry_run: bool
    force: bool
    quota: int
    place: int
    namespace: int | None = None
    passed_at: datetime | None = None
    segments: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The state of a run, the id of the task that requested it, and its kind."""

    begun: bool = False
    finished: bool = False
    asked_by: str = ""
    work: Work = "decay"
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of a pass or a part of it; tiers are those of the processed facts.

    A forgotten fact is counted under the reason of its tombstone. `decayed` counts facts that have not expired and
    whose soft decay halved once more since the last pass.
    """

    processed: int = 0
    changed: int = 0
    hot: int = 0
    warm: int = 0
    cold: int = 0
    compressed: int = 0
    fingerprinted: int = 0
    expired: int = 0
    faded: int = 0
    culled: int = 0
    aged: int = 0
    crowded: int = 0
    stale: int = 0
    decayed: int = 0
    held: int = 0
    duration_ms: float = 0.0
    segments: int = 0

    def __add__(self, other: "Counters") -> "Counters":
        """Return the sum of both."""
        return Counters(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def forgotten(self) -> int:
        """Return the number of facts forgotten for any reason."""
        return self.expired + self.faded + self.culled + self.aged + self.crowded


FACTS = [one.name for one in fields(Counters) if one.name not in ("duration_ms", "segments")]
"""The counters that are numbers of facts."""

COUNT = f"""
    update decay_parts
    set {", ".join(f"{name} = {name} + %({name})s" for name in (*FACTS, "duration_ms"))}
    where run = %(run)s and segment = %(segment)s and part = %(part)s
"""

TOTALS = f"""
    select {", ".join(f"coalesce(sum({name}), 0)::bigint as {name}" for name in FACTS)},
        coalesce(sum(duration_ms), 0)::float8 as duration_ms, (
            select count(distinct one) from decay_parts, unnest(segment || further) as one
            where run = %(run)s and one <> {CROWDED}
        )::int as segments
    from decay_parts where run = %(run)s
"""


def begin(
    db: Connection,
    run: UUID,
    now: datetime,
    slot: datetime | None,
    asked_by: str,
    *,
    work: Work,
    dry_run: bool,
    force: bool,
    namespace: int | None = None,
) -> bool:
    """Begin a run; return false if it, or another of the same work and slot, has begun already."""
    given = {"id": run, "work": work, "now": now, "slot": slot, "asked_by": asked_by, "namespace": namespace}
    return db.execute(BEGIN, given | {"dry_run": dry_run, "force": force}).fetchone() is not None


@dataclass(frozen=True, slots=True)
class NewPart:
    """A task of a run: its first segment, its number among the tasks of that segment, and its further segments."""

    segment: int
    number: int
    quota: int
    further: Sequence[int] = ()


def add_parts(db: Connection, run: UUID, parts: Sequence[NewPart]) -> None:
    """Add the tasks of a run."""
    given = {
        "segments": [part.segment for part in parts],
        "parts": [part.number for part in parts],
        "quotas": [part.quota for part in parts],
        "further": ["{" + ",".join(map(str, part.further)) + "}" for part in parts],
    }
    db.execute(ADD_PARTS, given | {"run": run})


def lock_part(db: Connection, run: UUID, segment: int, part: int) -> Part | None:
    """Return the remaining work of a part, locked until the commit; none if it is done."""
    return fetch_one(db, Part, LOCK_PART, {"run": run, "segment": segment, "part": part})


def count(db: Connection, run: UUID, segment: int, part: int, counters: Counters) -> None:
    """Add the counts of a batch to its part, in the transaction of the batch."""
    db.execute(COUNT, asdict(counters) | {"run": run, "segment": segment, "part": part})


def finish_part(db: Connection, run: UUID, segment: int, part: int) -> None:
    """Mark a part as done."""
    db.execute(FINISH_PART, {"run": run, "segment": segment, "part": part})


def finish(db: Connection, run: UUID) -> bool:
    """Finish a run if all its parts are done; return true to exactly one caller."""
    return db.execute(FINISH, {"run": run}).fetchone() is not None


def totals(db: Connection, run: UUID) -> Counters:
    """Return the sums over all parts of a run."""
    return fetch_one(db, Counters, TOTALS, {"run": run}) or Counters()


def parts(db: Connection, run: UUID) -> list[tuple[int, int]]:
    """Return (segment, part) of a run's open parts."""
    return db.execute(PARTS, {"run": run}).fetchall()


def crowded_is_left(db: Connection, run: UUID) -> bool:
    """Return whether the part that enforces capacities may run: no other one is open, or the run takes too long."""
    return bool(scalar(db, CROWDED_IS_LEFT, {"run": run, "crowded": CROWDED}))


def state(db: Connection, run: UUID) -> State:
    """Return the state of a run; the defaults if it never began."""
    return fetch_one(db, State, STATE, {"run": run}) or State()


def check_own(db: Connection, run: UUID, work: Work, namespace: int | None) -> None:
    """Verify that a run was begun for this work and namespace, as its forget limit is not for others.

    Raises:
        InvalidInputError: it was begun for something else.
    """
    if db.execute(BEGUN_FOR, {"run": run}).fetchone() not in (None, (work, namespace)):
        raise InvalidInputError(f"run: {run} was begun for something else; leave it out.")


def record(db: Connection, run: UUID, now: datetime, work: Work, namespace: int | None, *, force: bool = False) -> None:
    """Record a finished run without parts, by which what it forgets can be restored together.

    Raises:
        InvalidInputError: the run was begun for something else.
    """
    begin(db, run, now, None, "", work=work, dry_run=False, force=force, namespace=namespace)
    check_own(db, run, work, namespace)
    finish(db, run)


def open_parts(db: Connection, older_than_seconds: float) -> list[tuple[UUID, int, int]]:
    """Return open parts of runs that began at least that long ago, whose messages may be lost."""
    return db.execute(OPEN_PARTS, {"older_than": timedelta(seconds=older_than_seconds)}).fetchall()


# The counts of a pass over all namespaces are hidden from a single one.
LATEST = """
    select decay_runs.id, work, namespaces.name as namespace, planned_for, started_at, finished_at,
        slot is not null as scheduled, dry_run, force, done.*
    from decay_runs
    left join namespaces on namespaces.id = decay_runs.namespace
    left join lateral (
        select coalesce(sum(processed), 0)::bigint as processed, coalesce(sum(changed), 0)::bigint as changed,
            coalesce(sum(compressed), 0)::bigint as compressed,
            coalesce(sum(fingerprinted), 0)::bigint as fingerprinted,
            coalesce(sum(expired + faded + culled + aged + crowded), 0)::bigint as forgotten,
            coalesce(sum(held), 0)::bigint as held,
            coalesce(sum(duration_ms), 0)::float8 as duration_ms
        from decay_parts where run = decay_runs.id
    ) as done on %(everything)s or namespaces.name = %(namespace)s
    where (%(everything)s or decay_runs.namespace is null or namespaces.name = %(namespace)s)
        and (%(before)s::timestamptz is null or started_at < %(before)s)
    order by started_at desc
    fetch first (%(limit)s) rows with ties
"""

# Parts and allowances are deleted with them. The last finished run of each work stays, as gaps are detected by passes;
# a run of one namespace is not the last one of others, nor a dry run that of real ones. `started_at` is by the
# database's clock, whatever instant the run was for. By window functions, as janitors have runs of each namespace.
DROP_OLD = """
    delete from decay_runs
    where id = any (array(
        select id from (
            select id, started_at, dry_run, greatest(
                max(started_at) filter (where not dry_run) over (partition by work, namespace),
                max(started_at) filter (where not dry_run and namespace is null) over (partition by work)
            ) as last
            from decay_runs where finished_at is not null
        ) as finished
        where started_at < statement_timestamp() - %(older_than)s and (dry_run or started_at < last)
        order by started_at limit %(limit)s
    ))
"""


def latest(db: Connection, namespace: str, limit: int, before: datetime | None, *, everything: bool) -> list[Run]:
    """Return the latest runs that covered a namespace, newest first; `everything` includes all runs and counts.

    Those that began together with the last one are returned too, as the next page begins before it.
    """
    given = {"namespace": namespace, "limit": limit, "before": before, "everything": everything}
    return fetch_all(db, Run, LATEST, given)


def drop_old(db: Connection, older_than: timedelta, limit: int) -> int:
    """Delete up to `limit` finished runs that began so long ago, oldest first; return how many."""
    return db.execute(DROP_OLD, {"older_than": older_than, "limit": limit}).rowcount


# Since the previous run, as passes do the same in between; what they end sinks into deep memory, after a day. Facts are
# culled, and episodes age out. A repeated run writes nothing. The row is locked first, so that of two concurrent runs
# the second continues from the first. Citus refuses to subtract an interval here.
RECORD_JANITOR = """
    with before as (
        select run, last_run_at from janitors where namespace = %(namespace)s for update
    ), since as (
        select coalesce((select least(last_run_at, %(now)s) from before), '-infinity') as at
    ), culled as materialized (
        select id, reason, row_number() over (partition by reason order by forgotten_at desc, id) as place
        from (
            select id, forgotten_reason as reason, forgotten_at from facts, since
            where namespace = %(namespace)s and forgotten_at > since.at and forgotten_at <= %(now)s
                and forgotten_reason in ('culled', 'aged')
            union all
            select id, substring(deep_reason(body) from 6), forgotten_at from deep
            where namespace = %(namespace)s and forgotten_at > (select at from since) and forgotten_at <= %(now)s
                and (select at from since) < %(sunk)s
                and deep_reason(body) in ('deep culled', 'deep aged')
        ) as gone
    ), stale as materialized (
        select fact as id, row_number() over (order by events.at desc, fact) as place
        from events, since
        where namespace = %(namespace)s and events.at > since.at and events.at <= %(now)s and what = 'stale'
    )
    insert into janitors (namespace, run, last_run_turn, last_run_at, total_runs,
        culled_facts, culled_fact_ids, culled_episodes, culled_episode_ids, stale_episodes, stale_episode_ids)
    select %(namespace)s, %(run)s, turns, %(now)s, 1,
        (select count(*) from culled where reason = 'culled'),
        array(select id from culled where reason = 'culled' and place <= %(most)s order by place),
        (select count(*) from culled where reason = 'aged'),
        array(select id from culled where reason = 'aged' and place <= %(most)s order by place),
        (select count(*) from stale),
        array(select id from stale where place <= %(most)s order by place)
    from namespaces
    where id = %(namespace)s and not exists (select from before where run = %(run)s)
    on conflict (namespace) do update
    set run = excluded.run, last_run_turn = excluded.last_run_turn, last_run_at = excluded.last_run_at,
        total_runs = janitors.total_runs + 1,
        culled_facts = excluded.culled_facts, culled_fact_ids = excluded.culled_fact_ids,
        culled_episodes = excluded.culled_episodes, culled_episode_ids = excluded.culled_episode_ids,
        stale_episodes = excluded.stale_episodes, stale_episode_ids = excluded.stale_episode_ids
    where janitors.run <> excluded.run
"""

LAST_JANITOR = """
    select name as namespace, total_runs as "totalRuns", last_run_at as "lastRunAt", last_run_turn as "lastRunTurn",
        culled_fact_ids as "lastCulledFactIds", culled_facts as "lastCulledFacts",
        culled_episode_ids as "lastCulledEpisodeIds", culled_episodes as "lastCulledEpisodes",
        stale_episode_ids as "lastMarkedStaleEpisodeIds", stale_episodes as "lastMarkedStaleEpisodes"
    from janitors join namespaces on namespaces.id = namespace
    where namespace = %(namespace)s
"""

# One index probe per segment; materialized, as otherwise it would be repeated for each namespace.
DUE_NAMESPACES = """
    with due as materialized (
        select distinct namespace
        from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
        cross join lateral (
            select namespace from activity where activity.segment = series.segment and due_at <= %(now)s
        ) as of_segment
    )
    select name from due join namespaces on namespaces.id = due.namespace
    where position(' ' in name) = 0
    order by name
"""


def record_janitor(db: Connection, namespace: int, run: UUID, now: datetime, most_ids: int) -> None:
    """Write the facts that were culled and the episodes that became stale since the previous run. Idempotent."""
    given = {"namespace": namespace, "run": run, "now": now, "sunk": now - timedelta(days=1), "most": most_ids}
    db.execute(RECORD_JANITOR, given)


def last_janitor(db: Connection, namespace: int) -> Janitor | None:
    """Return the report of the last run, if any."""
    return fetch_one(db, Janitor, LAST_JANITOR, {"namespace": namespace})


def due_namespaces(db: Connection, now: datetime) -> list[str]:
    """Return the names of the namespaces with due facts."""
    return [name for (name,) in db.execute(DUE_NAMESPACES, {"now": now})]
