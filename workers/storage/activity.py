"""Activity: when a fact was last used and its current decay state; updated by every touch."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from itertools import compress
from typing import Any
from uuid import UUID

import numpy as np

from workers.core import decay_intervals
from workers.core.arrays import Bools, Floats, Ints
from workers.core.episodes import NOT_YET, Branch
from workers.core.fading import Anchors, Faded, select
from workers.storage import columns
from workers.storage.connection import Connection, Cursor

PERMANENT = "permanent"

NAMES = (
    "namespace", "fact", "base", "coactivations", "last_seen_at", "confidence", "confirmed_at", "expires_at",
    "decay_class", "tier", "fidelity", "last_accessed_at", "held", "pinned_until", "halvings", "branch", "encoded_at",
    "occurred", "outrun_at", "stale", "decay_class_source", "value_rank",
)  # fmt: skip
COLUMNS = ", ".join(f"anchors.{name}" for name in NAMES) + ", date_part('epoch', anchors.due_at)"
"""The columns of the view `anchors` that `by_column` expects; the last one has no name there."""

ANCHORS = f"select {COLUMNS} from anchors"

KINDS: dict[str, type[np.generic]] = {
    "base": np.float64,
    "coactivations": np.int64,
    "last_seen_at": np.float64,
    "confidence": np.float64,
    "confirmed_at": np.float64,
    "expires_at": np.float64,
    "fidelity": np.int64,
    "pinned_until": np.float64,
    "halvings": np.int64,
    "branch": np.int64,
    "encoded_at": np.float64,
    "outrun_at": np.float64,
    "stale": np.bool_,
}
"""The numpy type of each column of `anchors` that is copied as it is."""

_PACKED = (*KINDS, "permanent", "last_accessed_at")
PACKED = f"""array_send(array[
        {", ".join(f"anchors.{name}" for name in KINDS if name != "stale")}, anchors.stale::int,
        (anchors.decay_class = '{PERMANENT}')::int, anchors.last_accessed_at
    ]::float8[])"""
"""One fact's anchors from the view `anchors` as an array in binary, for `unpacked`."""

ADD = """
    insert into activity (namespace, fact, segment, base, coactivations, last_seen_at, confidence,
        last_confirmed_at, expires_at, decay_class, decay_class_source, tier, fidelity, ends_at, due_at, branch,
        encoded_at, occurred, worth)
    select %(namespace)s, fact, segment, base, coactivations, to_timestamp(last_seen_at), confidence,
        to_timestamp(last_confirmed_at), to_timestamp(expires_at), decay_class, decay_class_source, tier,
        fidelity, to_timestamp(ends_at), to_timestamp(due_at), branch,
        case when branch in (1, 2) then to_timestamp(encoded_at) end, case when branch in (1, 2) then occurred end,
        fact_worth(content_salience, importance, 0)
    from unnest(%(ids)b::uuid[], %(segments)b::int[], %(base)b::float8[], %(coactivations)b::bigint[],
        %(last_seen_at)b::float8[], %(confidence)b::float8[], %(confirmed_at)b::float8[], %(expires_at)b::float8[],
        %(decay_classes)b::text[], %(decay_class_sources)b::text[], %(tier)b::int[], %(fidelity)b::int[],
        %(ends_at)b::float8[], %(due_at)b::float8[], %(branch)b::int[], %(encoded_at)b::float8[],
        %(occurred)b::bigint[])
        as new (fact, segment, base, coactivations, last_seen_at, confidence, last_confirmed_at, expires_at,
            decay_class, decay_class_source, tier, fidelity, ends_at, due_at, branch, encoded_at, occurred)
    join facts on facts.namespace = %(namespace)s and facts.id = fact
    order by fact
"""

THESE = f"{ANCHORS} where namespace = %(namespace)s and fact = any(%(ids)b)"

