"""The load: actors that store, use, link, pin, forget and restore facts, and record acknowledgements.

Each actor works on one cell after the other. A cell is a group of facts with a sequence of steps; the next step is sent
after the previous one is acknowledged, so the final state of a cell depends on its own steps only. Without an
acknowledgement, the actor sends the step again, or leaves the cell with its last step uncertain.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from api.client import Client
from tests.chaos import launch
from tests.chaos.cells import (
    ACCEPTED,
    ACKNOWLEDGED,
    CONSOLIDATE,
    INDEX,
    JANITOR,
    LOOKUP,
    PLAN,
    PURGE,
    REFUSED,
    TOUCH,
    UNINDEX,
    UNKNOWN,
    Author,
    Cell,
    Step,
)  # fmt: skip
from workers.errors import EbbError, InvalidInputError

ANSWER_SECONDS = 6.0
MOST_SENT = 40
IN_SEVERAL_TRANSACTIONS = (PLAN, JANITOR, CONSOLIDATE, INDEX, PURGE)
"""Tasks of several transactions: they are sent until they are answered, since they may be applied in part."""

STORE_MANY = "memory.store_many"
"""Large batches are also stored in several transactions."""

NEVER_ACCEPTED = (LOOKUP, UNINDEX, *IN_SEVERAL_TRANSACTIONS)
NEVER_ANSWERED = (TOUCH, "memory.regenerate")


def may_be_half_done(task: str, arguments: dict[str, Any]) -> bool:
    """Return whether a step may be applied in part when its caller stops waiting."""
    return task in IN_SEVERAL_TRANSACTIONS or (task == STORE_MANY and len(arguments["facts"]) > launch.SMALL)


def take(client: Client, step: Step, rng: random.Random, over: threading.Event, *, patient: bool) -> None:
    """Send a step until it is acknowledged, refused or accepted, or until attempts or time run out."""
    accept = step.task in NEVER_ANSWERED or (step.task not in NEVER_ACCEPTED and rng.random() < 0.15)
    while step.outcome == UNKNOWN and step.sent < (MOST_SENT if patient else 1) and not (step.sent and over.is_set()):
        step.sent += 1
        try:
            if accept:
                client.accept(step.task, step.arguments, step.task_id)
            else:
                step.answer = client.call(step.task, step.arguments, ANSWER_SECONDS, task_id=step.task_id)
            step.outcome = ACCEPTED if accept else ACKNOWLEDGED
        except InvalidInputError as error:
            step.outcome, step.answer = REFUSED, str(error)
        except EbbError as error:
            step.answer = str(error)
            over.wait(rng.uniform(0.05, 0.4))


@dataclass
class Actor:
    """A user of the memory, with its own connection and random numbers."""

    redis_url: str
    author: Author
    over: threading.Event
    cells: list[Cell] = field(default_factory=list)
    waits: float = 0.05

    def run(self) -> None:
        """Process cells until the end."""
        client, rng = Client(self.redis_url), self.author.rng
        while not self.over.is_set():
            self.cells.append(cell := self.author.cell(len(self.cells)))
            for task, arguments in self.author.plan(cell):
                step = Step(task, arguments, self.author.uuid())
                cell.steps.append(step)
                patient = may_be_half_done(task, arguments) or rng.random() < 0.8
                take(client, step, rng, self.over, patient=patient)
                if step.outcome != ACKNOWLEDGED:
                    break
            self.over.wait(rng.uniform(0, self.waits))
        client.close()


@dataclass
class Load:
    """Running actors, each in its own thread."""

    actors: list[Actor]
    over: threading.Event
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start all actors."""
        self.threads = [threading.Thread(target=actor.run, daemon=True) for actor in self.actors]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Wait until each actor has ended its current step."""
        self.over.set()
        for thread in self.threads:
            thread.join(ANSWER_SECONDS * 6)

    @property
    def cells(self) -> list[Cell]:
        """Return all cells of all actors."""
        return [cell for actor in self.actors for cell in actor.cells]

    def acknowledged(self) -> int:
        """Return the number of acknowledged steps."""
        return sum(step.outcome == ACKNOWLEDGED for cell in self.cells for step in cell.steps)


def started(redis_url: str, seed: int, count: int, clock: Callable[[], datetime], *, own: bool = True) -> Load:
    """Return running actors; if `own`, some of their cells have their own namespace."""
    over = threading.Event()
    authors = [Author(number, random.Random(f"{seed} {number}"), clock, own=own) for number in range(count)]
    actors = [Actor(redis_url, author, over) for author in authors]
    load = Load(actors, over)
    load.start()
    return load


def ticking() -> Callable[[], datetime]:
    """Return a clock that never returns the same instant twice."""
    lock, last = threading.Lock(), [0.0]

    def now() -> datetime:
        with lock:
            last[0] = max(time.time(), last[0] + 1e-4)
            return datetime.fromtimestamp(last[0], UTC)

    return now
