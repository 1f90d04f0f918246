"""Repeated questions: the newest questions that strengthened a fact, packed into its row."""

import struct
from hashlib import sha256

PACKED = struct.Struct(">II")
MOST = 16
"""Questions kept per fact; older ones are dropped and would count again."""

LONGEST = MOST * PACKED.size
LATEST = 2**32 - 1


def key(question: str) -> int:
    """Return a question's 32-bit key, ignoring case and blanks."""
    return int.from_bytes(sha256(" ".join(question.casefold().split()).encode()).digest()[:4])


def is_repeat(asked: bytes, question: int, at: float, seconds: float) -> bool:
    """Return whether this question strengthened the fact within `seconds` of `at`."""
    return any(one == question and abs(at - then) < seconds for one, then in PACKED.iter_unpack(asked))


def with_question(asked: bytes, question: int, at: float, seconds: float) -> bytes:
    """Return the fact's questions with a new one in front, and without those older than `seconds`."""
    others = [PACKED.pack(one, then) for one, then in PACKED.iter_unpack(asked) if at - then < seconds]
    return b"".join([PACKED.pack(question, int(min(max(at, 0), LATEST))), *others])[:LONGEST]
