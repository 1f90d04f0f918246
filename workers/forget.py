"""Forget: a tombstone hides a fact from every reader; its text stays, so that it can be brought back."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.storage import activity, facts, signatures, vectors
from workers.storage.connection import Connection


def forget_within(
    db: Connection, tenants: Sequence[int], ids: Sequence[UUID], reasons: Sequence[str], now: datetime
) -> int:
    """Forget facts, each of its own namespace and for its own reason; return how many were live until now.

    The vectors go at once, for they are large and can be made again from the texts.
    """
    if not ids:
        return 0
    retire_within(db, tenants, ids)
    return facts.forget(db, tenants, ids, reasons, now)


def retire_within(db: Connection, tenants: Sequence[int], ids: Sequence[UUID]) -> None:
    """Take facts out of every search for live ones and every later pass; of their vectors the signature stays."""
    vectors.drop(db, tenants, ids)
    signatures.retire(db, tenants, ids)
    activity.retire(db, tenants, ids)


def forget_ended(db: Connection, tenant: int, hashes: Sequence[bytes], now: datetime) -> int:
    """Forget facts that are over but that no pass has met yet, so that the same can be said anew."""
    ended = activity.ended_among(db, tenant, hashes, now)
    ids, reasons = [id_ for id_, _ in ended], [reason for _, reason in ended]
    return forget_within(db, [tenant] * len(ids), ids, reasons, now)
