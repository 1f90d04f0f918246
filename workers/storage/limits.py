"""Limits: how many facts may end within a day and a week, held facts, gaps between passes, and capacity."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from ebb.contract.decay import HeldFact

from workers.core.arrays import Bools, Floats
from workers.core.forget_limit import Ending
from workers.storage import facts, namespaces, tallies
from workers.storage.connection import Connection, fetch_all, fetch_one, lift_limits, number, scalar

# Serialises the transactions that end facts of a namespace; taken after the facts are locked.
LOCK = "select pg_advisory_xact_lock(%(key)s)"

LOCK_FAMILY = (0x0EBB + 4) << 32

# Of those that find a cutoff, which takes long; nothing else is locked before or after it.
CUTOFF_FAMILY = (0x0EBB + 7) << 32

REMAINING = "select forget_room(%(namespace)s, %(now)s)"

COUNT_ENDED = """
    insert into endings (namespace, at, facts, asked)
    values (%(namespace)s, date_trunc('minute', %(now)s), %(facts)s, %(asked)s)
    on conflict (namespace, at) do update
    set facts = endings.facts + excluded.facts, asked = endings.asked + excluded.asked
"""

SHARES = "select a_day, a_week from forget_limits"

SET_SHARES = "update forget_limits set a_day = %(a_day)s, a_week = %(a_week)s"

# Stops at the limit. PostgreSQL skip-scans the index on segment and due time.
COUNT_DUE = """
    select count(*) from (
        select from activity where namespace = %(namespace)s and due_at <= %(now)s and not held limit %(limit)s
    ) as few
"""

RECENTLY_ENDED = """
    select date_part('epoch', at), facts, asked from endings
    where namespace = %(namespace)s and at > %(now)s::timestamptz - interval '7 days'
"""

PASSED = "select last_pass(%(namespace)s)"

CUTOFF = """
    select coalesce(last_rank, 'infinity'), last_fact from decay_allowances
    where run = %(run)s and namespace = %(namespace)s
"""

SET_CUTOFF = """
    insert into decay_allowances (run, namespace, allowed, last_rank, last_fact)
    values (%(run)s, %(namespace)s, %(allowed)s, %(rank)s, %(fact)s)
    on conflict do nothing
"""

DROP_OLD_ENDINGS = "delete from endings where at < statement_timestamp() - interval '30 days'"

Cutoff = tuple[float, UUID | None]
"""The last fact that may end, as (value rank, id); the rank is infinite where all may."""


def lock(db: Connection, namespace: int) -> None:
    """Lock a namespace's forget limit until the commit; lock several namespaces in order of their ids."""
    db.execute(LOCK, {"key": LOCK_FAMILY + namespace})


def lock_cutoff(db: Connection, namespace: int) -> None:
    """Lock the finding of a namespace's cutoffs until the commit, however long another takes."""
    db.execute("set local lock_timeout = 0")
    db.execute(LOCK, {"key": CUTOFF_FAMILY + namespace})


def remaining(db: Connection, namespace: int, now: datetime) -> int | None:
    """Return how many more facts of a namespace may end at `now`; none if there is no limit."""
    return scalar(db, REMAINING, {"namespace": namespace, "now": now})


def count_ended(db: Connection, namespace: int, facts: int, now: datetime, *, asked: int = 0) -> None:
    """Count facts that ended without their owners' request, and those that ended on request (`asked`)."""
    if facts or asked:
        db.execute(COUNT_ENDED, {"namespace": namespace, "facts": facts, "asked": asked, "now": now})


def shares(db: Connection) -> tuple[float, float]:
    """Return the shares of a namespace that may end within a day and within a week."""
    row = db.execute(SHARES).fetchone()
    return (float(row[0]), float(row[1])) if row else (0.0, 0.0)


def set_shares(db: Connection, a_day: float, a_week: float) -> None:
    """Set the shares of the forget limit, which SQL functions read."""
    db.execute(SET_SHARES, {"a_day": a_day, "a_week": a_week})


def count_due(db: Connection, namespace: int, now: datetime, limit: int) -> int:
    """Return how many facts of a namespace are due at `now`, at most `limit`."""
    return number(db, COUNT_DUE, {"namespace": namespace, "now": now, "limit": limit})


def recently_ended(db: Connection, namespace: int, now: datetime) -> list[Ending]:
    """Return (time, facts, asked) of what ended within the last week."""
    return db.execute(RECENTLY_ENDED, {"namespace": namespace, "now": now}).fetchall()


def last_pass(db: Connection, namespace: int) -> datetime | None:
    """Return the time of the last finished pass over a namespace, if any."""
    return scalar(db, PASSED, {"namespace": namespace})


