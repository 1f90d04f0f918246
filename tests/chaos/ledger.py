"""`python -m tests.chaos.ledger REDIS_URL SEED FILE`: a client with its own clock that records acknowledgements.

Its records are compared with the tables by counting, without code or clocks of Ebb: each stored fact exists once, each
acknowledged reinforcement is counted once, no fact ended without a request, and every date is within the run by the
database's clock.
"""

import json
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from tests.chaos import launch
from tests.chaos.cells import ACCEPTED, ACKNOWLEDGED, REFUSED, Cell
from tests.chaos.cells import FACTS as FACTS_OF_CELLS
from tests.chaos.oracle import Verdict

NAMESPACE = "ledger"
SHARED = [str(UUID(int=number)) for number in range(1, 6)]
"""Facts that all clients store and reinforce."""

STORE, REINFORCE, FORGET, RESTORE = "memory.store", "memory.reinforce", "memory.forget", "memory.restore"
RECALL = "memory.recall"
CLASSES = ("checkpoint", "session", "short", "normal", None)
"""Lifetimes that a clock a year ahead would end immediately; None is the default."""

ANSWER_SECONDS = 6.0
MOST_SENT = 30

FACTS = """
    select id::text, text, forgotten_at, forgotten_reason, created_at, last_seen_at, last_confirmed_at,
        confirmations
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = (select id from namespaces where name = %s)
"""
NOW = "select clock_timestamp() as now"
DATES = ("created_at", "last_seen_at", "last_confirmed_at", "forgotten_at")


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation on one fact; without acknowledgement it may have happened or not."""

    task: str
    fact: str
    acknowledged: bool


def noted(files: Iterable[Path]) -> list[Entry]:
    """Return the records of all clients, those of each in order."""
    lines = [line for file in files if file.exists() for line in file.read_text("utf-8").splitlines(keepends=True)]
    return [Entry(**json.loads(line)) for line in lines if line.endswith("\n")]


def judge(shards: Iterable[str], entries: list[Entry], began: Any) -> Verdict:
    """Compare the tables of all shards with the records; `began` is the start of the run by the database's clock."""
    rows = list[dict[str, Any]]()
    for url in shards:
        with psycopg.connect(url, row_factory=dict_row) as db:
            now = db.execute(NOW).fetchone()
            rows += db.execute(FACTS, (NAMESPACE,)).fetchall()
    assert now is not None
    found = Verdict(rows=len(rows), steps=len(entries), uncertain=sum(not one.acknowledged for one in entries))
    _judge_presence(found, rows, entries)
    _judge_counts(found, rows, entries)
    for row in rows:
        wrong = [name for name in DATES if row[name] is not None and not began <= row[name] <= now["now"]]
        found.decayed_twice += [f"{row['text']!r}: {name} is {row[name]}, outside the run" for name in wrong]
    return found


def _judge_presence(found: Verdict, rows: list[dict[str, Any]], entries: list[Entry]) -> None:
    last = {one.fact: one for one in entries if one.task in (STORE, FORGET, RESTORE)}
    live = Counter(row["text"] for row in rows if row["forgotten_at"] is None)
    found.doubled += [f"{text!r} is there {times} times" for text, times in live.items() if times > 1]
    by_id = {row["id"]: row for row in rows}
    for fact in {one.fact for one in entries if one.task == STORE and one.acknowledged}:
        row = by_id.get(fact)
        if row is None:
            found.lost.append(f"{fact} was stored and is not there")
        elif row["forgotten_at"] is not None and row["forgotten_reason"] != "asked":
            found.lost.append(f"{row['text']!r} ended by itself: {row['forgotten_reason']}")
        elif last[fact].acknowledged and (row["forgotten_at"] is not None) != (last[fact].task == FORGET):
            found.lost.append(f"{row['text']!r}: the last was {last[fact].task}, forgotten_at is {row['forgotten_at']}")


