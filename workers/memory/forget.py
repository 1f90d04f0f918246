"""Forget: a tombstone hides a fact from every reader; its text stays, so that it can be brought back."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.retention import Outcome

from workers.context import Context
from workers.core.fading import REASONS, ends, is_over
from workers.errors import InvalidInputError
from workers.memory.namespace_settings import rules_for
from workers.storage import (
    activity,
    deep,
    events,
    facts,
    namespaces,
    signatures,
    statements,
    tombstones,
    turns,
    vectors,
)
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction
from workers.storage.facts import WISHED


def forget(
    context: Context,
    namespace: str,
    ids: Sequence[UUID],
    now: datetime,
    *,
    purge: bool = False,
    run: UUID | None = None,
) -> list[Outcome | InvalidInputError]:
    """Forget facts because their owner asks for it; return what became of each, in order.

    Pinned and permanent ones too; what decay has forgotten becomes forgotten on request. With a turn goes what an LLM
    drew from it alone. With `purge` they are erased at once. What was restored after `now` is refused, so that a late
    repeat cannot undo it.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return [Outcome(id=id_, action="unknown") for id_ in ids]
        outcomes = _forget(db, tenant.id, [*ids, *turns.drawn_from(db, tenant.id, ids)], now, purge=purge, run=run)
    return [outcomes[id_] for id_ in ids]


def _forget(
    db: Connection, tenant: int, ids: Sequence[UUID], now: datetime, *, purge: bool, run: UUID | None
) -> dict[UUID, Outcome | InvalidInputError]:
    deep.surface(db, tenant, ids)
    activity.lock(db, tenant, ids)
    before = tombstones.standings(db, tenant, ids, now)
    restored = events.later(db, tenant, list(before), ["restored"], now)
    going = [id_ for id_ in before if id_ not in restored]
    requested = [id_ for id_ in going if before[id_].reason not in WISHED]
    forget_within(db, [tenant] * len(requested), requested, ["asked"] * len(requested), now, run)
    if purge:
        tombstones.erase(db, [tenant] * len(going), going)
    purged = statements.forgotten_of(db, tenant, [id_ for id_ in ids if id_ not in before])
    outcomes = {id_: standing(id_, *purged[id_]) if id_ in purged else Outcome(id=id_, action="unknown") for id_ in ids}
    outcomes |= {one.id: standing(one.id, one.forgotten_at, one.reason) for one in before.values()}
    outcomes |= {id_: standing(id_, now, "asked", "forgotten") for id_ in requested}
    outcomes |= {id_: outcomes[id_].model_copy(update={"action": "purged"}) for id_ in going if purge}
    return outcomes | {id_: came_later(id_, "restored", at, now) for id_, at in restored.items()}


def standing(id_: UUID, at: datetime | None, reason: str | None, action: str = "unchanged") -> Outcome:
    """Return the outcome for a fact that is forgotten, since when and why."""
    return Outcome(id=id_, action=action, forgotten_at=at, reason=reason)


def came_later(id_: UUID, what: str, then: datetime, now: datetime) -> InvalidInputError:
    """Return the error for a request that was overtaken by a later one: a message may arrive twice, and late."""
    return InvalidInputError(f"id: {id_} was {what} at {then}, later than this was asked, at {now}; ask again.")


def forget_within(
    db: Connection,
    tenants: Sequence[int],
    ids: Sequence[UUID],
    reasons: Sequence[str],
    now: datetime,
    run: UUID | None = None,
    details: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Forget facts, each of its own namespace and for its own reason; return how many were not forgotten for it yet.

    `run` is the pass, consolidation or review that forgets them, by which they can be restored together; `details` of
    each are for its history.
    The vectors go at once, for they are large and can be made again from the texts.
    """
    if not ids:
        return 0
    retire_within(db, tenants, ids)
    forgotten = facts.forget(db, tenants, ids, reasons, now, run, details)
    if not set(WISHED).isdisjoint(reasons):
        statements.add_forgotten(db, tenants, ids)
    return forgotten


def retire_within(db: Connection, tenants: Sequence[int], ids: Sequence[UUID]) -> None:
    """Take facts out of every search for live ones and every later pass; of their vectors the signature stays."""
    vectors.drop(db, tenants, ids)
    signatures.retire(db, tenants, ids)
    activity.retire(db, tenants, ids)


def forget_ended(context: Context, db: Connection, tenant: int, hashes: Sequence[bytes], now: datetime) -> int:
    """Forget facts that are over but that no pass has met yet, so that the same statement can be stored again."""
    ended = activity.ended_among(db, tenant, hashes, now)
    return forget_over(context, db, tenant, activity.lock(db, tenant, ended), now) if ended else 0


def forget_over(context: Context, db: Connection, tenant: int, rows: Activity, now: datetime) -> int:
    """Forget those of a namespace's live, locked facts that have ended but that no pass has met yet; return how many.

    What the next pass would hold stays.
    """
    unseen = activity.ended(db, tenant, rows.ids, now)
    ends_at, reason = ends(rows.anchors, rules_for(context, db, rows.namespaces))
    held = np.array([id_ not in unseen for id_ in rows.ids], dtype=np.bool_)
    over = is_over(ends_at, held, now.timestamp())
    gone, reasons = rows.only(over), [REASONS[code] for code in reason[over]]
    return forget_within(db, gone.namespaces.tolist(), gone.ids, reasons, now)
