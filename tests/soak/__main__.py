"""`python -m tests.soak`: run a whole Ebb under mixed load, measure growth, write and plot the results."""

import argparse
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import numpy as np
from ebb.contract.operation import BATCH_SECONDS

from api.client import Client
from tests.benchmarks import figures, machine, texts
from tests.benchmarks.figures import Answers, console
from tests.soak import bloat, chart, judging, sampling
from tests.soak.clock import Clock
from tests.soak.load import OVER_HTTP, User, World, pass_time, run
from tests.soak.system import System, started

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
TEXTS = 5_000
SETTLE_SECONDS = 60.0
REPORT_SECONDS = 60.0
SETTINGS = {"EBB_AUTO_LINK": "true", "EBB_TIME_TRAVEL": "true"}
WORKERS = 2


def main() -> None:
    """Run the soak, or evaluate the samples of an interrupted run."""
    given = _arguments()
    answers = Answers(f"python -m tests.soak --minutes {given.minutes:g}")
    if given.samples:
        judging.judge(answers, sampling.read(given.samples), WORKERS)
        return
    with started(given.keep, WORKERS, SETTINGS) as system, _kept(answers, given):
        console.print(f"Ebb is up at {system.home}")
        with sampling.sampled(system, _file()) as samples:
            world = World(Clock(given.days), texts.write(np.random.default_rng(given.seed), TEXTS)[0])
            users = _soak(system, world, given)
            _settle(system)
        judging.judge(answers, samples, WORKERS)
        judging.judge_work(answers, users, system)
        judging.judge_bloat(answers, bloat.indexes(system.database_url), bloat.tables(system.database_url))
        _examine(system, world, answers)


def _file() -> Path:
    """Return a new file for the samples, and print its path; it is kept after the run."""
    handle, name = tempfile.mkstemp(prefix="ebb-soak-", suffix=".jsonl")
    os.close(handle)
    console.print(f"samples go to {name}; `python -m tests.soak --samples {name}` evaluates them")
    return Path(name)


@contextmanager
def _kept(answers: Answers, given: argparse.Namespace) -> Iterator[None]:
    """Write and plot the results of the block; those of an interrupted run under another name."""
    conditions = machine.description() | {"minutes": given.minutes, "users": given.users, "days a minute": given.days}
    try:
        yield
    except BaseException:
        figures.save(answers, given.results / "soak-unfinished.json", conditions)
        raise
    figures.save(answers, given.results / "soak.json", conditions)
    chart.draw(answers, given.results / "soak.svg")
    figures.write_table(given.results, figures.RESULTS)


def _soak(system: System, world: World, given: argparse.Namespace) -> list[User]:
    """Run the users for the given minutes; return them."""
    ending = threading.Event()
    with ExitStack() as stack:
        users = [stack.enter_context(_user(system, world, f"{given.seed} {n}")) for n in range(given.users + 1)]
        threads = [threading.Thread(target=pass_time, args=(users[0], ending))]
        rate = given.rate / given.users
        threads += [threading.Thread(target=run, args=(user, rate, ending)) for user in users[1:]]
        for thread in threads:
            thread.start()
        _wait(given.minutes * 60, users)
        ending.set()
        for thread in threads:
            thread.join()
    return users


@contextmanager
def _user(system: System, world: World, seed: str) -> Iterator[User]:
    client = Client(system.redis_url)
    headers = {"X-Ebb-Namespace": OVER_HTTP}
    with httpx2.Client(base_url=system.api_url, headers=headers, timeout=60) as http:
        try:
            yield User(world, client, http, random.Random(seed))
        finally:
            client.close()


def _wait(seconds: float, users: list[User]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, REPORT_SECONDS))
        done, failed = sum(sum(user.done.values()) for user in users), sum(len(user.failed) for user in users)
        console.print(f"  {(seconds - left) / 60:.0f} minutes: {done:,} requests answered, {failed} failed")


def _settle(system: System) -> None:
    """Wait until all accepted work is done."""
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        waiting = sampling.waiting(system)
        if not waiting:
            return
        time.sleep(1)
    console.print(f"  {waiting:g} tasks still wait after {SETTLE_SECONDS:g} s")


def _examine(system: System, world: World, answers: Answers) -> None:
    """Have the doctor check that each fact is complete."""
    client = Client(system.redis_url)
    try:
        found = client.call("memory.doctor", {"everywhere": True, "now": world.clock.now()}, BATCH_SECONDS)
    finally:
        client.close()
    faulty = sum(fault["facts"] for fault in found["faults"])
    answers.add("faults that `ebb doctor` finds afterwards", "", [faulty], most=0)
    answers.details["doctor"] = found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="duration (%(default)s)")
    parser.add_argument("--users", type=int, default=4, help="number of concurrent users (%(default)s)")
    parser.add_argument("--rate", type=float, default=20, help="total requests per second (%(default)s)")
    parser.add_argument("--days", type=float, default=24, help="days of the fast clock per minute (%(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the users' requests (%(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="folder of the system, kept after the run")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="evaluate the samples of an interrupted run")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
