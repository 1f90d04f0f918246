"""An empty task of Ebb, which a worker includes: everything around a recall, without the recall."""

from typing import Any

from ebb.contract.operation import Timed

from workers.tasks.operation import internal
from workers.tasks.recall import LIMITS

EMPTY = "bench.empty"


@internal(EMPTY, Timed, **LIMITS)
def empty(_: Any, asked: Timed) -> dict[str, Any]:  # noqa: ARG001 - as every task takes it
    """Return a constant."""
    return {"results": []}
