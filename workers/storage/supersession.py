"""Supersession: which facts took the place of which, and until when those held."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from workers.errors import UnavailableError
from workers.storage.connection import Connection

# What has ended is as good as forgotten, whether or not a pass has come.
STATES = """
    select id, hash, superseded_at is not null as superseded, superseded_by, supersedes_id,
        forgotten_at is not null
            or has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s) as forgotten
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)s)
"""

# Nothing is superseded before it was told, and an end of validity that lies before the beginning means: never true.
CLOSE = """
    update facts
    set superseded_at = greatest(created_at, old.told_at), valid_until = greatest(valid_from, old.until)
    from unnest(%(ids)s::uuid[], %(told_at)s::timestamptz[], %(until)s::timestamptz[]) as old (id, told_at, until)
    where facts.namespace = %(namespace)s and facts.id = old.id and superseded_at is null
"""

LINK_OLD = """
    update facts set superseded_by = pair.new
    from unnest(%(old)s::uuid[], %(new)s::uuid[]) as pair (old, new)
    where facts.namespace = %(namespace)s and facts.id = pair.old
"""

LINK_NEW = """
    update facts set supersedes_id = pair.old
    from unnest(%(old)s::uuid[], %(new)s::uuid[]) as pair (old, new)
    where facts.namespace = %(namespace)s and facts.id = pair.new and supersedes_id is null
"""


# The events keep what the columns said. The newer fact keeps `supersedes_id`: a store that comes twice must find it.
REOPEN = """
    with old as (
        select id, superseded_at, superseded_by from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and superseded_at is not null and forgotten_at is null
    ),
    back as (
        update facts set superseded_at = null, superseded_by = null, valid_until = null
        from old
        where facts.namespace = %(namespace)s and facts.id = old.id
        returning facts.id, old.superseded_at, old.superseded_by
    ),
    noted as (
        select id as fact, superseded_at as at, 'superseded' as what,
            jsonb_strip_nulls(jsonb_build_object('by', superseded_by)) as details
        from back
        union all
        select id, %(now)s, 'restored', jsonb_strip_nulls(jsonb_build_object(
            'reason', case when superseded_by is null then 'retracted' else 'superseded' end, 'fact', superseded_by))
        from back
        union all
        select newer.id, %(now)s, 'supersession undone', jsonb_build_object('id', back.id)
        from back
        join facts as newer on newer.namespace = %(namespace)s and newer.id = back.superseded_by
    )
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, fact, at, what, details from noted
"""


@dataclass(frozen=True, slots=True)
class State:
    """How a fact stands to others: whether it was superseded and by whom, what it superseded, whether it is gone."""

    id: UUID
    hash: bytes
    superseded: bool
    superseded_by: UUID | None
    supersedes_id: UUID | None
    forgotten: bool

    @property
    def live(self) -> bool:
        """Return whether readers see it."""
        return not self.superseded and not self.forgotten

    @property
    def retracted(self) -> bool:
        """Return whether it holds no longer though nobody took its place."""
        return self.superseded and self.superseded_by is None


@dataclass(frozen=True, slots=True)
class Closed:
    """A fact that no longer holds: since when that is known, and until when it was true."""

    id: UUID
    told_at: datetime
    until: datetime


def states(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> dict[UUID, State]:
    """Return how those of these facts stand that exist, as of `now`."""
    with db.cursor(row_factory=class_row(State)) as cursor:
        rows = cursor.execute(STATES, {"namespace": namespace, "ids": list(ids), "now": now})
        return {state.id: state for state in rows}


def close(db: Connection, namespace: int, closed: Sequence[Closed]) -> None:
    """Note that live facts no longer hold, and nothing of who took their place (C-S17)."""
    given = {
        "namespace": namespace,
        "ids": [one.id for one in closed],
        "told_at": [one.told_at for one in closed],
        "until": [one.until for one in closed],
    }
    db.execute(CLOSE, given)


def link(db: Connection, namespace: int, old: Sequence[UUID], new: Sequence[UUID]) -> None:
    """Note of closed facts who took their place, and of those whom they replaced; the first replaced one counts."""
    pairs = {"namespace": namespace, "old": list(old), "new": list(new)}
    db.execute(LINK_OLD, pairs)
    db.execute(LINK_NEW, pairs)


def reopen(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Let superseded facts hold again, and record that with them and with those that had taken their place.

    Raises:
        UnavailableError: a fact that says the same was stored at this moment; the transaction is lost.
    """
    try:
        db.execute(REOPEN, {"namespace": namespace, "ids": list(ids), "now": now})
    except psycopg.errors.UniqueViolation:
        raise UnavailableError("A fact that says the same was stored at this very moment: try again.") from None
