"""Which facts age out rather than fade: episodes, by the turns and days that passed since, or by their silence."""

from enum import IntEnum

import numpy as np

from workers.core.arrays import Bools, Each, Floats, Ints
from workers.core.confidence import DAY, MOMENT

NOT_YET = np.inf


class Branch(IntEnum):
    """What hygiene does to a fact: cull it by confidence, let it age out, only mark it stale, or nothing."""

    SEMANTIC = 0
    PERSISTENT = 1
    PERMANENT = 2
    CHUNK = 3


DURABILITIES = {"persistent": Branch.PERSISTENT, "permanent": Branch.PERMANENT}


def branch(kind: str, durability: str | None) -> Branch:
    """Return the branch of a fact of that kind; an episode is persistent by default."""
    if kind == "episodic":
        return DURABILITIES[durability or "persistent"]
    return Branch.CHUNK if kind in ("chunk", "item") else Branch.SEMANTIC


def durability(code: int) -> str | None:
    """Return the durability of facts of a branch; none of those that are no episodes."""
    return {int(number): name for name, number in DURABILITIES.items()}.get(code)


def outrun(occurred: Ints, turns: Ints, limit: Each) -> Bools:
    """Return which episodes more than `limit` turns have passed since, of `turns` in all."""
    passed: Bools = np.maximum(turns - occurred, 0) > limit
    return passed


def aged_out_at(encoded_at: Floats, outrun_at: Floats, days: Each, both: Bools | bool) -> Floats:
    """Return when persistent episodes age out (epoch seconds): at the first of both limits, or only at both.

    `outrun_at` is when the turns had passed, infinite until then.
    """
    with np.errstate(invalid="ignore"):  # what is no episode was never encoded
        outlived = encoded_at + days * DAY + MOMENT
        return np.where(both, np.maximum(outlived, outrun_at), np.minimum(outlived, outrun_at))


def stale_at(silent_since: Floats, days: Each) -> Floats:
    """Return when permanent episodes are stale that were neither stated nor recalled since."""
    stale: Floats = silent_since + days * DAY + MOMENT
    return stale
