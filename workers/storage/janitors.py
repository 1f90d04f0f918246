"""Janitors: the report of the last run of each namespace's janitor."""

from datetime import datetime
from uuid import UUID

from ebb.contract.decay import Janitor

from workers.storage.connection import Connection, fetch_one

# Since the previous run, as passes do the same in between. A repeated run writes nothing. The row is locked first, so
# that of two concurrent runs the second continues from the first.
WRITE = """
    with before as (
        select run, last_run_at from janitors where namespace = %(namespace)s for update
    ), since as (
        select coalesce((select least(last_run_at, %(now)s) from before), '-infinity') as at
    ), culled as materialized (
        select id, kind, row_number() over (partition by kind order by forgotten_at desc, id) as place
        from facts, since
        where namespace = %(namespace)s and forgotten_at > since.at and forgotten_at <= %(now)s
            and forgotten_reason in ('culled', 'aged')
    ), stale as materialized (
        select fact as id, row_number() over (order by events.at desc, fact) as place
        from events, since
        where namespace = %(namespace)s and events.at > since.at and events.at <= %(now)s and what = 'stale'
    )
    insert into janitors (namespace, run, last_run_turn, last_run_at, total_runs,
        culled_facts, culled_fact_ids, culled_episodes, culled_episode_ids, stale_episodes, stale_episode_ids)
    select %(namespace)s, %(run)s, turns, %(now)s, 1,
        (select count(*) from culled where kind <> 'episodic'),
        array(select id from culled where kind <> 'episodic' and place <= %(most)s order by place),
        (select count(*) from culled where kind = 'episodic'),
        array(select id from culled where kind = 'episodic' and place <= %(most)s order by place),
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

READ = """
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


def write(db: Connection, namespace: int, run: UUID, now: datetime, most_ids: int) -> None:
    """Write the facts that were culled and the episodes that became stale since the previous run. Idempotent."""
    db.execute(WRITE, {"namespace": namespace, "run": run, "now": now, "most": most_ids})


def read(db: Connection, namespace: int) -> Janitor | None:
    """Return the report of the last run, if any."""
    return fetch_one(db, Janitor, READ, {"namespace": namespace})


def due_namespaces(db: Connection, now: datetime) -> list[str]:
    """Return the names of the namespaces with due facts."""
    return [name for (name,) in db.execute(DUE_NAMESPACES, {"now": now})]
