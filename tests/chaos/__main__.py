"""`python -m tests.chaos [SCENARIO…]`: inject faults, compare every row, print and write the results."""

import argparse
import secrets
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from rich.text import Text

from tests.benchmarks import figures, machine
from tests.benchmarks.figures import Answers, console
from tests.chaos import faults, launch, scenarios
from tests.chaos.scenarios import SCENARIOS, Outcome

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MOST_SHOWN = 12
QUICK, QUICK_ROUNDS = ("children killed", "PostgreSQL crashed", "messages doubled", "namespaces moved", "anything"), 3
AFTERWARDS_SECONDS = 20.0
"""Time reserved in each scenario for settling and comparing, after its rounds."""


def main() -> None:
    """Run the chosen scenarios; exit with status 1 if any of them found a fault."""
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers are stopped and disks unmounted
    console.print(f"seed {given.seed}")
    names = given.scenarios or (QUICK if given.quick else [scenario.name for scenario in SCENARIOS])
    wanted = [scenario for scenario in SCENARIOS if scenario.name in names]
    outcomes, end = [], time.monotonic() + given.minutes * 60
    for place, scenario in enumerate(wanted):
        rounds = given.rounds or (QUICK_ROUNDS if given.quick else scenario.rounds)
        seconds = (end - time.monotonic()) / (len(wanted) - place) - AFTERWARDS_SECONDS
        options = {"seconds": seconds, "keep": given.keep, "shards": given.shards, "citus": given.citus}
        outcome = scenarios.run(scenario, rounds, given.seed, **options)
        _say(outcome)
        outcomes.append(outcome)
    _keep_results([_detail(outcome) for outcome in outcomes], given)
    sys.exit(any(not outcome.sound for outcome in outcomes))


