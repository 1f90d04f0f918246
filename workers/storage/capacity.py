"""Capacity: the number of facts over a namespace's limit, and the least valuable ones."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.storage import facts, tallies
from workers.storage.connection import Connection, number
from workers.storage.namespaces import with_capacity

# Uses the index on the value. Ended facts are left to passes; permanent, pinned and document facts are exempt.
LEAST = """
    select fact from activity
    where namespace = %(namespace)s and not retired and ends_at > %(now)s and branch <> 3
        and decay_class is distinct from 'permanent' and coalesce(pinned_until <= %(now)s, true)
    order by value_rank(worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations), fact
    limit %(limit)s
"""

CLAIM = f"{LEAST} for no key update skip locked"

# Includes facts whose pin ends by an instant, with the end of the pin, and as many more facts as are pinned. `all` also
# gives those that have ended, as they may live on by other settings, see `due.COMPUTED_AGAIN`.
LEAST_BY = """
    select fact, coalesce(date_part('epoch', pinned_until), '-infinity') from activity
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
# `held` is null. Two bytes a dimension; `fidelity` is the divisor of a vector's dimensions.
COUNTED = f"""
    select coalesce(sum(facts), 0)::bigint,
        coalesce(sum(facts * case when fidelity between 1 and 32766 then 2.0 / fidelity else 0 end), 0)::float8
    from {tallies.COUNTED}
    where not held
"""

OVER = """
    select count(*) from activity
    where namespace = %(namespace)s and due_at <= %(now)s::timestamptz + interval '1 second' and not retired
        and ends_at <= %(now)s and not held
"""


def over(db: Connection, url: str, namespace: int | None, now: datetime) -> dict[int, int]:
    """Return the number of facts over capacity by namespace, for one namespace or all."""
    return {tenant: left - may for tenant, (left, may) in allowed(db, url, namespace, now).items() if left > may}


def allowed(db: Connection, url: str, namespace: int | None, now: datetime) -> dict[int, tuple[int, int]]:
    """Return (facts that have not ended, capacity) by namespace, for one namespace or all."""
    return allowed_by(db, url, with_capacity(db, namespace), now)


def allowed_by(
    db: Connection, url: str, capacities: Sequence[tuple[int, int | None, int | None]], now: datetime
) -> dict[int, tuple[int, int]]:
    """Return (facts that have not ended, capacity) by namespace, for these (namespace, facts, bytes).

    A capacity in bytes is converted with an estimate: the average row of the database, read at its `url`, and the
    namespace's vectors.
    """
    row, dims = facts.sizes(db, url) if any(size is not None for _, _, size in capacities) else (0.0, 0)
    found = {}
    for tenant, most, size in capacities:
        live, vectors = db.execute(COUNTED, {"namespace": tenant}).fetchone() or (0, 0.0)
        left = live - ended(db, tenant, now)
        may = left if most is None else most
        if size is not None and live:
            may = min(may, int(size / max(row + dims * vectors / live, 1)))
        found[tenant] = (left, may)
    return found


def ended(db: Connection, namespace: int, now: datetime) -> int:
    """Return the number of facts that have ended and are not held."""
    return number(db, OVER, {"namespace": namespace, "now": now})


def least(db: Connection, namespace: int, limit: int, now: datetime) -> list[UUID]:
    """Return the least valuable facts of a namespace, least first."""
    return [id_ for (id_,) in db.execute(LEAST, {"namespace": namespace, "limit": limit, "now": now})]


def least_by(
    db: Connection, namespace: int, limit: int, now: datetime, until: datetime, *, every: bool = False
) -> dict[UUID, float]:
    """Return the least valuable facts that may go by an instant, least first, with the ends of their pins (epoch)."""
    given = {"namespace": namespace, "limit": limit, "now": now, "until": until, "all": every}
    return dict(db.execute(LEAST_BY, given).fetchall())


def claim(db: Connection, namespace: int, limit: int, now: datetime) -> list[UUID]:
    """Return the least valuable facts, locked until the commit; rows that are locked already are skipped."""
    return [id_ for (id_,) in db.execute(CLAIM, {"namespace": namespace, "limit": limit, "now": now})]
