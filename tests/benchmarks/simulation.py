"""A simulation of lanes and workers: requests arrive at random, and each child processes one at a time."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import simpy

Process: TypeAlias = Generator[Any, Any, None]


@dataclass(frozen=True, slots=True)
class Lane:
    """Requests of one kind: arrivals per second, and measured service times in seconds."""

    rate: float
    service: Sequence[float]


def simulate(
    lanes: Mapping[str, Lane], children: int, seconds: float, *, transit: float = 0.0, seed: int = 0
) -> dict[str, list[float]]:
    """Return for each lane the seconds from request to answer, during `seconds` of load.

    Arrivals are independent (Poisson), service times are drawn from the measured ones, and all lanes share the
    children, first come, first served. `transit` is what an answer takes besides waiting and service.
    """
    world, rng = simpy.Environment(), np.random.default_rng(seed)
    shared = simpy.Resource(world, capacity=children)
    answered: dict[str, list[float]] = {name: [] for name in lanes}
    for name, lane in lanes.items():
        world.process(_arrivals(world, shared, lane, answered[name], rng, transit))
    world.run(until=seconds)
    return answered


def _arrivals(
    world: Any, shared: Any, lane: Lane, answered: list[float], rng: np.random.Generator, transit: float
) -> Process:
    while True:
        yield world.timeout(rng.exponential(1 / lane.rate))
        world.process(_request(world, shared, float(rng.choice(lane.service)), answered, transit))


def _request(world: Any, shared: Any, service: float, answered: list[float], transit: float) -> Process:
    began = world.now
    with shared.request() as child:
        yield child
        yield world.timeout(service)
    answered.append(world.now - began + transit)


MOST_BUSY = 0.95
"""A larger share of busy children lets queues grow for longer than a simulation runs."""


def children_for(lanes: Mapping[str, Lane], most_p95: float, *, transit: float = 0.0) -> int:
    """Return the minimum number of children with which 95 % of the requests of each lane are answered in time."""
    busy = sum(lane.rate * float(np.mean(lane.service)) for lane in lanes.values())
    longest = max(float(np.mean(lane.service)) for lane in lanes.values())
    seconds = max(4_000 / min(lane.rate for lane in lanes.values()), 500 * longest)
    children = ceil(busy / MOST_BUSY)
    while True:
        answered = simulate(lanes, children, seconds, transit=transit).values()
        if all(np.quantile(one, 0.95) <= most_p95 for one in answered):
            return children
        children += max(1, children // 50)