def _keep_results(details: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Write the results; those of a partial run only to a folder given by `--results`."""
    part = given.quick or given.rounds or given.scenarios or given.citus
    folder = given.results or RESULTS
    path = folder / "chaos.json"
    before = figures.load(path).details["scenarios"] if given.add and path.exists() else []
    answers = summary([*before, *details], "python -m tests.chaos")
    if given.results or not part:
        figures.save(answers, path, dict(machine.description()))
        figures.write_table(folder, figures.RESULTS)


def _say(outcome: Outcome) -> None:
    name = Text(outcome.name, style="bold")
    if outcome.skipped:
        console.print(name, f"is skipped, {outcome.skipped}")
        return
    if outcome.broken:
        console.print(name, Text("is broken", style="red"), f"after {outcome.rounds} rounds: {outcome.broken}")
        return
    found = outcome.verdict
    console.print(
        name,
        f"{outcome.rounds} rounds in {outcome.seconds:.0f} s, "
        f"{outcome.acknowledged} acknowledged, {found.uncertain} uncertain of which {found.happened} happened, "
        f"{found.rows} rows; lost {len(found.lost)}, doubled {len(found.doubled)}, decayed twice "
        f"{len(found.decayed_twice)}, torn {len(found.torn)}, left over {sum(outcome.left_over.values())}, "
        f"doctor {len(outcome.doctor)}; recovery {median(outcome.recoveries):.2g} to {max(outcome.recoveries):.2g} s",
    )
    console.print("  " + ", ".join(f"{did} {times} times" for did, times in sorted(outcome.faults.items())))
    for what in ("lost", "doubled", "decayed_twice", "torn"):
        for fault in getattr(found, what)[:MOST_SHOWN]:
            console.print(f"  {what}: {fault}")
    for wrong in (*outcome.doctor, *(outcome.left_over,) * any(outcome.left_over.values())):
        console.print(f"  {wrong}")


def summary(details: list[dict[str, Any]], command: str) -> Answers:
    """Return the totals over all scenarios."""
    done = [detail for detail in details if not detail["skipped"]]
    answers = Answers(command)
    for name, value in _sums(done).items():
        answers.add(f"chaos, {name}", "", [value], **({"most": 0.0} if name in NONE_OF else {}))
    slowest = max((detail["recoveries"]["longest"] or 0.0 for detail in done), default=0.0)
    answers.add("chaos, longest until a write is stored again", "s", [slowest], note=SHORTENED)
    answers.details = {"scenarios": details}
    return answers


SHORTENED = (
    f"unacknowledged messages are redelivered after {launch.VISIBILITY_SECONDS} s, and those of the outbox after "
    f"{launch.VISIBILITY_SECONDS + launch.WORK_SECONDS:g} s, instead of 120 and 150 s, for more rounds"
)
NONE_OF = ("lost", "doubled", "decayed twice", "torn", "left over", "found by doctor", "scenarios that did not recover")


def _sums(done: list[dict[str, Any]]) -> dict[str, float]:
    return {
        "rounds": sum(one["rounds"] for one in done),
        "operations acknowledged": sum(one["acknowledged"] for one in done),
        "facts": sum(one["facts"] for one in done),
        "rows compared": sum(one["verdict"]["rows"] for one in done),
        "children lost at work": sum(_lost(one) for one in done),
        "transactions cut off in the middle": sum(_cut_off(one) for one in done),
        "programs started again": sum(sum(one["restarts"].values()) for one in done),
        "lost": sum(one["verdict"]["lost"] for one in done),
        "doubled": sum(one["verdict"]["doubled"] for one in done),
        "decayed twice": sum(one["verdict"]["decayed_twice"] for one in done),
        "torn": sum(one["verdict"]["torn"] for one in done),
        "left over": sum(sum(one["left_over"].values()) for one in done),
        "found by doctor": sum(len(one["doctor"]) for one in done),
        "scenarios that did not recover": sum(bool(one["broken"]) for one in done),
    }


def _lost(one: dict[str, Any]) -> int:
    """Return how many children were killed during a task, without those that the poison task killed."""
    return sum(times for task, times in one["lost_children"].items() if task != launch.POISON)


def _cut_off(one: dict[str, Any]) -> int:
    return sum(times * did.count(faults.IN_THE_MIDDLE) for did, times in one["faults"].items())


def _detail(outcome: Outcome) -> dict[str, Any]:
    found = outcome.verdict
    return asdict(outcome) | {
        "verdict": {
            **{name: getattr(found, name) for name in ("rows", "steps", "uncertain", "happened")},
            **{name: len(getattr(found, name)) for name in ("lost", "doubled", "decayed_twice", "torn")},
        },
        "recoveries": {
            "median": round(median(outcome.recoveries), 2) if outcome.recoveries else None,
            "longest": round(max(outcome.recoveries), 2) if outcome.recoveries else None,
        },
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(one.name for one in SCENARIOS))
    parser.add_argument("--rounds", type=int, help="rounds of each scenario")
    parser.add_argument("--minutes", type=float, default=20, help="start no round after this time (%(default)s)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds each of {', '.join(QUICK)}")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="seed of all random choices")
    parser.add_argument("--shards", type=int, help="shards of every system (some scenarios have three)")
    parser.add_argument("--citus", default="", metavar="URL", help="database of a cluster on this machine")
    parser.add_argument("--add", action="store_true", help="add to the existing results")
    parser.add_argument("--keep", action="store_true", help="keep the folders with all logs")
    parser.add_argument("--results", type=Path, help="folder for chaos.json; a complete run needs none")
    given = parser.parse_args()
    if unknown := set(given.scenarios) - {one.name for one in SCENARIOS}:
        parser.error(f"no such scenario: {', '.join(unknown)}; there are: {', '.join(one.name for one in SCENARIOS)}")
    if given.shards == 1 and (moving := [one.name for one in SCENARIOS if one.name in given.scenarios and one.purpose]):
        parser.error(f"--shards 1 leaves no other shard to move to: {', '.join(moving)}")
    return given


if __name__ == "__main__":
    main()
