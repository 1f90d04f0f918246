"""The state of the whole system for the overview: queues, workers and lag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.http.door import Door
from api.transport import AWAY
from workers.coordination import outbox, signals, timings
from workers.coordination.redis import trouble
from workers.coordination.timings import Histogram
from workers.errors import UnavailableError
from workers.queues import MAINTENANCE, RECALL, STORE

QUEUES = (RECALL, STORE, MAINTENANCE)
ROWS = 40
"""Rows of the table below a chart; longer series are thinned out."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Seconds from a write until it can be read, median and 95th percentile; None before the first write."""

    writes: int
    half: float | None
    most: float | None


def figures(door: Door) -> dict[str, Any]:
    """Return what Redis knows of queues, workers and writes.

    Raises:
        UnavailableError: Redis does not answer.
    """
    try:
        alive = signals.alive(door.redis, door.client.seconds())
        return {
            "queues": [
                {"name": queue, "waiting": door.waiting(queue), "workers": sum(queue == own for own, _ in alive)}
                for queue in QUEUES
            ],
            "outbox": outbox.size(door.redis),
            "lag": lag(timings.read(door.redis).get(timings.WRITE)),
            "flower_url": door.settings.flower_url,
        }
    except AWAY as error:
        raise UnavailableError(trouble(error)) from None


def course(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return queues and lag over time, each for its chart and its table; lag in milliseconds."""
    lags = {"median": found["half"], "95 %": found["most"]}
    milliseconds = {name: [None if one is None else one * 1000 for one in values] for name, values in lags.items()}
    return [
        _chart("Waiting tasks", "", found["at"], found["waiting"], ("a", "b", "c")),
        _chart("Write to readable", " ms", found["at"], milliseconds, ("e", "f")),
    ]


def _chart(
    title: str, unit: str, at: Sequence[float], lists: Mapping[str, Sequence[float | None]], tones: Sequence[str]
) -> dict[str, Any]:
    series = [
        {"name": name, "tone": tone, "values": values}
        for (name, values), tone in zip(lists.items(), tones, strict=True)
    ]
    shown = range(len(at) - 1, -1, -max(1, -(-len(at) // ROWS)))
    return {
        "title": title,
        "unit": unit,
        "chart": {"at": at, "unit": unit, "series": series},
        "rows": [(at[i], [one["values"][i] for one in series]) for i in shown],
    }


def lag(writes: Histogram | None) -> Lag:
    """Return the lag that a histogram of writes shows."""
    counts = writes[0] if writes else []
    return Lag(counts[-1] if counts else 0, timings.quantile(counts, 0.5), timings.quantile(counts, 0.95))
