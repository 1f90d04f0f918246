"""Spells: the stretches between a fact's uses in which it faded, packed so that a row can keep the newest of them.

A use puts a new anchor in the place of the old one, of which nothing else tells afterwards. Of a spell that is over,
eleven bytes are kept: when it began, from when on the fact faded (later, where a pin held it), strength, coactivations.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.fading import Anchors, sustained
from workers.core.tiers import strength

MOST = 16
"""So many spells of a fact are kept."""

PACKED = struct.Struct(">IIHB")
LONGEST = MOST * PACKED.size
"""Bytes of all the spells that a fact may have."""

NEVER = 2**32 - 1
"""An instant that does not come; as the others in whole seconds since the epoch."""

STEPS = 2**16 - 1
"""The finest strength that can be told apart, as parts of 1."""

MANY = 255
"""Coactivations beyond which no more are told: whether they are more than five is all that a curve asks."""


@dataclass(frozen=True, slots=True)
class DecayInterval:
    """A stretch of time in which nobody used a fact: instants in epoch seconds, strength as it began."""

    begins: float
    fades_from: float
    strength: float
    coactivations: int


def over(before: Anchors, after: Anchors) -> list[bytes]:
    """Return for each fact the spell that a new anchor ends, packed; nothing where it goes on."""
    ended = after.last_seen_at > before.last_seen_at
    columns = (
        _seconds(before.last_seen_at),
        _seconds(sustained(before).last_seen_at),
        np.rint(strength(before.base, before.coactivations) * STEPS).astype(np.int64),
        np.clip(before.coactivations, 0, MANY),
    )
    rows = zip(ended.tolist(), *(column.tolist() for column in columns), strict=True)
    return [PACKED.pack(*rest) if is_over else b"" for is_over, *rest in rows]


def read(packed: bytes) -> list[DecayInterval]:
    """Return the spells of a fact, the oldest first."""
    return sorted(_each(packed), key=lambda interval: interval.begins)


def older(packed: bytes, seconds: float) -> bytes:
    """Return packed spells that were so many seconds earlier."""
    moved = (
        (max(begins - int(seconds), 0), from_ if from_ == NEVER else max(from_ - int(seconds), 0), *rest)
        for begins, from_, *rest in PACKED.iter_unpack(packed)
    )
    return b"".join(PACKED.pack(*one) for one in moved)


def _each(packed: bytes) -> Iterator[DecayInterval]:
    for begins, fades_from, parts, coactivations in PACKED.iter_unpack(packed):
        yield DecayInterval(begins, np.inf if fades_from == NEVER else fades_from, parts / STEPS, coactivations)


def _seconds(instants: Floats) -> Ints:
    return np.clip(instants, 0, NEVER).astype(np.int64)