def _judge_counts(found: Verdict, rows: list[dict[str, Any]], entries: list[Entry]) -> None:
    reinforced = [one for one in entries if one.task == REINFORCE]
    sure = Counter(one.fact for one in reinforced if one.acknowledged)
    perhaps = Counter(one.fact for one in reinforced)
    for row in rows:
        least, most = sure[row["id"]], perhaps[row["id"]]
        if not least <= row["confirmations"] <= most:
            between = f"{least} to {most}" if least < most else str(least)
            found.decayed_twice.append(f"{row['text']!r}: {row['confirmations']} reinforcements, should be {between}")


def miscounted(shards: Iterable[str], cells: Iterable[Cell]) -> list[str]:
    """Return the facts of cells whose number of confirmations is impossible.

    Cells of near-duplicates are left out: a merge adds the confirmations of the merged facts.
    """
    steps = [(cell, step) for cell in cells if cell.kind == FACTS_OF_CELLS for step in cell.steps]
    wrong = Verdict()
    for url, namespace in product(shards, {cell.namespace for cell, _ in steps}):
        with psycopg.connect(url, row_factory=dict_row) as db:
            rows = db.execute(FACTS, (namespace,)).fetchall()
            entries = [
                Entry(step.task, step.arguments["id"], step.outcome in (ACKNOWLEDGED, ACCEPTED))
                for cell, step in steps
                if step.task == REINFORCE and cell.namespace == namespace and step.outcome != REFUSED
            ]
            _judge_counts(wrong, rows, entries)
    return wrong.decayed_twice


class _Bookkeeper:
    """A client that runs until it is stopped."""

    def __init__(self, redis_url: str, seed: str, file: TextIO) -> None:
        from api.client import Client  # after this process follows its clock

        self.client = Client(redis_url, NAMESPACE)
        self.rng, self.seed, self.file = random.Random(seed), seed, file
        self.over = threading.Event()
        self.stored = 0

    def run(self) -> None:
        """Store and use facts."""
        for number, fact in enumerate(SHARED):
            self._do(STORE, fact, {"text": f"All clients know stone {number}.", "id": fact, "touch": False})
        while not self.over.is_set():
            self._once()

    def _once(self) -> None:
        self.stored += 1
        fact = str(UUID(int=self.rng.getrandbits(128), version=4))
        text = f"Client {self.seed} laid stone {self.stored}."
        given = {"text": text, "id": fact, "decay_class": self.rng.choice(CLASSES)}
        if not self._do(STORE, fact, given):
            return
        for _ in range(self.rng.randint(0, 4)):
            one = self.rng.choice([fact, *SHARED])
            self._do(REINFORCE, one, {"id": one, "boost": 0.1})
        if self.rng.random() < 0.5:
            self._do(RECALL, fact, {"query": text})
        if self.rng.random() < 0.3 and self._do(FORGET, fact, {"ids": [fact]}) and self.rng.random() < 0.5:
            self._do(RESTORE, fact, {"ids": [fact]})

    def _do(self, task: str, fact: str, given: dict[str, Any]) -> bool:
        """Send a task repeatedly under one id until it is acknowledged; record whether it was."""
        from workers.errors import EbbError

        task_id, acknowledged = str(UUID(int=self.rng.getrandbits(128), version=4)), False
        for _ in range(MOST_SENT):
            try:
                self.client.call(task, given | {"namespace": NAMESPACE}, ANSWER_SECONDS, task_id=task_id)
                acknowledged = True
                break
            except EbbError:
                if self.over.wait(self.rng.uniform(0.05, 0.4)):
                    break
        self.file.write(json.dumps({"task": task, "fact": fact, "acknowledged": acknowledged}) + "\n")
        self.file.flush()
        return acknowledged


def main() -> None:
    """Run until SIGTERM."""
    redis_url, seed, path = sys.argv[1:]
    launch.follow(Path(os.environ[launch.CLOCK]))
    with Path(path).open("a", encoding="utf-8") as file:
        client = _Bookkeeper(redis_url, seed, file)
        signal.signal(signal.SIGTERM, lambda *_: client.over.set())
        client.run()


if __name__ == "__main__":
    main()
