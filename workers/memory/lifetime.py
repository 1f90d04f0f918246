"""Life: how long stored facts live, and why: their decay class, which words or who gave it, and when they end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.core import lifetime
from workers.memory.decay_rules import hygiene, rules_of
from workers.memory.ending import NEVER, Ending, endings
from workers.storage import activity, classes
from workers.storage.classes import Classed
from workers.storage.connection import Connection
from workers.storage.namespaces import Namespace

GIVEN = "given"
EARLIER = "earlier words or rules"
UNCLASSED = {
    "semantic": "not classified",
    "episodic": "an episode ages by turns and days",
    "chunk": "a part of a document stays with its file",
    "item": "an item stays until it is replaced",
}
"""Why a fact has no class, by its kind."""


@dataclass(frozen=True, slots=True)
class Life:
    """The decay class of a live fact, why it has that, when it ends if it is never used, and whether it is over."""

    decay_class: str | None = None
    reason: str | None = None
    ending: Ending = NEVER
    over: bool = False


UNKNOWN = Life()


def lives(
    context: Context,
    db: Connection,
    owner: Namespace,
    added: Mapping[UUID, Classed],
    ids: Sequence[UUID],
    now: datetime,
) -> dict[UUID, Life]:
    """Return how long those of these facts live that are live; of those just `added` it is known what they say."""
    rows = activity.read_live(db, owner.id, ids)
    known = classes.classed(db, owner.id, [id_ for id_ in rows.ids if id_ not in added]) | dict(added)
    ends = endings(rows, rules_of(context, hygiene(context, owner.settings)))
    told = zip(rows.ids, rows.decay_classes, rows.held.tolist(), strict=True)
    return {
        id_: Life(
            decay_class or None,
            class_reason(decay_class or None, known[id_]),
            ends[id_],
            over=not held and (at := ends[id_].at) is not None and at <= now,
        )
        for id_, decay_class, held in told
        if id_ in known
    }


def class_reason(decay_class: str | None, fact: Classed) -> str:
    """Return why a fact has its decay class: because it was given, or which of its words gave it."""
    if decay_class is None:
        return UNCLASSED[fact.kind]
    if fact.source == "explicit":
        return GIVEN
    by_words, reason = lifetime.classified(fact.entity, fact.key, fact.value, fact.text)
    return reason if by_words == decay_class else EARLIER
