"""Visible facts: those that reads return at an instant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ebb.contract.recall import Filters

from workers.core.fading import REASONS
from workers.storage import columns, words
from workers.storage.candidates import FILTERED, ITEM_ENDS, Scope, quoted
from workers.storage.connection import Connection, fetch_all, fetch_one, number

VISIBLE = """
    select id, kind, text, category, entity, key, value, importance, decay_class, decay_class_source, tags, (
        select role from facts where facts.namespace = remembered.namespace and facts.id = remembered.id
    ) as role, (
        select coalesce(source_date, created_at) from facts
        where facts.namespace = remembered.namespace and facts.id = remembered.id
    ) as said_at, coalesce(pinned_until > %(now)s, false) as pinned
    from remembered
"""
"""The columns of `VisibleFact`; each statement excludes ended facts itself."""

AMONG = f"""
    {VISIBLE}
    where namespace = %(namespace)s and id = any(%(ids)s)
        and not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
"""

# Ordered so that facts about the same key are adjacent. From the start if the fact to continue after was erased, as its
# place is unknown then.
FOLLOWING = f"""
    {VISIBLE}
    where namespace = %(namespace)s and kind = %(kind)s
        and not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and coalesce((coalesce(folded(entity), ''), coalesce(folded(key), ''), id) > (
            select coalesce(folded(entity), ''), coalesce(folded(key), ''), id
            from facts where namespace = %(namespace)s and id = %(after)s::uuid
        ), true)
    order by coalesce(folded(entity), ''), coalesce(folded(key), ''), id
    limit %(limit)s
"""

LATE = "10 minutes"
"""A use still counts if a pass forgot its fact at most this long afterwards."""

# A use counts if the fact was live when it was used: no pass has forgotten it yet, or one did a little later because it
# had ended, and no equal fact was stored since. As to `+ 0`, see `server.OUTDATED`.
REACHED = f"""
    with instants as materialized (
        select at, outlook_of(%(namespace)s, at) as outlook from unnest(%(instants)b::timestamptz[]) as given (at)
    )
    select id, forgotten_at, coalesce(asked, '') as asked
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    cross join lateral (select (%(at)b::timestamptz[])[array_position(%(ids)b::uuid[], id)] as at) as used
    where facts.namespace = %(namespace)s and id = any(%(ids)b) and superseded_at is null
        and not has_ended(
            row(activity.*)::activity, (select outlook from instants where instants.at = used.at), used.at
        )
        and coalesce({ITEM_ENDS} > used.at, true)
        and (forgotten_at is null
            or forgotten_reason = any(%(reasons)s) and forgotten_at <= used.at + %(late)s::interval
                and not exists (
                    select from facts as other
                    where other.namespace = %(namespace)s and other.hash = facts.hash
                        and other.forgotten_at is null and other.superseded_at is null
                ))
"""

COUNT = """
    select count(*) from remembered
    where namespace = %(namespace)s and kind = %(kind)s
        and not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
"""


@dataclass(frozen=True, slots=True)
class VisibleFact:
    """A visible fact."""

    id: UUID
    kind: str
    text: str
    category: str | None
    entity: str | None
    key: str | None
    value: str | None
    importance: float
    role: str | None
    said_at: datetime
    decay_class: str | None
    decay_class_source: str | None
    tags: list[str]
    pinned: bool


def among(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> dict[UUID, VisibleFact]:
    """Return the facts that are visible at `now`, by id."""
    given = {"namespace": namespace, "ids": list(ids), "now": now}
    return {one.id: one for one in fetch_all(db, VisibleFact, AMONG, given)}


def following(
    db: Connection, namespace: int, kind: str, after: UUID | None, now: datetime, limit: int
) -> list[VisibleFact]:
    """Return the next visible facts of a kind, ordered by entity and key, after one of them or from the start."""
    given = {"namespace": namespace, "kind": kind, "after": after, "now": now, "limit": limit}
    return fetch_all(db, VisibleFact, FOLLOWING, given)


def count(db: Connection, namespace: int, kind: str, now: datetime) -> int:
    """Return the number of facts of a kind that are visible at `now`."""
    return number(db, COUNT, {"namespace": namespace, "kind": kind, "now": now})


def ask_reached(
    db: Connection, namespace: int, uses: Mapping[UUID, datetime]
) -> Callable[[], dict[UUID, tuple[datetime | None, bytes]]]:
    """Send the query for the facts that were visible at the instants of their `uses`; return its reader.

    It gives when a pass forgot each fact, and its recent questions. Includes facts that a pass forgot at most ten
    minutes after the use because they had ended.
    """
    given = {
        "namespace": namespace,
        "ids": columns.uuids(list(uses)),
        "at": list(uses.values()),
        "instants": list({*uses.values()}),
        "late": LATE,
        "reasons": list(REASONS),
    }
    rows = db.execute(REACHED, given)
    return lambda: {id_: (forgotten_at, asked) for id_, forgotten_at, asked in rows}


# Ids are no order of time: those of repeatable writes are hashes. Facts stored together differ by their turns. As to
# `+ 0`, see `server.OUTDATED`.
PAGE = f"""
    select facts.created_at, coalesce(turn, -1) as turn, facts.id
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s
        and (%(id)s::uuid is null
            or (facts.created_at, coalesce(turn, -1), facts.id) < (%(created_at)s, %(turn)s::numeric, %(id)s))
        and num_nonnulls(forgotten_at, superseded_at) = 0
        and {FILTERED}
        and not has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and coalesce({ITEM_ENDS} > %(now)s, true)
    order by facts.created_at desc, coalesce(turn, -1) desc, facts.id desc
    limit %(limit)s offset %(offset)s