def cutoff(db: Connection, run: UUID, namespace: int) -> Cutoff | None:
    """Return the cutoff of a run in a namespace, if it is set."""
    return db.execute(CUTOFF, {"run": run, "namespace": namespace}).fetchone()


def set_cutoff(db: Connection, run: UUID, namespace: int, allowed: int, last: Cutoff) -> None:
    """Set the cutoff of a run in a namespace, once."""
    given = {"run": run, "namespace": namespace, "allowed": allowed, "rank": last[0], "fact": last[1]}
    db.execute(SET_CUTOFF, given)


def drop_old_endings(db: Connection) -> None:
    """Delete counts of endings that are older than 30 days."""
    db.execute(DROP_OLD_ENDINGS)


# Uses the partial index of held facts.
HELD_PAGE = """
    select id, text, decay_class, null as reason, activity.ends_at as ended_at, created_at
    from activity
    join facts on facts.namespace = activity.namespace and facts.id = activity.fact
    where activity.namespace = %(namespace)s and held and not retired
        and (%(ended_at)s::timestamptz is null or (activity.ends_at, id) > (%(ended_at)s, %(id)s))
    order by activity.ends_at, id
    limit %(limit)s
"""

COUNT_HELD = "select count(*) from activity where namespace = %(namespace)s and held and not retired"

HELD_BY_NAMESPACE = """
    select name, count(*) from activity
    join namespaces on namespaces.id = namespace
    where held and not retired and position(' ' in name) = 0
    group by name
    order by name
"""

HELD_AMONG = """
    select fact from activity
    where namespace = %(namespace)s and held and not retired and (%(ids)s::uuid[] is null or fact = any(%(ids)s))
    order by fact
    limit %(limit)s
"""

SETTLE_HELD = """
    update namespaces set held_since = null
    where id = %(namespace)s and held_since is not null
        and not exists (select from activity where namespace = %(namespace)s and held and not retired)
"""

# By the counts, as reading the held facts of many namespaces takes longer. In order, to avoid deadlocks with passes.
CORRECT_HELD = """
    with holding as (
        select namespace from (
            select namespace, facts from tallies where namespace = any(%(namespaces)s) and held
            union all
            select namespace, facts from tally_changes where namespace = any(%(namespaces)s) and held
        ) as counted
        group by namespace
        having sum(facts) > 0
    ),
    wrong as (
        select id from namespaces
        where id = any(%(namespaces)s) and (held_since is null) = (id in (select namespace from holding))
        order by id
        for no key update
    )
    update namespaces set held_since = case when held_since is null then %(now)s::timestamptz end
    where id in (select id from wrong)
"""


@dataclass(frozen=True, slots=True)
class HeldCursor:
    """The position of a listing: the last held fact."""

    ended_at: datetime
    id: UUID


def held_page(db: Connection, namespace: int, limit: int, behind: HeldCursor | None) -> list[HeldFact]:
    """Return a page of held facts of a namespace, by the time when they ended, without the reasons."""
    place = {"ended_at": None, "id": None} if behind is None else asdict(behind)
    return fetch_all(db, HeldFact, HELD_PAGE, {"namespace": namespace, "limit": limit} | place)


def count_held(db: Connection, namespace: int) -> int:
    """Return the number of held facts of a namespace."""
    return number(db, COUNT_HELD, {"namespace": namespace})


def held_by_namespace(db: Connection) -> dict[str, int]:
    """Return the number of held facts by namespace name, without zeros."""
    return dict(db.execute(HELD_BY_NAMESPACE).fetchall())


def held_among(db: Connection, namespace: int, ids: Sequence[UUID] | None, limit: int) -> list[UUID]:
    """Return the held facts among these, or the first of all held facts."""
    given = {"namespace": namespace, "ids": None if ids is None else list(ids), "limit": limit}
    return [id_ for (id_,) in db.execute(HELD_AMONG, given)]


def settle_held(db: Connection, namespace: int) -> None:
    """Clear a namespace's `held_since` if nothing is held any more."""
    db.execute(SETTLE_HELD, {"namespace": namespace})


def correct_held(db: Connection, tenants: Sequence[int], now: datetime) -> None:
    """Set or clear the `held_since` of namespaces by the counts of their held facts.

    A use, an edit or a request to forget ends the holding of a fact, and a copy or an import begins it, without writing
    to `namespaces`.
    """
    db.execute(CORRECT_HELD, {"namespaces": list(tenants), "now": now})


READ_CLOCK = """
    select at as last, statement_timestamp() as now, pg_postmaster_start_time() as server_started
    from pass_clock for update
"""

