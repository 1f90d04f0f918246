"""Ending: when a fact ends by itself if it is never used again, and why, by the functions that passes use."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.fading import REASONS, FadingRules, ends
from workers.storage.activity import Activity
from workers.storage.lenient import FIRST, LAST

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND, LAST_SECOND = FIRST.timestamp(), LAST.timestamp()


@dataclass(frozen=True, slots=True)
class Ending:
    """When a fact ends by itself, and the reason, one of `REASONS`; neither if it never does."""

    at: datetime | None = None
    reason: str | None = None


NEVER = Ending()


def endings(rows: Activity, rules: FadingRules) -> dict[UUID, Ending]:
    """Return how live facts end by these rules, by id."""
    return dict(zip(rows.ids, endings_at(*ends(rows.anchors, rules)), strict=True))


def endings_at(ends_at: Floats, reasons: Ints) -> list[Ending]:
    """Return endings from instants (epoch seconds, infinite if never) and indexes into `REASONS`."""
    return [
        Ending(EPOCH + timedelta(seconds=min(max(at, FIRST_SECOND), LAST_SECOND)), REASONS[reason])
        if np.isfinite(at)
        else NEVER
        for at, reason in zip(ends_at.tolist(), reasons.tolist(), strict=True)
    ]
