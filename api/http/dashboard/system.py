"""The state of the whole system, as the overview shows it to whom that is open: queues, workers, and how far behind."""

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
"""Instants in the table beside a chart; of more, some are left out."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Within how many seconds half of all writes could be read, and 19 of 20; none before the first write."""

    writes: int
    half: float | None
    most: float | None


def figures(door: Door) -> dict[str, Any]:
    """Return what Redis knows of queues, workers and writes, and what was last measured of the database.

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


def course(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the queues and the lag over time, each as a chart and as a table take it; lag in milliseconds."""
    lags = {"half within": told["half"], "19 of 20 within": told["most"]}
    milliseconds = {name: [None if one is None else one * 1000 for one in values] for name, values in lags.items()}
    return [
        _told("Tasks that wait", "", told["at"], told["waiting"], ("a", "b", "c")),
        _told("From write to readable", " ms", told["at"], milliseconds, ("e", "f")),
    ]


def _told(
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
    """Return how long writes took until they could be read, by their histogram."""
    counts = writes[0] if writes else []
    return Lag(counts[-1] if counts else 0, timings.quantile(counts, 0.5), timings.quantile(counts, 0.95))
