"""An export during concurrent writes is of one snapshot, without dangling references."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from memory import Memory, day

from api import archive_import
from workers.admin import export
from workers.errors import EbbError

FACTS = 60
BACKUPS = 4
PAIRS = {"link": ("source", "target"), "contradiction": ("fact", "other"), "likeness": ("fact", "other")}


def storing(memory: Memory) -> Callable[[int], object]:
    return lambda n: memory.store(
        {"text": f"Guest {n} sleeps in room {n % 7}.", "entity": f"room {n % 7}", "key": "guest", "value": f"{n}"},
        {"text": f"Guest {n} has paid.", "decay_class": "checkpoint", "session": "desk", "turn": n},
        at=n / 10,
    )


def superseding(memory: Memory, ids: list[UUID]) -> Callable[[int], object]:
    return lambda n: memory.store(
        {"text": f"Note {n}, said again.", "supersedes": str(ids[n % FACTS])}, at=n / 10, touch=False
    )


def forgetting(memory: Memory, ids: list[UUID]) -> Callable[[int], object]:
    def forget(n: int) -> None:
        memory.forget(ids[-n % FACTS], at=n / 10, purge=n % 5 == 0)
        if n % 3:
            memory.restore(ids[-n % FACTS], at=n / 10)

    return forget


def joining(memory: Memory, ids: list[UUID]) -> Callable[[int], object]:
    def join(n: int) -> None:
        one, other = random.Random(n).sample(ids, 2)
        memory.link(one, other, strength=0.5, at=n / 10)
        memory.relate(f"room {n % 7}", f"floor {n % 3}", "lies_on", at=n / 10)

    return join


def going_on(over: Event, act: Callable[[int], object]) -> int:
    """Repeat an action until the end; return how often. Facts removed by others are no error."""
    n = 0
    while not over.is_set():
        n += 1
        try:
            act(n)
        except EbbError:
            continue
    return n


@contextmanager
def busy(memory: Memory) -> Iterator[None]:
    """Store, supersede, forget, erase, restore, link and decay facts concurrently."""
    ids = [memory.add(f"Note {n} of the log.") for n in range(FACTS)]
    over = Event()
    acts = [
        storing(memory), superseding(memory, ids), forgetting(memory, ids), joining(memory, ids),
        lambda n: memory.decay(n / 10, force=True),
    ]  # fmt: skip
    with ThreadPoolExecutor(len(acts)) as pool:
        working = [pool.submit(going_on, over, act) for act in acts]
        try:
            yield
        finally:
            over.set()
        assert min(one.result() for one in working) > 0


def wrong_with(lines: list[dict[str, Any]]) -> list[str]:
    """Return the inconsistencies of an archive: dangling references, duplicates and contradictions."""
    facts = {line["id"]: line for line in lines if "text" in line}
    faults = [] if len(facts) == sum("text" in line for line in lines) else ["a fact stands there twice"]
    for line in lines:
        for kind, ends in PAIRS.items():
            faults += [f"{kind} without {end}" for end in ends if kind in line and str(line[kind][end]) not in facts]
        if "text" in line and line["superseded_by"] and line["superseded_by"] in facts:
            after = facts[line["superseded_by"]]
            faults += [] if after["supersedes_id"] == line["id"] else ["superseded by what supersedes another"]
        if "text" in line and (line["forgotten_at"] is None) != (line["forgotten_reason"] is None):
            faults.append("forgotten without reason")
    return faults


def test_what_is_backed_up_while_all_goes_on_is_of_one_instant(
    memory: Memory, twin: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "BATCH", 10)  # many statements with writes in between
    memory.forget(memory.add("The desk closes at ten."), at=50)  # the others may all be restored when a backup begins
    with busy(memory):
        backups = [memory.archive(50) for _ in range(BACKUPS)]
    assert [wrong_with(lines) for lines in backups] == [[]] * BACKUPS
    assert sum("link" in line for line in backups[-1]) > 0
    assert {line["forgotten_reason"] for line in backups[-1] if "text" in line} >= {None, "asked"}
    twin.import_records(backups[-1], at=50)
    assert {lasting(line) for line in twin.archive(50)} == {lasting(line) for line in backups[-1]}
    assert twin.examine(50) == {}


def lasting(line: dict[str, Any]) -> str:
    """Return a record without the decay state, which passes may not have updated, and the summary that follows it."""
    fading = {"state", "due_at", "fidelity", "dims", "effective_confidence", "decay_summary"}
    return str(sorted((name, str(value)) for name, value in line.items() if name not in fading))


def test_an_archive_ends_with_how_many_lines_it_has(memory: Memory) -> None:
    memory.store("Tea at four.", "Cake on Sunday.")
    lines = list(archive_import.with_frame(export.export(memory.context, "default", day(0))))
    assert archive_import.frame_fault(lines[-1], 1, len(lines)) is None
    assert archive_import.frame_fault(lines[-1], 1, len(lines) - 1) is not None


def test_turns_that_no_episode_saw_are_kept(memory: Memory, twin: Memory) -> None:
    episode = memory.add("Ana laughed.", kind="episodic", durability="persistent", session="chat", turn=0)
    memory.store_turns(5, at=1, session="later")
    assert memory.value("select occurred from activity where fact = %s", episode) < memory.stats(1).turns
    twin.import_records(memory.archive(1), at=1)
    assert twin.stats(1).turns == memory.stats(1).turns