READ = f"{THESE} order by fact"
READ_LIVE = f"{THESE} and not retired order by fact"
LOCK = f"{READ} for no key update"

# Counters saturate at the maximum of their type. A held fact stays held until its end lies in the future again.
WRITE_USED = """
    update activity
    set base = new.base, coactivations = least(new.coactivations, 2147483647),
        last_seen_at = to_timestamp(new.last_seen_at), last_confirmed_at = to_timestamp(new.confirmed_at),
        expires_at = to_timestamp(new.expires_at), confidence = new.confidence, halvings = new.halvings,
        recall_count = least(recall_count::bigint + new.recalls, 2147483647),
        last_accessed_at = case when new.recalls > 0 then greatest(last_accessed_at, new.at) else last_accessed_at end,
        tier = new.tier, fidelity = new.fidelity, ends_at = to_timestamp(new.ends_at),
        due_at = to_timestamp(new.due_at), stale = new.stale, retired = false,
        held = held and to_timestamp(new.ends_at) <= new.at,
        spells = case when new.spell = '' then spells
            else substring(new.spell || coalesce(spells, '') for %(longest)s) end,
        asked = coalesce(new.asked, activity.asked)
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(base)b::float8[], %(coactivations)b::bigint[],
        %(last_seen_at)b::float8[], %(confidence)b::float8[], %(confirmed_at)b::float8[], %(expires_at)b::float8[],
        %(halvings)b::int[], %(tier)b::int[], %(fidelity)b::int[], %(ends_at)b::float8[], %(due_at)b::float8[],
        %(stale)b::bool[], %(recalls)b::int[], %(spells)b::bytea[],
        %(asked)b::bytea[], %(at)b::timestamptz[])
        as new (namespace, fact, base, coactivations, last_seen_at, confidence, confirmed_at, expires_at, halvings,
            tier, fidelity, ends_at, due_at, stale, recalls, spell, asked, at)
    where activity.namespace = new.namespace and activity.fact = new.fact
"""

SPELLS = "select spells from activity where namespace = %(namespace)s and fact = %(id)s"

# That a fact is outdated, or makes another one outdated, does not make it worth more. As to `+ 0`, see
# `server.OUTDATED`.
UPDATE_WORTH = """
    update activity set worth = weighed.worth
    from (
        select namespace + 0 as namespace, id, fact_worth(content_salience, importance, (
            select count(*) from links where links.namespace = facts.namespace and source = facts.id
                and type <> 'UPDATES'
        ) + (
            select count(*) from links where links.namespace = facts.namespace and target = facts.id
                and type <> 'UPDATES'
        )) as worth
        from facts where namespace = %(namespace)s and id = any(%(ids)b)
    ) as weighed
    where activity.namespace = weighed.namespace and activity.fact = weighed.id and activity.worth <> weighed.worth
"""

CONFIRM = """
    update activity set confirmations = least(confirmations::bigint + new.times, 2147483647)
    from unnest(%(ids)s::uuid[], %(times)s::int[]) as new (fact, times)
    where activity.namespace = %(namespace)s and activity.fact = new.fact
"""

# A forgotten or superseded fact keeps only its signature.
RETIRE = """
    update activity
    set due_at = 'infinity', held = false, retired = true, fidelity = case when fidelity = 0 then 0 else 32767 end
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where activity.namespace = gone.namespace and activity.fact = gone.id
"""

LASTING = "select fact from activity where namespace = %(namespace)s and fact = any(%(ids)s) and ends_at > %(now)s"

ENDED = """
    select fact from activity
    where namespace = %(namespace)s and fact = any(%(ids)s)
        and has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
"""


