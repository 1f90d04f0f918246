"""Repeats: which questions strengthened a fact lately, packed so that its row can hold the newest ones."""

import struct
from hashlib import sha256

PACKED = struct.Struct(">II")
MOST = 16
"""Past so many questions within a cool-down the oldest is not known any more, and would count again."""

LONGEST = MOST * PACKED.size
LATEST = 2**32 - 1


def key(question: str) -> int:
    """Return the 32 bits by which a question is known, whatever its case and blanks."""
    return int.from_bytes(sha256(" ".join(question.casefold().split()).encode()).digest()[:4])


def is_repeat(asked: bytes, question: int, at: float, seconds: float) -> bool:
    """Return whether a fact was strengthened by this question less than so many seconds before or after `at`."""
    return any(one == question and abs(at - then) < seconds for one, then in PACKED.iter_unpack(asked))


def noted(asked: bytes, question: int, at: float, seconds: float) -> bytes:
    """Return the questions of a fact with this one, asked at `at`, in front, and without those that are over."""
    others = [
        PACKED.pack(one, then) for one, then in PACKED.iter_unpack(asked) if one != question and at - then < seconds
    ]
    return b"".join([PACKED.pack(question, int(min(max(at, 0), LATEST))), *others])[:LONGEST]
