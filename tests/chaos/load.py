"""The load: actors that tell, use, link, pin, forget and restore facts, and note what was acknowledged.

Each actor works on one cell after the other. A cell is some facts with all that is done to them, step by step; the next
step is sent when the one before is acknowledged. So what a cell must be in the end follows from its steps alone,
whatever happens to other cells. Where an acknowledgement does not come, the actor sends the step again, or leaves the
cell, of which then nobody knows whether its last step happened.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from api.client import Client
from workers.errors import EbbError, InvalidInputError

NAMESPACES = ("north", "south", "east", "west")
ANSWER_SECONDS = 6.0
MOST_SENT = 40
ACKNOWLEDGED, ACCEPTED, UNKNOWN, REFUSED = "acknowledged", "accepted", "unknown", "refused"
CLASSES = ("short", "session", "normal", "active", "stable", "durable", "permanent", None)
DAY = timedelta(days=1)
LOOKUP, TOUCH, PLAN = "memory.lookup", "memory.touch", "decay.plan"
NEVER_ACCEPTED = (LOOKUP, PLAN)
NEVER_ANSWERED = (TOUCH, "memory.regenerate")


@dataclass
class Step:
    """One task that was sent, and what its sender was told of it."""

    task: str
    arguments: dict[str, Any]
    task_id: str
    told: str = UNKNOWN
    answer: Any = None
    sent: int = 0


@dataclass
class Cell:
    """Facts of one namespace, and what was done to them, in order."""

    namespace: str
    ids: list[str]
    name: str
    steps: list[Step] = field(default_factory=list)

    @property
    def certain(self) -> list[Step]:
        """Return the steps of which somebody knows that they happened, or must."""
        return [step for step in self.steps if step.told in (ACKNOWLEDGED, ACCEPTED) and step.task != LOOKUP]

    @property
    def uncertain(self) -> list[Step]:
        """Return the steps that may have happened; a lookup promises its answer, and no touch of what it returned."""
        return [step for step in self.steps if step.told == UNKNOWN or step.task == LOOKUP]


def take(client: Client, step: Step, rng: random.Random, over: threading.Event, *, patient: bool) -> None:
    """Send a step until it is acknowledged, refused or accepted, or until patience or time is over."""
    accept = step.task in NEVER_ANSWERED or (step.task not in NEVER_ACCEPTED and rng.random() < 0.15)
    while step.told == UNKNOWN and step.sent < (MOST_SENT if patient else 1) and not (step.sent and over.is_set()):
        step.sent += 1
        try:
            if accept:
                client.accept(step.task, step.arguments, step.task_id)
            else:
                step.answer = client.call(step.task, step.arguments, ANSWER_SECONDS, task_id=step.task_id)
            step.told = ACCEPTED if accept else ACKNOWLEDGED
        except InvalidInputError as error:
            step.told, step.answer = REFUSED, str(error)
        except EbbError as error:
            step.answer = str(error)
            over.wait(rng.uniform(0.05, 0.4))


@dataclass
class Actor:
    """Somebody who uses the memory: each on a connection of its own, by random numbers of its own."""

    redis_url: str
    number: int
    rng: random.Random
    over: threading.Event
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    most_facts: int = 60
    into_future: bool = True
    cells: list[Cell] = field(default_factory=list)
    waits: float = 0.05

    def run(self) -> None:
        """Make cells until it is over."""
        client = Client(self.redis_url)
        while not self.over.is_set():
            self.cells.append(cell := self._new_cell())
            for task, arguments in self._plan(cell):
                step = Step(task, arguments, str(self._uuid()))
                cell.steps.append(step)
                take(client, step, self.rng, self.over, patient=task == PLAN or self.rng.random() < 0.8)
                if step.told != ACKNOWLEDGED:
                    break
            self.over.wait(self.rng.uniform(0, self.waits))
        client.close()

    def _uuid(self) -> UUID:
        return UUID(int=self.rng.getrandbits(128), version=4)

    def _new_cell(self) -> Cell:
        name = f"cell {self.number} {len(self.cells)}"
        fades = self.into_future and self.rng.random() < 0.15
        namespace = f"fade-{self.number}-{len(self.cells)}" if fades else self.rng.choice(NAMESPACES)
        count = 1 if self.rng.random() < 0.25 and not fades else self.rng.randint(2, self.most_facts)
        return Cell(namespace, [str(self._uuid()) for _ in range(count)], name)

    def _plan(self, cell: Cell) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what to do to a cell; instants are those at which each step is sent."""
        fades = cell.namespace.startswith("fade")
        aged = not fades and self.rng.random() < 0.3
        yield "memory.store_many", self._told(cell, aged=aged, fades=fades)
        if fades:
            yield PLAN, {"now": (self.clock() + self.rng.randint(20, 500) * DAY).isoformat(), **_in(cell)}
            return
        for _ in range(self.rng.randint(0, 5)):
            yield from self._use(cell)
        if self.rng.random() < 0.6:
            yield self._touch(cell)

    def _told(self, cell: Cell, *, aged: bool, fades: bool) -> dict[str, Any]:
        now = self.clock()
        born = now - timedelta(days=self.rng.randint(100, 400)) if aged else now
        facts = [
            {
                "id": id_,
                "text": f"In {cell.name} stone {place} lies beside {self.rng.choice(('moss', 'sand', 'ice', 'reed'))}.",
                "entity": cell.name,
                "created_at": born.isoformat(),
                "session": cell.name,
                "turn": place,
                "salience": round(self.rng.random(), 3),
                "decay_class": self.rng.choice(CLASSES) if fades else None,
            }
            for place, id_ in enumerate(cell.ids)
        ]
        return {"facts": facts, "classify": False, "now": now.isoformat(), **_in(cell)}

    def _use(self, cell: Cell) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield one thing that is done to a cell, or two of which the second takes the first back."""
        one, several = self.rng.choice(cell.ids), self.rng.sample(cell.ids, self.rng.randint(1, len(cell.ids)))
        match self.rng.choice(("reinforce", "pin", "forget", "erase", "supersede", "link", "relate", "again")):
            case "reinforce":
                yield "memory.reinforce", self._at(cell, id=one, boost=0.1)
            case "pin":
                yield "memory.pin", self._at(cell, id=one)
                yield "memory.pin", self._at(cell, id=one, off=True)
            case "forget":
                yield "memory.forget", self._at(cell, ids=several)
                yield "memory.restore", self._at(cell, ids=several)
            case "erase" if len(several) > 1:
                yield "memory.forget", self._at(cell, ids=[id_ for id_ in several if id_ != cell.ids[0]], purge=True)
            case "supersede" if one != cell.ids[0]:
                yield "memory.store_many", self._at(cell, facts=[self._newer(cell, one)], classify=False)
            case "link" if len(cell.ids) > 1:
                yield from self._link(cell)
            case "relate":
                yield from self._relate(cell)
            case "again":
                said = cell.steps[0].arguments["facts"][0]
                again = {"text": said["text"], "id": str(self._uuid()), "created_at": said["created_at"]}
                yield "memory.store_many", self._at(cell, facts=[again], classify=False)

    def _newer(self, cell: Cell, older: str) -> dict[str, Any]:
        """Return a fact that takes the place of another; the first of a cell, which is told again, keeps its own."""
        id_, now = str(self._uuid()), self.clock().isoformat()
        text = f"In {cell.name} stone {len(cell.ids)} lies where another lay."
        cell.ids.append(id_)
        return {"id": id_, "text": text, "entity": cell.name, "created_at": now, "supersedes": older}

    def _link(self, cell: Cell) -> Iterator[tuple[str, dict[str, Any]]]:
        source, target = self.rng.sample(cell.ids, 2)
        ends = {"source": source, "target": target, "type": "CAUSED_BY"}
        yield "memory.link", self._at(cell, **ends, strength=0.5)
        match self.rng.randint(0, 2):
            case 0:
                yield "memory.link", self._at(cell, **ends, strength=0.9)
            case 1:
                yield "memory.unlink", {**ends, **_in(cell)}
                if self.rng.random() < 0.5:
                    yield "memory.link", self._at(cell, **ends, strength=0.7)

    def _relate(self, cell: Cell) -> Iterator[tuple[str, dict[str, Any]]]:
        ends = {"source": cell.name, "target": f"hill {self.rng.randint(0, 3)}", "type": "lies near"}
        yield "memory.relate", self._at(cell, **ends, weight=0.8)
        match self.rng.randint(0, 2):
            case 0:
                yield "memory.relate", self._at(cell, **ends, weight=0.6)
            case 1:
                yield "memory.unrelate", {**ends, **_in(cell)}
                if self.rng.random() < 0.5:
                    yield "memory.relate", self._at(cell, **ends, weight=0.4)

    def _touch(self, cell: Cell) -> tuple[str, dict[str, Any]]:
        if self.rng.random() < 0.5:
            return TOUCH, {"ids": cell.ids, "at": self.clock().isoformat(), **_in(cell)}
        return LOOKUP, self._at(cell, entity=cell.name)

    def _at(self, cell: Cell, **arguments: Any) -> dict[str, Any]:
        return {**arguments, "now": self.clock().isoformat(), **_in(cell)}


def _in(cell: Cell) -> dict[str, str]:
    return {"namespace": cell.namespace}


@dataclass
class Load:
    """Actors at work, each in a thread of its own."""

    actors: list[Actor]
    over: threading.Event
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Let them begin."""
        self.threads = [threading.Thread(target=actor.run, daemon=True) for actor in self.actors]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Let each end the step at hand, and wait."""
        self.over.set()
        for thread in self.threads:
            thread.join(ANSWER_SECONDS * 6)

    @property
    def cells(self) -> list[Cell]:
        """Return all cells of all actors."""
        return [cell for actor in self.actors for cell in actor.cells]

    def acknowledged(self) -> int:
        """Return how many steps were acknowledged so far."""
        return sum(step.told == ACKNOWLEDGED for cell in self.cells for step in cell.steps)


def started(redis_url: str, seed: int, count: int, clock: Callable[[], datetime], *, into_future: bool = True) -> Load:
    """Return actors at work; if `into_future`, some have passes look at their facts as of a later instant."""
    over = threading.Event()
    actors = [
        Actor(redis_url, number, random.Random(f"{seed} {number}"), over, clock, into_future=into_future)
        for number in range(count)
    ]
    load = Load(actors, over)
    load.start()
    return load


def ticking() -> Callable[[], datetime]:
    """Return a clock that never gives the same instant twice, whoever asks."""
    lock, last = threading.Lock(), [0.0]

    def now() -> datetime:
        with lock:
            last[0] = max(time.time(), last[0] + 1e-4)
            return datetime.fromtimestamp(last[0], UTC)

    return now
