"""Due: the facts whose next change has come, claimed segment by segment, oldest first."""

from datetime import datetime

from workers.core.arrays import Bools
from workers.core.fading import Faded
from workers.storage.activity import Activity, rows_of
from workers.storage.connection import Connection

# Locked rows are passed over: whoever holds them, a touch or another pass, sets when they are due next.
CLAIM = """
    select namespace, fact, base, coactivations, last_seen_at, confidence, confirmed_at, expires_at, decay_class, tier,
        fidelity, last_accessed_at, held
    from anchors
    where segment = %(segment)s and due_at <= %(now)s
    order by due_at
    limit %(limit)s
    for no key update skip locked
"""

PREVIEW = """
    select namespace, fact, base, coactivations, last_seen_at, confidence, confirmed_at, expires_at, decay_class, tier,
        fidelity, last_accessed_at, held
    from anchors
    where segment = %(segment)s and (due_at <= %(now)s or (%(with_held)s and held and ends_at <= %(now)s))
    order by due_at, namespace, fact
    offset %(offset)s
    limit %(limit)s
"""

WRITE_FADED = """
    update activity
    set tier = new.tier, fidelity = new.fidelity, ends_at = to_timestamp(new.ends_at),
        due_at = to_timestamp(new.due_at), held = new.held
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(tier)b::int[], %(fidelity)b::int[], %(ends_at)b::float8[],
        %(due_at)b::float8[], %(held)b::bool[]) as new (namespace, fact, tier, fidelity, ends_at, due_at, held)
    where activity.namespace = new.namespace and activity.fact = new.fact
"""

# One probe of the index a segment; counting costs only what is due.
SEGMENTS = """
    select series.segment, due.facts
    from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
    cross join lateral (
        select count(*) as facts from activity
        where activity.segment = series.segment
            and (due_at <= %(now)s or (%(with_held)s and held and ends_at <= %(now)s))
    ) as due
    where due.facts > 0
"""

TAKE_UP_HELD = "update activity set due_at = ends_at where held"


def claim(db: Connection, segment: int, now: datetime, limit: int) -> Activity:
    """Return what is due in a segment, oldest first, locked until the commit; what others hold is passed over."""
    return rows_of(db.execute(CLAIM, {"segment": segment, "now": now, "limit": limit}).fetchall())


def preview(db: Connection, segment: int, now: datetime, limit: int, offset: int, *, with_held: bool) -> Activity:
    """Return a page of what is due in a segment, or would be if held facts were taken up, oldest first and unlocked."""
    given = {"segment": segment, "now": now, "limit": limit, "offset": offset, "with_held": with_held}
    return rows_of(db.execute(PREVIEW, given).fetchall())


def write_faded(db: Connection, rows: Activity, faded: Faded, held: Bools) -> None:
    """Write what a pass found: tier, fidelity, end, and when each fact is due next."""
    given = {
        "namespaces": rows.namespaces.tolist(),
        "ids": rows.ids,
        "tier": faded.tier.tolist(),
        "fidelity": faded.fidelity.tolist(),
        "ends_at": faded.ends_at.tolist(),
        "due_at": faded.due_at.tolist(),
        "held": held.tolist(),
    }
    db.execute(WRITE_FADED, given)


def segments(db: Connection, now: datetime, *, with_held: bool = False) -> dict[int, int]:
    """Return how many facts are due in each segment that has any, or would be if held facts were taken up."""
    return dict(db.execute(SEGMENTS, {"now": now, "with_held": with_held}).fetchall())


def take_up_held(db: Connection) -> int:
    """Make facts due again that a pass held back at the forget limit; return how many."""
    return db.execute(TAKE_UP_HELD).rowcount