@dataclass(frozen=True, slots=True)
class Activity:
    """Rows of `activity` by column; `explicit` is true where the owner chose the decay class."""

    namespaces: Ints
    ids: list[UUID]
    anchors: Anchors
    decay_classes: list[str]
    tier: Ints
    last_accessed_at: Floats
    held: Bools
    occurred: Ints
    explicit: Bools
    due_at: Floats
    value_rank: Floats

    def __len__(self) -> int:
        """Return the number of facts."""
        return len(self.ids)

    def among(self, ids: Collection[UUID]) -> "Activity":
        """Return the rows of these facts."""
        return self.only(np.array([id_ in ids for id_ in self.ids], dtype=np.bool_))

    def only(self, keep: Bools) -> "Activity":
        """Return the rows where `keep` is true."""

        def kept(column: Any) -> Any:
            if isinstance(column, Anchors):
                return select(column, keep)
            return [*compress(column, keep.tolist())] if isinstance(column, list) else column[keep]

        return Activity(**{one.name: kept(getattr(self, one.name)) for one in fields(self)})


def anchors_for(columns: dict[str, Any], decay_classes: Sequence[str | None], fidelity: Sequence[int]) -> Anchors:
    """Return the anchors of new facts, given the columns that differ between them."""
    count = len(columns["base"])
    new = {
        "decay_class": decay_classes,
        "fidelity": fidelity,
        "pinned_until": [-np.inf] * count,
        "halvings": [0] * count,
        "outrun_at": [NOT_YET] * count,
        "stale": [False] * count,
    }
    return anchors_of(columns | new, np.maximum(columns["encoded_at"], columns["last_seen_at"]))


def anchors_of(columns: Mapping[str, Sequence[Any]], silent_since: Floats) -> Anchors:
    """Return anchors from columns named as in the view `anchors`, and the last use of each fact (epoch seconds)."""
    given: dict[str, Any] = {name: np.array(columns[name], dtype=kind) for name, kind in KINDS.items()}
    permanent = np.array([name == PERMANENT for name in columns["decay_class"]], dtype=np.bool_)
    return Anchors(**given, permanent=permanent | (given["branch"] == Branch.PERMANENT), silent_since=silent_since)


def unpacked(packed: Sequence[bytes]) -> Anchors:
    """Return the anchors of facts from the results of `PACKED`."""
    given = dict(zip(_PACKED, columns.floats_of(packed, len(_PACKED)).T, strict=True))
    last_use = np.maximum.reduce([given[name] for name in ("last_seen_at", "last_accessed_at", "encoded_at")])
    own: dict[str, Any] = {name: given[name].astype(kind) for name, kind in KINDS.items()}
    permanent = (given["permanent"] == 1) | (own["branch"] == Branch.PERMANENT)
    return Anchors(**own, permanent=permanent, silent_since=last_use)


def add(
    db: Connection,
    namespace: int,
    ids: Sequence[UUID],
    segments: Sequence[int],
    anchors: Anchors,
    decay_classes: Sequence[str | None],
    decay_class_sources: Sequence[str | None],
    occurred: Sequence[int],
    faded: Faded,
) -> None:
    """Write the activity of new facts; `occurred` is the namespace's number of turns when each was stored."""
    given = (
        of_anchors(anchors)
        | of_faded(faded)
        | {
            "namespace": namespace,
            "ids": columns.uuids(ids),
            "segments": columns.ints(segments),
            "decay_classes": list(decay_classes),
            "decay_class_sources": list(decay_class_sources),
            "occurred": columns.bigints(occurred),
        }
    )
    db.execute(ADD, given)


def lock(db: Connection, namespace: int, ids: Sequence[UUID]) -> Activity:
    """Return the activity of the facts that exist, locked until the commit."""
    return ask_lock(db, namespace, ids)()


def ask_lock(db: Connection, namespace: int, ids: Sequence[UUID]) -> Callable[[], Activity]:
    """Send the query of `lock`; return its reader."""
    return partial(rows_of, db.execute(LOCK, {"namespace": namespace, "ids": columns.uuids(ids)}, binary=True))


