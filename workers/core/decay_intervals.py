"""Decay intervals: periods between uses in which a fact faded, packed so that its row holds the newest ones.

A use replaces the anchor, so past intervals are recorded here. Each takes eleven bytes: its start, the instant from
which the fact faded (later if it was pinned), strength and coactivations.
"""

import struct
from dataclasses import dataclass

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.fading import Anchors, with_pins
from workers.core.tiers import strength

MOST = 16
"""Intervals kept per fact."""

PACKED = struct.Struct(">IIHB")
LONGEST = MOST * PACKED.size
"""Bytes of all intervals of a fact."""

NEVER = 2**32 - 1
"""Stands for infinity among instants, which are whole seconds since the epoch."""

STEPS = 2**16 - 1
"""Strength is stored as a multiple of 1 / STEPS."""

MANY = 255
"""Maximum of stored coactivations; a curve only needs to know whether there are more than five."""


@dataclass(frozen=True, slots=True)
class DecayInterval:
    """A period without use: instants in epoch seconds, strength at its start."""

    begins: float
    fades_from: float
    strength: float
    coactivations: int


def over(before: Anchors, after: Anchors) -> list[bytes]:
    """Return, packed, the interval that each fact's new anchor ends; empty if the access time did not change."""
    ended = after.last_seen_at > before.last_seen_at
    columns = (
        _seconds(before.last_seen_at),
        _seconds(with_pins(before).last_seen_at),
        np.rint(strength(before.base, before.coactivations) * STEPS).astype(np.int64),
        np.clip(before.coactivations, 0, MANY),
    )
    rows = zip(ended.tolist(), *(column.tolist() for column in columns), strict=True)
    return [PACKED.pack(*rest) if is_over else b"" for is_over, *rest in rows]


def read(packed: bytes) -> list[DecayInterval]:
    """Return the intervals of a fact, oldest first; those of one second in the order in which they ended."""
    found = [
        DecayInterval(begins, np.inf if fades_from == NEVER else fades_from, parts / STEPS, coactivations)
        for begins, fades_from, parts, coactivations in PACKED.iter_unpack(packed)
    ]
    # They are packed newest first, and sorting keeps the order of those that begin in the same second.
    return sorted(found, key=lambda interval: interval.begins, reverse=True)[::-1]


def older(packed: bytes, seconds: float) -> bytes:
    """Return packed intervals moved `seconds` into the past."""
    moved = (
        (max(begins - int(seconds), 0), from_ if from_ == NEVER else max(from_ - int(seconds), 0), *rest)
        for begins, from_, *rest in PACKED.iter_unpack(packed)
    )
    return b"".join(PACKED.pack(*one) for one in moved)


def _seconds(instants: Floats) -> Ints:
    return np.clip(instants, 0, NEVER).astype(np.int64)