SET_CLOCK = """
    insert into pass_clock (at) values (statement_timestamp())
    on conflict (only_row) do update set at = excluded.at
"""

# Branches are excluded: they are aged on purpose.
RECORD_GAP = """
    update namespaces set gap_from = coalesce(gap_from, %(last)s), gap_until = %(now)s where branch_of is null
"""

# As `outlook_of` finds the one that is coming.
GAPS = """
    select id, coalesce(gap_from, at), case when at is null then gap_until else statement_timestamp() end
    from namespaces
    left join pass_clock on %(coming)s and branch_of is null and statement_timestamp() - at
        > case when pg_postmaster_start_time() <= at then interval '1 day' else interval '7 days' end
    where id = any(%(ids)s) and (gap_until is not null or at is not null)
"""

GAPS_WAITING = "select name from namespaces where gap_until is not null and position(' ' in name) = 0 order by name"

# Every fact is computed again, as passes ahead of the clock cooled them. Those held for the gap have not ended.
REMOVE_GAPS = """
    with undone as (
        update namespaces set gap_from = null, gap_until = null where gap_until > %(now)s
        returning id
    )
    update activity set due_at = least(due_at, %(now)s), held = false
    from undone
    where activity.namespace = undone.id and not retired and not (held and ends_at <= %(now)s)
"""

# Else they would take from the limit of each day until then.
DROP_ENDINGS_AHEAD = "delete from endings where at > %(now)s"


class Reading(NamedTuple):
    """Times of the last pass, of now, and of the server's start, by the database's clock."""

    last: datetime
    now: datetime
    server_started: datetime


class Gap(NamedTuple):
    """A period without passes."""

    began: datetime
    ended: datetime

    def includes(self, instants: Floats) -> Bools:
        """Return which instants (epoch seconds) are within it."""
        return (instants > self.began.timestamp()) & (instants <= self.ended.timestamp())


def read_clock(db: Connection) -> Reading | None:
    """Return the clock's reading, locked until the commit; none before the first pass."""
    return fetch_one(db, Reading, READ_CLOCK)


def set_clock(db: Connection) -> None:
    """Record that a pass over all namespaces begins now."""
    db.execute(SET_CLOCK)


def record_gap(db: Connection, reading: Reading) -> None:
    """Record a gap in every namespace, whose ended facts wait for confirmation; an open gap is extended."""
    db.execute(RECORD_GAP, {"last": reading.last, "now": reading.now})


def remove_gaps(db: Connection, reading: Reading) -> None:
    """Remove gaps and counts of endings in the future, after a clock was set back, and make their facts due."""
    lift_limits(db)
    db.execute(REMOVE_GAPS, {"now": reading.now})
    db.execute(DROP_ENDINGS_AHEAD, {"now": reading.now})


def gaps_waiting(db: Connection) -> list[str]:
    """Return the names of the namespaces with an unconfirmed gap."""
    return [name for (name,) in db.execute(GAPS_WAITING)]


def gaps(db: Connection, namespaces: Sequence[int], *, coming: bool = False) -> dict[int, Gap]:
    """Return the unconfirmed gaps of these namespaces, also with the one that the next pass will find (`coming`)."""
    rows = db.execute(GAPS, {"ids": list(namespaces), "coming": coming})
    return {id_: Gap(began, ended) for id_, began, ended in rows}


# Two bytes a dimension; `fidelity` is the divisor of a vector's dimensions.
VECTOR = "case when fidelity between 1 and 32766 then 2.0 / fidelity else 0 end"

# Uses the index on the value. Ended facts are left to passes; permanent, pinned and document facts are exempt.
CLAIM_LEAST = f"""
    select fact, ({VECTOR})::float8 from activity
    where namespace = %(namespace)s and not retired and ends_at > %(now)s and branch <> 3
        and decay_class is distinct from 'permanent' and coalesce(pinned_until <= %(now)s, true)
    order by value_rank(worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations), fact
    limit %(limit)s
    for no key update skip locked
"""

# Includes facts whose pin ends by an instant, with the end of the pin, and as many more facts as are pinned. `all` also
# gives those that have ended, as they may live on by other settings, see `due.COMPUTED_AGAIN`.
LEAST_BY = f"""
    select fact, coalesce(date_part('epoch', pinned_until), '-infinity'), ({VECTOR})::float8 from activity
    where namespace = %(namespace)s and not retired and branch <> 3 and decay_class is distinct from 'permanent'
        and coalesce(pinned_until <= %(until)s, true) and case when %(all)s
            then not (held and decay_class_source is not distinct from 'explicit' and expires_at <= %(now)s)
            else ends_at > %(now)s
        end
    order by value_rank(worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations), fact
    limit %(limit)s + (
        select count(*) from activity where namespace = %(namespace)s and pinned_until > %(now)s and not retired
    )
"""

