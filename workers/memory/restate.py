"""Repeated statements: how they differ from the known fact, and how they renew its lifetime."""

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.facts import EDITABLE, NewFact

from workers.context import Context
from workers.core.arrays import Bools
from workers.core.episodes import NOT_YET, Branch
from workers.core.fading import Anchors, as_written, renewed, select
from workers.memory.edit import VALIDITY
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, turns
from workers.storage.activity import Activity
from workers.storage.connection import Connection
from workers.storage.edits import Editable

COMPARED = ("kind", "session", "turn", "source_date", "created_at")
COMPARED_ELSEWHERE = ("kind", "created_at")
"""The fields compared where the statement was repeated at another place, which is recorded."""

STARTING = ("salience", "strength", "coactivations", "last_seen_at")
"""Fields of a fact's initial decay state, which a repeated statement does not change."""


def explicit(fact: NewFact) -> dict[str, Any]:
    """Return the editable fields that the caller gave, without a decay class that was derived from words."""
    given = {name: getattr(fact, name) for name in EDITABLE if name in fact.model_fields_set}
    if fact.decay_class_source == "auto":
        given.pop("decay_class", None)
    return {name: value for name, value in given.items() if value not in (None, [])}


def ignored(fact: NewFact, known: Editable, changed: Collection[str]) -> list[str]:
    """Return what of a repeated statement is ignored: `case`, `spacing`, or names of fields that were not `changed`.

    A repeat with the fact's own id may give the initial decay state again.
    """
    starting = () if fact.id == known.id else STARTING
    is_elsewhere = fact.session is not None and (fact.session, fact.turn) != (known.session, known.turn)
    names = (*(COMPARED_ELSEWHERE if is_elsewhere else COMPARED), *VALIDITY, *starting)
    unchanged = fact.model_fields_set.difference(changed)
    given = [name for name in names if name in unchanged and getattr(fact, name) is not None]
    other = [name for name in given if name in STARTING or getattr(fact, name) != getattr(known, name)]
    return [*_differences(fact.text, known.text), *other]


def _differences(one: str, other: str) -> list[str]:
    """Return how two texts of the same statement differ."""
    if one == other:
        return []
    words, others = (unicodedata.normalize("NFC", text).split() for text in (one, other))
    found = ["case"] if words != others else []
    return found if " ".join(words) == one and " ".join(others) == other and found else [*found, "spacing"]


EPISODES = (Branch.PERSISTENT, Branch.PERMANENT)


def restate_within(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime) -> None:
    """Restart the lifetimes of live facts at `now`, unless a later use or statement has restarted them.

    Statements and uses commute, so they may arrive in any order.
    """
    instant = now.timestamp()
    activity.ask_lock(db, tenant, ids)
    there = activity.read_live(db, tenant, ids)  # read after the lock: a fact may have been forgotten meanwhile
    encoded = there.only(_is_episode(there) & (there.anchors.encoded_at < instant))
    turns.encode_again(db, tenant, encoded.ids, now)
    anchors = _restated(there, instant)
    changed = _changed(there.anchors, anchors)
    rows = there.only(changed)
    if rows.ids:
        anchors = select(anchors, changed)
        faded = as_written(anchors, instant, rules_for(context, db, rows.namespaces))
        activity.write_used(db, rows, anchors, faded, now)


def _is_episode(rows: Activity) -> Bools:
    return np.isin(rows.anchors.branch, EPISODES)


def _restated(rows: Activity, instant: float) -> Anchors:
    """Return anchors confirmed at an instant or later; the lifetime of a pinned fact starts at the end of its pin."""
    own = rows.anchors
    expires = renewed(own, rows.decay_classes, np.maximum(own.pinned_until, instant))
    confirmed = own.confirmed_at < instant
    encoded = _is_episode(rows) & (own.encoded_at < instant)
    return replace(
        own,
        confirmed_at=np.maximum(own.confirmed_at, instant),
        halvings=np.where(confirmed | (own.expires_at < expires), 0, own.halvings),
        expires_at=np.where(confirmed, expires, np.maximum(own.expires_at, expires)),
        encoded_at=np.where(encoded, instant, own.encoded_at),
        outrun_at=np.where(encoded, NOT_YET, own.outrun_at),
    )


def _changed(before: Anchors, after: Anchors) -> Bools:
    return (
        (before.confirmed_at != after.confirmed_at)
        | (before.expires_at != after.expires_at)
        | (before.encoded_at != after.encoded_at)
    )