"""

# The condition is that of the index of facts by their entity.
PAGE_OF_ENTITY = PAGE.replace(
    "num_nonnulls(forgotten_at, superseded_at) = 0",
    "facts.entity is not null and forgotten_at is null and superseded_at is null",
)

# The planner takes few facts of a namespace to be live, so it would read all of a large one and sort them.
BY_INDEX, BY_ANY = (
    f"select set_config('enable_seqscan', '{value}', true), set_config('enable_bitmapscan', '{value}', true)"
    for value in ("off", "on")
)

# Facts with a common tag, category or session are found among the newest ones, those with a rare one by its index, of
# which all matches are read.
AMONG_NEWEST = 5_000
PAGE_AMONG_NEWEST = PAGE.replace(
    "from facts\n",
    """from (
        select * from facts
        where namespace = %(namespace)s and num_nonnulls(forgotten_at, superseded_at) = 0
            and (%(created_at)s::timestamptz is null or created_at <= %(created_at)s)
        order by created_at desc, coalesce(turn, -1) desc, id desc
        limit %(among)s
    ) as facts
""",
)
# `coalesce` as in `candidates.MATCHES`: the planner would read all of the index of newest facts.
PAGE_BY_TEXT_INDEX = PAGE.replace(
    "where facts.namespace = %(namespace)s\n",
    "where facts.namespace + 0 = %(namespace)s and facts.search @@ %(words)s::tsquery\n",
).replace("num_nonnulls(forgotten_at, superseded_at) = 0", "coalesce(forgotten_at, superseded_at) is null")

IDS_OF_PINNED = "select fact from activity where namespace = %(namespace)s and pinned_until > %(now)s"
IDS_OF_SESSION = """
    select id from facts where namespace = %(namespace)s and session = any(%(sessions)s::jsonb[])
    union all
    select fact from occurrences where namespace = %(namespace)s and session = any(%(sessions)s::jsonb[])
"""
PAGE_OF_PINNED = PAGE.replace(
    "where facts.namespace = %(namespace)s\n",
    f"where facts.namespace = %(namespace)s and facts.id = any(array({IDS_OF_PINNED}))\n",
).replace("num_nonnulls(forgotten_at, superseded_at) = 0", "coalesce(forgotten_at, superseded_at) is null")
PAGE_OF_SESSION = PAGE_OF_PINNED.replace(IDS_OF_PINNED, IDS_OF_SESSION)

PLACE = """
    select created_at, coalesce(turn, -1) as turn, id from facts where namespace = %(namespace)s and id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a fact in a list, newest first."""

    created_at: datetime
    turn: int
    id: UUID


FIRST: dict[str, Any] = dict.fromkeys(("created_at", "turn", "id"))


def place_of(db: Connection, namespace: int, id_: UUID) -> Place | None:
    """Return the place of a fact, even of a forgotten one; None if there is no such fact."""
    return fetch_one(db, Place, PLACE, {"namespace": namespace, "id": id_})


def page(
    db: Connection, namespace: int, scope: Scope, limit: int, *, after: Place | None = None, offset: int = 0
) -> list[Place]:
    """Return the places of the next visible facts that match the filters, newest first.

    New facts shift an offset, but not a page `after` a place.
    """
    given = {"namespace": namespace, "limit": limit, "offset": offset} | scope.parameters
    given |= asdict(after) if after else FIRST
    if scope.filters.entity is not None:
        return fetch_all(db, Place, PAGE_OF_ENTITY, given)
    lexemes = _lexemes(db, namespace, scope.filters)
    rare = _by_index(scope.filters, lexemes)
    if rare is None:
        db.execute(BY_INDEX)
        found = fetch_all(db, Place, PAGE, given)
        db.execute(BY_ANY)
        return found
    newest = fetch_all(db, Place, PAGE_AMONG_NEWEST, given | {"among": AMONG_NEWEST})
    if len(newest) == limit:
        return newest
    return fetch_all(db, Place, rare, given | {"words": " & ".join(map(quoted, lexemes))})


def _by_index(filters: Filters, lexemes: Sequence[str]) -> str | None:
    """Return the statement that finds facts by the most selective filter with an index, or None if there is none."""
    if filters.session is not None:
        return PAGE_OF_SESSION
    if lexemes:
        return PAGE_BY_TEXT_INDEX
    return PAGE_OF_PINNED if filters.pinned else None


def _lexemes(db: Connection, namespace: int, filters: Filters) -> list[str]:
    """Return the lexemes that all facts with the tag and category of the filters have; none if neither is given."""
    found = [] if filters.tag is None else [f"tag {filters.tag}"]
    if filters.category is not None:
        found += words.lexemes(db, filters.category)
    return [f"namespace {namespace}", *found] if found else []