# Facts that are held have ended and wait for their owner, so they take no place of others; of forgotten facts,
# `held` is null.
LIVE_WITH_VECTORS = f"""
    select coalesce(sum(facts), 0)::bigint, coalesce(sum(facts * {VECTOR}), 0)::float8
    from {tallies.COUNTED}
    where not held or (%(with_held)s and held)
"""

ENDED = """
    from activity
    where namespace = %(namespace)s and due_at <= %(now)s::timestamptz + interval '1 second' and not retired
        and ends_at <= %(now)s and not held
"""

ENDED_FACTS = f"select count(*), coalesce(sum({VECTOR}), 0)::float8 {ENDED}"

ENDED_UNASKED = f"select count(*) {ENDED} and not asked_for(decay_class_source, expires_at, %(passed_at)s, %(now)s)"


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many facts or bytes a namespace may have, None for any; `row` are the bytes of a fact without its vector.

    The bytes of vectors are given for each of `dims` dimensions.
    """

    facts: int | None
    bytes: int | None
    row: float
    dims: int = 1

    def going(self, sizes: Sequence[float], left: int, vectors: float) -> int:
        """Return how many of the least valuable facts go until the rest fits.

        `sizes` are the bytes of their vectors, least valuable first, `vectors` those of all `left` facts together.
        """
        number = 0
        while number < len(sizes) and self.most_over(left - number, vectors) > 0:
            vectors -= sizes[number]
            number += 1
        return number

    def most_over(self, left: int, vectors: float) -> int:
        """Return how many of these facts go at most, which is where those that go have no vectors."""
        too_many = left - (left if self.facts is None else self.facts)
        if self.bytes is not None:
            too_large = left * self.row + self.dims * vectors - self.bytes
            too_many = max(too_many, min(math.ceil(too_large / max(self.row, 1)), left))
        return max(too_many, 0)


def over_capacity(db: Connection, url: str, namespace: int | None, now: datetime) -> dict[int, Capacity]:
    """Return the capacities of the namespaces that are over them, for one namespace or all.

    One in bytes is compared with an estimate: the average row of the database, read at its `url`, and the namespace's
    vectors.
    """
    wanted = namespaces.with_capacity(db, namespace)
    row, dims = facts.sizes(db, url) if any(size is not None for _, _, size in wanted) else (0.0, 0)
    found = {tenant: Capacity(most, size, row, dims) for tenant, most, size in wanted}
    return {tenant: one for tenant, one in found.items() if one.most_over(*counted_against_capacity(db, tenant, now))}


def live_with_vectors(db: Connection, namespace: int, *, with_held: bool = False) -> tuple[int, float]:
    """Return the live facts, without or with the held ones, and the bytes of their vectors for each dimension."""
    return db.execute(LIVE_WITH_VECTORS, {"namespace": namespace, "with_held": with_held}).fetchone() or (0, 0.0)


def counted_against_capacity(db: Connection, namespace: int, now: datetime) -> tuple[int, float]:
    """Return the facts that have not ended, and the bytes of their vectors for each dimension."""
    live, vectors = live_with_vectors(db, namespace)
    ended, their_vectors = db.execute(ENDED_FACTS, {"namespace": namespace, "now": now}).fetchone() or (0, 0.0)
    return live - ended, max(vectors - their_vectors, 0.0)


def count_ended_unasked(db: Connection, namespace: int, passed_at: datetime | None, now: datetime) -> int:
    """Return the number of facts that have ended without a request and are not held; `passed_at` is the last pass."""
    return number(db, ENDED_UNASKED, {"namespace": namespace, "passed_at": passed_at, "now": now})


def least_valuable_by(
    db: Connection, namespace: int, limit: int, now: datetime, until: datetime, *, every: bool = False
) -> list[tuple[UUID, float, float]]:
    """Return the least valuable facts that may go by an instant, least first.

    Each has the end of its pin (epoch seconds), and the bytes of its vector for each dimension.
    """
    given = {"namespace": namespace, "limit": limit, "now": now, "until": until, "all": every}
    return db.execute(LEAST_BY, given).fetchall()


def claim_least_valuable(db: Connection, namespace: int, limit: int, now: datetime) -> list[tuple[UUID, float]]:
    """Return the least valuable facts of a namespace, least first, locked until the commit.

    Each has the bytes of its vector for each dimension. Rows that are locked already are skipped.
    """
    return db.execute(CLAIM_LEAST, {"namespace": namespace, "limit": limit, "now": now}).fetchall()
