"""Lifetimes: the decay class of a fact, and when and why it ends without further use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from workers.context import Context
from workers.core import lifetime
from workers.core.arrays import Floats, Ints
from workers.core.fading import REASONS, Anchors, FadingRules, ends
from workers.memory.namespace_settings import careful, hygiene, rules_for, rules_of
from workers.storage import activity, due, edits
from workers.storage.connection import Connection
from workers.storage.edits import Classed
from workers.storage.lenient import FIRST, LAST
from workers.storage.namespaces import Namespace

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND, LAST_SECOND = FIRST.timestamp(), LAST.timestamp()


@dataclass(frozen=True, slots=True)
class Ending:
    """When a fact ends, and the reason, one of `REASONS`; both None if it never does."""

    at: datetime | None = None
    reason: str | None = None


NEVER = Ending()


def endings(ids: Sequence[UUID], anchors: Anchors, rules: FadingRules) -> dict[UUID, Ending]:
    """Return the endings of live facts, by id."""
    return dict(zip(ids, endings_at(*ends(anchors, rules)), strict=True))


def instant_at(seconds: float) -> datetime | None:
    """Return an instant from epoch seconds, clamped to the range of `datetime`; None if it is infinite."""
    return EPOCH + timedelta(seconds=min(max(seconds, FIRST_SECOND), LAST_SECOND)) if math.isfinite(seconds) else None


def endings_at(ends_at: Floats, reasons: Ints) -> list[Ending]:
    """Return endings from instants (epoch seconds, infinite if never) and indexes into `REASONS`."""
    return [
        Ending(instant_at(at), REASONS[reason]) if math.isfinite(at) else NEVER
        for at, reason in zip(ends_at.tolist(), reasons.tolist(), strict=True)
    ]


def date_ends(context: Context, db: Connection, tenant: int, ids: Sequence[UUID]) -> None:
    """Write when facts that were forgotten or superseded ended by themselves, which archives and deep memory lack.

    A read as of an instant after that hides them.
    """
    rows = activity.read(db, tenant, ids) if ids else None
    if rows:
        due.write_ends(db, rows, ends(rows.anchors, rules_for(context, db, rows.namespaces))[0])


GIVEN = "given"
EARLIER = "earlier words or rules"
UNCLASSED = {
    "semantic": "not classified",
    "episodic": "an episode ages by turns and days",
    "chunk": "a part of a document stays with its file",
    "item": "an item stays until it is replaced",
}
"""Why a fact has no decay class, by kind."""


@dataclass(frozen=True, slots=True)
class Life:
    """The decay class of a live fact, the reason for it, its ending without further use, and whether it is over."""

    decay_class: str | None = None
    reason: str | None = None
    ending: Ending = NEVER
    over: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of `ebb.contract.facts.Lives`."""
        known = {"decay_class": self.decay_class, "class_reason": self.reason}
        return known | {"ends_at": self.ending.at, "ends_for": self.ending.reason}


UNKNOWN = Life()


def lives(
    context: Context,
    db: Connection,
    owner: Namespace,
    added: Mapping[UUID, Classed],
    ids: Sequence[UUID],
    now: datetime,
) -> dict[UUID, Life]:
    """Return the lives of the live facts among `ids`; `added` has the texts of new ones."""
    rows = activity.read_live(db, owner.id, ids)
    known = edits.classed(db, owner.id, [id_ for id_ in rows.ids if id_ not in added]) | dict(added)
    ends = endings(rows.ids, rows.anchors, rules_of(context, hygiene(context, owner.settings)))
    columns = zip(rows.ids, rows.decay_classes, rows.held.tolist(), strict=True)
    is_careful = careful(context, owner.settings)
    return {
        id_: _life(decay_class or None, known[id_], ends[id_], now, held=held, careful=is_careful)
        for id_, decay_class, held in columns
        if id_ in known
    }


def first_lives(
    context: Context,
    owner: Namespace,
    added: Mapping[UUID, Classed],
    endings: Mapping[UUID, tuple[str | None, Ending]],
    now: datetime,
) -> dict[UUID, Life]:
    """Return the lives of facts just added and not changed since, from their decay classes and endings."""
    is_careful = careful(context, owner.settings)
    return {
        id_: _life(decay_class, added[id_], ending, now, held=False, careful=is_careful)
        for id_, (decay_class, ending) in endings.items()
    }


def _life(decay_class: str | None, known: Classed, ending: Ending, now: datetime, *, held: bool, careful: bool) -> Life:
    over = not held and ending.at is not None and ending.at <= now
    return Life(decay_class, class_reason(decay_class, known, careful=careful), ending, over)


def class_reason(decay_class: str | None, fact: Classed, *, careful: bool) -> str:
    """Return why a fact has its decay class: it was given, or by which words it was derived."""
    if decay_class is None:
        return UNCLASSED[fact.kind]
    if fact.source == "explicit":
        return GIVEN
    if fact.reason is not None:
        return fact.reason
    by_words, reason = lifetime.classified(fact.entity, fact.key, fact.value, fact.text, careful=careful)
    return reason if by_words == decay_class else EARLIER
