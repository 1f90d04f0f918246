"""How a soak judges: what grows is found, what only fills up at first or comes and goes is not."""

import random

import pytest

from tests.soak import judging
from tests.soak.bloat import Sizes
from tests.soak.sampling import Memory, Samples

HOUR = 3_600.0
EVERY = 5.0


def soaked(own: list[float]) -> Samples:
    """Return the samples of one process that took so much, one every five seconds."""
    times = [place * EVERY for place in range(len(own))]
    return Samples(times, [{1: Memory("worker child", mib, mib / 2, 20)} for mib in own])


def growth(own: list[float]) -> judging.Growth:
    return judging.growths(soaked(own))[1]


def test_a_leak_of_a_fifth_an_hour_is_found_in_the_noise() -> None:
    rng = random.Random(3)
    leaking = [100 + 20 * place * EVERY / HOUR + rng.gauss(0, 0.3) for place in range(360)]
    assert growth(leaking).percent == pytest.approx(20, abs=4)


def test_what_fills_up_in_the_first_half_does_not_count() -> None:
    assert abs(growth([min(60 + place, 160) for place in range(360)]).percent) < 0.1


def test_one_step_is_no_growth_but_a_step_a_minute_is() -> None:
    once = [140.0 + 3 * (place > 330) for place in range(360)]
    often = [140.0 + 0.5 * (place // 12) for place in range(360)]
    assert growth(once).percent < 1
    assert growth(often).percent == pytest.approx(100 * 30 / 150, rel=0.1)


def test_small_processes_are_judged_as_if_they_were_larger() -> None:
    growing = [4 + 1 * place * EVERY / HOUR for place in range(360)]
    assert growth(growing).percent == pytest.approx(100 / judging.LEAST_JUDGED_MIB, rel=1e-3)


def test_a_process_that_ended_is_not_judged_by_half_a_line() -> None:
    samples = soaked([100.0] * 360)
    del samples.processes[-1][1]
    assert judging.growths(samples) == {}


def test_processes_of_workers_that_were_replaced_are_counted() -> None:
    samples = soaked([100.0] * 10)
    for taken in samples.processes[5:]:
        taken[2] = taken.pop(1)
    assert judging._replaced(samples) == 1


def test_bloat_is_how_many_times_as_large_as_need_be() -> None:
    assert Sizes(300, 100).ratio == 3
