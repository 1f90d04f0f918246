"""`python -m tests.benchmarks [NAME…]`: run some or all benchmarks, print the table, write and draw the results."""

import argparse
import gc
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks import (
    capacity,
    contexts,
    conversations,
    doors,
    fairness,
    figures,
    floor,
    forgetting,
    graphs,
    lanes,
    lives,
    machine,
    moves,
    parts,
    passes,
    peers,
    quality,
    queued,
    recalls,
    space,
    stores,
    throughput,
)
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.machine import Machine
from tests.benchmarks.scale import FACTS, QUICK, Size
from workers import GARBAGE_THRESHOLD

RESULTS = Path(__file__).parent / "results"

ROUNDS, QUERIES = 5, 60

BYTES_OF_ALL, BYTES_OF_ONE = 20_000, 6_000
"""A fact of the largest table, in the databases of all benchmarks, and in those of one with the log beside them."""


def main() -> None:
    """Run the named benchmarks, or all."""
    gc.freeze()  # as a worker does
    gc.set_threshold(GARBAGE_THRESHOLD)
    given = _arguments()
    size = QUICK if given.quick else Size(given.facts, given.rounds, given.queries)
    benchmarks = _benchmarks(size, given)
    folder = given.results if size.facts == FACTS else given.results / str(size.facts)
    conditions = machine.description() | {"facts": size.facts}
    _check_disk(given.keep or Path(tempfile.gettempdir()), size.facts)
    with machine.started(given.keep) as servers:
        for name in given.names or benchmarks:
            console.print(name, style="bold")
            answers = Answers(f"python -m tests.benchmarks {name}{_options(given, name)}")
            benchmarks[name](servers, answers)
            figures.save(answers, folder / f"{name}.json", conditions)
            if given.keep is None and size.facts > FACTS:
                servers.drop_all()  # or their disk would have to hold all of them at once
    _tell(given.results if size.facts >= FACTS else folder)


def _benchmarks(size: Size, given: argparse.Namespace) -> dict[str, Callable[[Machine, Answers], None]]:
    return {
        "passes": lambda servers, answers: passes.measure(servers, size, answers),
        "lives": lambda servers, answers: lives.measure(servers, size, answers),
        "capacity": lambda servers, answers: capacity.measure(servers, size, answers),
        "recalls": lambda servers, answers: recalls.measure(servers, size, answers),
        "graphs": lambda servers, answers: graphs.measure(servers, size, answers),
        "contexts": lambda servers, answers: contexts.measure(servers, size, answers),
        "queued": lambda servers, answers: queued.measure(servers, size, answers),
        "floor": lambda servers, answers: floor.measure(servers, size, answers),
        "throughput": lambda servers, answers: throughput.measure(servers, size, answers),
        "lanes": lambda servers, answers: lanes.measure(servers, size, answers),
        "moves": lambda servers, answers: moves.measure(servers, size, answers),
        "http": lambda servers, answers: doors.measure(servers, size, answers),
        "fairness": lambda servers, answers: fairness.measure(servers, size, answers),
        "stores": lambda servers, answers: stores.measure(servers, size, answers),
        "quality": lambda servers, answers: quality.measure(
            servers, answers, _with_statements(given), given.model, given.beliefs
        ),
        "parts": lambda servers, answers: parts.measure(servers, answers, _sets(given), given.model),
        "space": lambda servers, answers: space.measure(servers, size, answers),
        "peers": lambda servers, answers: peers.measure(servers, size, answers),
        "forgetting": lambda servers, answers: forgetting.measure(servers, answers, _sets(given), given.conversations),
    }


def _sets(given: argparse.Namespace) -> dict[str, list[conversations.Conversation]]:
    return conversations.sets(given.conversations, given.beam, given.memora, given.realtalk, judging=given.judging)


def _with_statements(given: argparse.Namespace) -> dict[str, list[conversations.Conversation]]:
    return _sets(given) | {"statements": conversations.statements.read(judging=given.judging)}


def _check_disk(folder: Path, facts: int) -> None:
    """Raise an error if the disk has too little room for all databases that exist at the same time."""
    needed = facts * (BYTES_OF_ALL if facts <= FACTS else BYTES_OF_ONE)
    free = shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free
    if free < needed:
        there = f"{needed / 1e9:.0f} GB of disk and {folder} has {free / 1e9:.0f} GB"
        sys.exit(f"{facts:,} facts take {there}: ask for fewer.")


def _tell(folder: Path) -> None:
    """Print the table of all results, and draw their curves."""
    from tests.benchmarks import plots  # which needs the extra `bench`

    found = figures.write_table(folder, figures.RESULTS)
    for path in plots.draw(found, folder):
        console.print(f"drawn: {path}")


def _options(given: argparse.Namespace, name: str) -> str:
    sized = " --quick" if given.quick else "" if given.facts == FACTS else f" --facts {given.facts}"
    for option, usual in (("rounds", ROUNDS), ("queries", QUERIES)):
        if not given.quick and getattr(given, option) != usual:
            sized += f" --{option} {getattr(given, option)}"
    if name in {"quality", "parts", "forgetting"}:
        sized += " --conversations FILE" * bool(given.conversations)
        sized += " --beam FOLDER" * bool(given.beam) + " --memora FOLDER" * bool(given.memora)
        sized += " --realtalk FOLDER" * bool(given.realtalk)
        sized += " --beliefs FOLDER" * (bool(given.beliefs) and name == "quality") + " --judging" * given.judging
    return sized


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    names = list(_benchmarks(QUICK, argparse.Namespace()))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which benchmarks: {', '.join(names)}; default all")
    parser.add_argument("--quick", action="store_true", help="20,000 facts, for a run of minutes")
    parser.add_argument(
        "--facts",
        type=int,
        default=FACTS,
        help="facts in the largest table (%(default)s); those of 5000000 stand in a folder of their own",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs that a median is taken of (%(default)s)")
    parser.add_argument("--queries", type=int, default=QUERIES, help="queries in each round (%(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep servers and generated databases there")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    parser.add_argument("--conversations", type=Path, metavar="FILE", help="conversations in LoCoMo's form")
    parser.add_argument("--beam", type=Path, metavar="FOLDER", help="BEAM's chats of one size, such as chats/100K")
    parser.add_argument("--memora", type=Path, metavar="FOLDER", help="a period of Memora, such as data/weekly")
    parser.add_argument("--realtalk", type=Path, metavar="FOLDER", help="REALTALK's chats, its folder data")
    parser.add_argument("--beliefs", type=Path, metavar="FOLDER", help="PrecisionMemBench, with its folder fixtures")
    parser.add_argument("--judging", action="store_true", help="of the folders, what no constant was chosen on")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a sentence-transformers model for the same")
    given = parser.parse_args()
    if unknown := set(given.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return given


if __name__ == "__main__":
    main()
