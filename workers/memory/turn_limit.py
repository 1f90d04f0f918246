"""The turn limit: episodes end after a number of turns; each new turn of a session counts once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from workers.context import Context
from workers.core.episodes import NOT_YET, Branch, past_turn_limit
from workers.core.fading import as_written
from workers.memory.namespace_settings import NamespaceRules, namespace_rules, rules_for
from workers.memory.unpack import known_by_id
from workers.storage import due, turns
from workers.storage.activity import Activity
from workers.storage.connection import Connection
from workers.storage.facts import Fact

AT_ONCE = 1_000
"""Episodes that are updated in one statement."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The number of turns of a namespace, and whether new facts added any."""

    turns: int = 0
    grown: bool = False


def add_turns_within(db: Connection, tenant: int, added: Sequence[Fact], *, count_turns: bool = True) -> Turns:
    """Count the new turns of a batch of facts together, so that it does not age its own episodes.

    Turns of other facts are not counted again, and facts without session or turn do not count.
    """
    if not count_turns or not any(row.session is not None and row.turn is not None for row in added):
        return Turns(turns.count_turns(db, tenant) if any(row.kind == "episodic" for row in added) else 0)
    before, new = turns.advance(db, tenant, [row.id for row in added])
    return Turns(before + new, new > 0)


def apply_within(context: Context, db: Connection, tenant: int, counted: Turns, most: float, now: datetime) -> None:
    """After new turns, end persistent episodes of more than `most` turns ago; locked ones wait for the next turn."""
    if not counted.grown or counted.turns <= most:
        return
    found = AT_ONCE
    while found == AT_ONCE:
        rows = turns.past_limit(db, tenant, counted.turns - int(most), AT_ONCE)
        _apply(context, db, rows, now)
        found = len(rows)


def _apply(context: Context, db: Connection, rows: Activity, now: datetime) -> None:
    if not rows.ids:
        return
    aged = with_turn_limit(rows, namespace_rules(context, db, rows.namespaces), now)
    write_turn_limit(db, rows, aged)
    known = known_by_id(context, db, int(rows.namespaces[0]), rows.ids)
    live = aged.only(np.array([known[id_].live for id_ in rows.ids], dtype=np.bool_) & ~rows.held)
    if live.ids:
        rules = rules_for(context, db, live.namespaces)
        due.write_faded(db, live, as_written(live.anchors, now.timestamp(), rules), live.held)


def with_turn_limit(rows: Activity, own: NamespaceRules, now: datetime) -> Activity:
    """Return facts with the turn limit applied at an instant; the count of a pinned episode restarts."""
    anchors, instant = rows.anchors, now.timestamp()
    over = (anchors.branch == Branch.PERSISTENT) & past_turn_limit(rows.occurred, own.turns, own.most_turns)
    pinned = over & (anchors.pinned_until > instant)
    outrun_at = np.where(over & ~pinned, np.minimum(anchors.outrun_at, instant), NOT_YET)
    return replace(
        rows, occurred=np.where(pinned, own.turns, rows.occurred), anchors=replace(anchors, outrun_at=outrun_at)
    )


def write_turn_limit(db: Connection, before: Activity, after: Activity) -> None:
    """Write the differences that `with_turn_limit` made in locked facts."""
    differs = (before.anchors.outrun_at != after.anchors.outrun_at) | (before.occurred != after.occurred)
    if differs.any():
        turns.write_ages(db, after.only(differs))