def read(db: Connection, namespace: int, ids: Sequence[UUID]) -> Activity:
    """Return the activity of the facts that exist."""
    return rows_of(db.execute(READ, {"namespace": namespace, "ids": columns.uuids(ids)}, binary=True))


def read_live(db: Connection, namespace: int, ids: Sequence[UUID]) -> Activity:
    """Return the activity of the facts that are neither forgotten nor superseded."""
    return rows_of(db.execute(READ_LIVE, {"namespace": namespace, "ids": columns.uuids(ids)}, binary=True))


def write_used(
    db: Connection,
    rows: Activity,
    anchors: Anchors,
    faded: Faded,
    at: datetime | Sequence[datetime],
    recalls: Ints | int = 0,
    asked: Sequence[bytes] = (),
) -> None:
    """Write new anchors after uses at `at`, or each at its own instant, and add the previous ones to the intervals.

    `recalls` is added to each fact's counter; `asked` has each fact's packed recent questions, if they change.
    """
    given = (
        of_keys(rows)
        | of_anchors(anchors)
        | of_faded(faded)
        | {
            "recalls": columns.ints(np.broadcast_to(recalls, len(rows))),
            "spells": decay_intervals.over(rows.anchors, anchors),
            "longest": decay_intervals.LONGEST,
            "asked": [*asked] if asked else [None] * len(rows),
            "at": [at] * len(rows) if isinstance(at, datetime) else list(at),
        }
    )
    db.execute(WRITE_USED, given)


def decay_intervals_of(db: Connection, namespace: int, id_: UUID) -> list[decay_intervals.DecayInterval]:
    """Return a fact's decay intervals before its last use, oldest first."""
    row = db.execute(SPELLS, {"namespace": namespace, "id": id_}).fetchone()
    return decay_intervals.read(row[0]) if row and row[0] else []


def update_worth(db: Connection, namespace: int, ids: Collection[UUID]) -> None:
    """Recompute the part of the facts' value that follows from content, importance and links."""
    lock(db, namespace, list(ids))
    db.execute(UPDATE_WORTH, {"namespace": namespace, "ids": list(ids)})


def confirm(db: Connection, namespace: int, ids: Sequence[UUID], times: Sequence[int]) -> None:
    """Add to the facts' numbers of confirmations."""
    db.execute(CONFIRM, {"namespace": namespace, "ids": list(ids), "times": list(times)})


