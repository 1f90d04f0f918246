"""Episodes: when they age out, by turns and days, and when they become stale without use."""

from enum import IntEnum

import numpy as np

from workers.core.arrays import Bools, Each, Floats, Ints
from workers.core.confidence import DAY, MOMENT

NOT_YET = np.inf


class Branch(IntEnum):
    """How hygiene treats a fact: cull by confidence, age out, mark stale, or nothing."""

    SEMANTIC = 0
    PERSISTENT = 1
    PERMANENT = 2
    CHUNK = 3


OF_DOCUMENTS = ("chunk", "item")
"""Kinds of facts that are documents or parts of them, which are changed at their source."""

DURABILITIES = {"persistent": Branch.PERSISTENT, "permanent": Branch.PERMANENT}


def branch(kind: str, durability: str | None) -> Branch:
    """Return the branch of a fact of that kind; episodes are persistent by default."""
    if kind == "episodic":
        return DURABILITIES[durability or "persistent"]
    return Branch.CHUNK if kind in OF_DOCUMENTS else Branch.SEMANTIC


def durability(code: int) -> str | None:
    """Return the durability of episodes in a branch; None for other branches."""
    return {int(number): name for name, number in DURABILITIES.items()}.get(code)


def past_turn_limit(occurred: Ints, turns: Ints, limit: Each) -> Bools:
    """Return which episodes lie more than `limit` turns before turn `turns`."""
    return np.maximum(turns - occurred, 0) > limit


def aged_out_at(encoded_at: Floats, outrun_at: Floats, days: Each, both: Bools | bool) -> Floats:
    """Return when persistent episodes age out (epoch seconds): at the first of both limits, or at the later one.

    `outrun_at` is when the turn limit was passed, infinite until then.
    """
    with np.errstate(invalid="ignore"):  # only episodes have an encoding time
        outlived = encoded_at + days * DAY + MOMENT
        return np.where(both, np.maximum(outlived, outrun_at), np.minimum(outlived, outrun_at))


def stale_at(silent_since: Floats, days: Each) -> Floats:
    """Return when permanent episodes become stale that were neither stated nor recalled since."""
    return silent_since + days * DAY + MOMENT
