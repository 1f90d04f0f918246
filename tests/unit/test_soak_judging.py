"""Verdicts of a soak: growth is detected; initial filling and fluctuations are not."""

import json
import os
import random
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.soak import judging
from tests.soak.bloat import Sizes
from tests.soak.sampling import Memory, Sample, Samples, read, sampled
from tests.soak.system import System

HOUR = 3_600.0
EVERY = 5.0


def soaked(own: list[float]) -> Samples:
    """Return samples of one process with these values, one every five seconds."""
    times = [place * EVERY for place in range(len(own))]
    return Samples(times, [{1: Memory("worker child", mib, mib / 2, 20)} for mib in own])


def growth(own: list[float]) -> judging.Growth:
    return judging.growths(soaked(own))[1]


def test_a_leak_of_a_fifth_an_hour_is_found_in_the_noise() -> None:
    rng = random.Random(3)
    leaking = [100 + 20 * place * EVERY / HOUR + rng.gauss(0, 0.3) for place in range(360)]
    assert growth(leaking).percent == pytest.approx(20, abs=4)


def test_filling_up_in_the_first_half_does_not_count() -> None:
    assert abs(growth([min(60 + place, 160) for place in range(360)]).percent) < 0.1


def test_a_single_step_is_not_growth_but_a_step_per_minute_is() -> None:
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


def test_samples_are_read_back_as_they_were_taken_but_for_a_line_that_was_cut_off(tmp_path: Path) -> None:
    file, taken = (
        tmp_path / "samples.jsonl",
        Sample({7: Memory("beat", 100.0, 50.0, 9)}, {"facts": 3.0}, {"facts": 8192}),
    )
    line = json.dumps([5.0, asdict(taken)]) + "\n"
    file.write_text(line + line[:30])
    assert read(file) == Samples([5.0], [taken.processes], [taken.servers], [(5.0, taken.sizes)])


def test_a_sample_that_cannot_be_taken_is_reported_and_costs_no_other(tmp_path: Path) -> None:
    absent = System(tmp_path, "postgresql://127.0.0.1:1/x", "redis://127.0.0.1:1", "", os.getpid(), {})
    with sampled(absent, tmp_path / "samples.jsonl") as samples:
        while not samples.missed:
            threading.Event().wait(0.01)
    assert samples.times == samples.processes == samples.servers == []
    assert "OperationalError" in samples.missed[0]


def test_bloat_is_how_many_times_as_large_as_need_be() -> None:
    assert Sizes(300, 100).ratio == 3