def retire(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Exclude forgotten and superseded facts from later passes."""
    db.execute(RETIRE, {"namespaces": list(namespaces), "ids": list(ids)})


def lasting(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> set[UUID]:
    """Return which facts had not ended by `now` by the settings by which they were last written."""
    if not ids:
        return set()
    return {id_ for (id_,) in db.execute(LASTING, {"namespace": namespace, "ids": list(ids), "now": now})}


def ended(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> set[UUID]:
    """Return the facts that have ended by decay or expiry at `now`, whether or not a pass has run."""
    return {id_ for (id_,) in db.execute(ENDED, {"namespace": namespace, "ids": list(ids), "now": now})}


def of_keys(rows: Activity) -> dict[str, Any]:
    """Return the keys of facts as parameters of a statement."""
    return {"namespaces": columns.ints(rows.namespaces), "ids": columns.uuids(rows.ids)}


def of_anchors(anchors: Anchors) -> dict[str, Any]:
    """Return anchors as parameters of a statement."""
    return {
        "base": columns.floats(anchors.base),
        "coactivations": columns.bigints(anchors.coactivations),
        "last_seen_at": columns.floats(anchors.last_seen_at),
        "confidence": columns.floats(anchors.confidence),
        "confirmed_at": columns.floats(anchors.confirmed_at),
        "expires_at": columns.floats(anchors.expires_at),
        "branch": columns.ints(anchors.branch),
        "encoded_at": columns.floats(anchors.encoded_at),
    }


def of_faded(faded: Faded) -> dict[str, Any]:
    """Return a decayed state as parameters of a statement."""
    return {
        "tier": columns.ints(faded.tier),
        "fidelity": columns.ints(faded.fidelity),
        "halvings": columns.ints(faded.halvings),
        "stale": columns.bools(faded.stale),
        "ends_at": columns.floats(faded.ends_at),
        "due_at": columns.floats(faded.due_at),
    }


def rows_of(cursor: Cursor) -> Activity:
    """Return the rows of a statement with `ANCHORS` by column."""
    return by_column(cursor.fetchall())


def by_column(found: Sequence[tuple[Any, ...]]) -> Activity:
    """Return rows of `COLUMNS` by column."""
    names = (*NAMES, "due")
    by_name: dict[str, Any] = dict(zip(names, zip(*found, strict=True) if found else [()] * len(names), strict=True))
    times = [np.array(by_name[name], dtype=np.float64) for name in ("last_seen_at", "last_accessed_at", "encoded_at")]
    return Activity(
        namespaces=np.array(by_name["namespace"], dtype=np.int64),
        ids=list(by_name["fact"]),
        anchors=anchors_of(by_name, np.maximum.reduce(times)),
        decay_classes=list(by_name["decay_class"]),
        tier=np.array(by_name["tier"], dtype=np.int64),
        last_accessed_at=times[1],
        held=np.array(by_name["held"], dtype=np.bool_),
        occurred=np.array(by_name["occurred"], dtype=np.int64),
        explicit=np.array([source == "explicit" for source in by_name["decay_class_source"]], dtype=np.bool_),
        due_at=np.array(by_name["due"], dtype=np.float64),
        value_rank=np.array(by_name["value_rank"], dtype=np.float64),
    )


KEPT_LIFETIME = """
    select coalesce(kept_lifetime, 'infinity') from activity
    where namespace = %(namespace)s and fact = %(fact)s
"""

PIN_UNTIL = """
    update activity set pinned_until = to_timestamp(%(until)s), kept_lifetime = %(kept_lifetime)s
    where namespace = %(namespace)s and fact = %(fact)s
"""


def kept_lifetime(db: Connection, namespace: int, fact: UUID) -> float:
    """Return the lifetime in seconds that is saved while a fact is pinned without end; infinity if it has none."""
    row = db.execute(KEPT_LIFETIME, {"namespace": namespace, "fact": fact}).fetchone()
    return float(row[0]) if row else math.inf


def pin_until(db: Connection, namespace: int, fact: UUID, until: float, lifetime: float) -> None:
    """Pin a fact until an instant (epoch seconds); a pin without end (infinity) saves its lifetime."""
    kept = lifetime if math.isinf(until) and math.isfinite(lifetime) else None
    db.execute(PIN_UNTIL, {"namespace": namespace, "fact": fact, "until": until, "kept_lifetime": kept})


# A concurrent second delivery waits here until the first one commits or rolls back.
CLAIM_USES = """
    insert into uses (namespace, id)
    select %(namespace)s, id from unnest(%(ids)b::uuid[]) as given (id)
    order by id
    on conflict do nothing
    returning id
"""

# Relative to the newest use, not to now: messages delivered just before an outage may be redelivered after it. Uses
# ahead of the clock were counted before it was set back.
DROP_OLD_USES = """
    delete from uses
    where counted_at < (select max(counted_at) from uses where counted_at <= statement_timestamp()) - interval '1 day'
"""


def claim_uses(db: Connection, namespace: int, ids: Collection[UUID]) -> set[UUID]:
    """Record the ids of uses for deduplication; return those that were not recorded within the last day."""
    if not ids:
        return set()
    return {id_ for (id_,) in db.execute(CLAIM_USES, {"namespace": namespace, "ids": columns.uuids(list(ids))})}


def drop_old_uses(db: Connection) -> int:
    """Delete ids of uses that are a day older than the newest one; return how many."""
    return db.execute(DROP_OLD_USES).rowcount
