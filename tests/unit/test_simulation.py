"""The simulation of lanes and workers agrees with queueing theory where that has an answer."""

import numpy as np
import pytest

from tests.benchmarks.simulation import Lane, children_for, simulate

EXPONENTIAL = -np.log(1 - (np.arange(1_000) + 0.5) / 1_000) / 10
"""Quantiles of service times of a tenth of a second on average."""


@pytest.mark.parametrize("rate", [3.0, 6.0])
def test_one_child_makes_requests_wait_as_long_as_theory_says(rate: float) -> None:
    answered = simulate({"recall": Lane(rate, EXPONENTIAL)}, 1, 8_000)["recall"]
    assert np.mean(answered) == pytest.approx(1 / (10 - rate), rel=0.08)  # M/M/1


def test_lanes_that_share_children_have_equal_waits_and_transit_is_added() -> None:
    lanes = {"recall": Lane(3.0, EXPONENTIAL), "store": Lane(3.0, EXPONENTIAL)}
    apart = simulate(lanes, 2, 8_000, transit=1.0)
    assert np.mean(apart["recall"]) == pytest.approx(np.mean(apart["store"]), rel=0.1)
    assert min(apart["recall"]) > 1.0


def test_enough_children_are_found() -> None:
    lanes = {"recall": Lane(50.0, [0.1])}
    children = children_for(lanes, 0.15)
    assert children > 5
    assert np.quantile(simulate(lanes, children, 400)["recall"], 0.95) <= 0.15
