"""Cells: groups of facts with a random sequence of steps.

The final state of a cell follows from its own steps, in their order. Steps whose late redelivery would have another
effect after the following steps are left out, such as storing a near-duplicate of facts that were consolidated before.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import UUID, uuid5

from workers.documents.files import CHUNK_IDS
from workers.documents.items import item_id

Request: TypeAlias = tuple[str, dict[str, Any]]
"""A task and its arguments."""

NAMESPACES = ("north", "south", "east", "west")
ACKNOWLEDGED, ACCEPTED, UNKNOWN, REFUSED = "acknowledged", "accepted", "unknown", "refused"
CLASSES = ("short", "normal", "active", "stable", "durable", "permanent", None)
"""Lifetimes that do not end within a day after a pass, since the time of beat's passes varies."""

DAY = timedelta(days=1)
LOOKUP, TOUCH, PLAN, JANITOR = "memory.lookup", "memory.touch", "decay.plan", "memory.janitor"
CONSOLIDATE, INDEX, UNINDEX = "memory.consolidate", "memory.index", "memory.unindex"
PURGE = "memory.purge"
RESOLVE, SETTINGS, PUT_ITEM, DROP_ITEM = "memory.resolve", "memory.settings", "memory.put_item", "memory.drop_item"
FACTS, FADING, ALIKE, NOTES, ITEMS = "facts", "fading", "alike", "notes", "items"
DEEP, CROWDED = "deep", "crowded"
KINDS = {FACTS: 45, FADING: 12, ALIKE: 10, NOTES: 10, ITEMS: 8, DEEP: 9, CROWDED: 6}
"""The kinds of cells, each with its share in percent."""

OWN = (FADING, ALIKE, DEEP, CROWDED)
"""Cells with a namespace of their own, because their steps affect a whole namespace."""

USES = ("reinforce", "pin", "forget", "erase", "supersede", "contradict", "link", "relate", "again")
HALF_LIFE = "hygiene.confidenceDecay.halfLife"
CAPACITY = "capacity.facts"
HERDS, MOST_ALIKE, MOST_CHUNKS = 4, 16, 8
GRAZES = (
    "grazes with the old grey shepherd and three dogs on the wet meadow below the abandoned mill beside the river near "
    "the stone bridge, where the ferry lands at noon, the miller's children fish for trout, the orchard wall has "
    "fallen down, and a narrow path leads past the chapel and the lime kiln up to the forest and the quarry on the hill"
)
"""Long enough that facts about one herd are near-duplicates by their vectors and by their signatures.

A restored fact has only its signature until it is regenerated, which may come before or after it is compared.
"""

HOW = (
    "a", "an", "the", "and", "also", "that", "is", "are", "am", "has", "have", "and a", "and the", "and also", "is a",
    "is the", "is also",
)  # fmt: skip
"""Words that may stand for each other in near-duplicates."""


@dataclass
class Step:
    """A task that was sent, with its outcome as far as the client knows it."""

    task: str
    arguments: dict[str, Any]
    task_id: str
    outcome: str = UNKNOWN
    answer: Any = None
    sent: int = 0


@dataclass
class Cell:
    """Facts of one namespace and their steps, in order.

    Cells of notes have the name of their file, cells of items the name of their collection.
    """

    namespace: str
    ids: list[str]
    name: str
    kind: str = FACTS
    steps: list[Step] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Return the names by which its rows are found; rows of a shared namespace belong to no cell."""
        items = (str(item_id(UUID(step.task_id))) for step in self.steps if step.task == PUT_ITEM)
        return [self.name, *self.ids, *items, *([self.namespace] if self.kind in OWN else [])]

    @property
    def certain(self) -> list[Step]:
        """Return the steps that were acknowledged or accepted."""
        return [step for step in self.steps if step.outcome in (ACKNOWLEDGED, ACCEPTED) and step.task != LOOKUP]

    @property
    def uncertain(self) -> list[Step]:
        """Return the steps that may have happened; a lookup guarantees its answer, but not the touch of its results."""
        return [step for step in self.steps if step.outcome == UNKNOWN or step.task == LOOKUP]


@dataclass
class Author:
    """Draws random cells and steps; instants are those at which each step is sent.

    If `own`, some cells have a namespace of their own, in which passes, janitors and consolidations are asked for.
    """

    number: int
    rng: random.Random
    clock: Callable[[], datetime]
    most_facts: int = 60
    own: bool = True

    def uuid(self) -> str:
        """Return the next id."""
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def cell(self, place: int) -> Cell:
        """Return a new cell; its first step stores its facts."""
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        kind = kind if self.own or kind not in OWN else FACTS
        name = f"cell {self.number} {place}"
        if kind == NOTES:
            return Cell(self.rng.choice(NAMESPACES), [], f"notes/{name}.md", kind)
        if kind == ITEMS:
            return Cell(self.rng.choice(NAMESPACES), [], name, kind)
        namespace = f"{kind}-{self.number}-{place}" if kind in OWN else self.rng.choice(NAMESPACES)
        return Cell(namespace, [self.uuid() for _ in range(self._size(kind))], name, kind)

    def _size(self, kind: str) -> int:
        if kind == ALIKE:
            return self.rng.randint(HERDS, MOST_ALIKE)
        return 1 if self.rng.random() < 0.25 and kind == FACTS else self.rng.randint(2, self.most_facts)

    def plan(self, cell: Cell) -> Iterator[Request]:
        """Yield the steps of a cell."""
        plans = {
            FACTS: self._facts, FADING: self._fading, ALIKE: self._alike, NOTES: self._notes, ITEMS: self._items,
            DEEP: self._deep, CROWDED: self._crowded,
        }  # fmt: skip
        yield from plans[cell.kind](cell)

    # Facts that are stored, used and forgotten ----------------------------------------------------------------------

    def _facts(self, cell: Cell) -> Iterator[Request]:
        yield "memory.store_many", self._stored_cell(cell, aged=self.rng.random() < 0.3)
        for _ in range(self.rng.randint(0, 5)):
            yield from self._use(cell)
        if self.rng.random() < 0.6:
            yield self._touch(cell)

    def _stored_cell(self, cell: Cell, *, aged: bool = False, fades: bool = False) -> dict[str, Any]:
        now = self.clock()
        born = now - timedelta(days=self.rng.randint(100, 400)) if aged else now
        facts = [
            {
                "id": id_,
                "text": f"In {cell.name} stone {place} lies beside {self.rng.choice(('moss', 'sand', 'ice', 'reed'))}.",
                "entity": cell.name,
                "last_seen_at": born.isoformat(),
                "session": cell.name,
                "turn": place,
                "salience": round(self.rng.random(), 3),
                "decay_class": self.rng.choice(CLASSES) if fades else None,
            }
            for place, id_ in enumerate(cell.ids)
        ]
        return {"facts": facts, "classify": False, "now": now.isoformat(), **_in(cell)}

    def _use(self, cell: Cell) -> Iterator[Request]:
        """Yield one step, or two of which the second reverts the first."""
        one, several = self.rng.choice(cell.ids), self.rng.sample(cell.ids, self.rng.randint(1, len(cell.ids)))
        match self.rng.choice(USES):
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
            case "contradict":
                yield from self._contradict(cell)
            case "link" if len(cell.ids) > 1:
                yield from self._link(cell)
            case "relate":
                yield from self._relate(cell)
            case "again":
                said = cell.steps[0].arguments["facts"][0]
                again = {"text": said["text"], "id": self.uuid(), "session": f"{cell.name} later", "turn": 0}
                yield "memory.store_many", self._at(cell, facts=[again], classify=False)

    def _newer(self, cell: Cell, older: str) -> dict[str, Any]:
        """Return a fact that supersedes another, but not the first of a cell, which is stored again."""
        id_, now = self.uuid(), self.clock().isoformat()
        text = f"In {cell.name} stone {len(cell.ids)} lies where another lay."
        cell.ids.append(id_)
        return {"id": id_, "text": text, "entity": cell.name, "created_at": now, "supersedes": older}

    def _contradict(self, cell: Cell) -> Iterator[Request]:
        """Yield a fact and one that contradicts it, and half of the time the decision that both are valid."""
        about = {"entity": cell.name, "key": f"colour {len(cell.ids)}"}
        two = [self.uuid(), self.uuid()]
        for id_, value in zip(two, ("grey", "brown"), strict=True):
            cell.ids.append(id_)
            fact = {"id": id_, "text": f"The {about['key']} of {cell.name} is {value}.", "value": value, **about}
            yield "memory.store_many", self._at(cell, facts=[fact], classify=False)
        if self.rng.random() < 0.5:
            yield RESOLVE, self._at(cell, ids=two, both=True)

    def _link(self, cell: Cell) -> Iterator[Request]:
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

    def _relate(self, cell: Cell) -> Iterator[Request]:
        ends = {"source": cell.name, "target": f"hill {self.rng.randint(0, 3)}", "type": "lies near"}
        yield "memory.relate", self._at(cell, **ends, weight=0.8)
        match self.rng.randint(0, 2):
            case 0:
                yield "memory.relate", self._at(cell, **ends, weight=0.6)
            case 1:
                yield "memory.unrelate", {**ends, **_in(cell)}
                if self.rng.random() < 0.5:
                    yield "memory.relate", self._at(cell, **ends, weight=0.4)

    def _touch(self, cell: Cell) -> Request:
        if self.rng.random() < 0.5:
            return TOUCH, {"ids": cell.ids, "at": self.clock().isoformat(), **_in(cell)}
        return LOOKUP, self._at(cell, entity=cell.name)

    # Facts that fade, near-duplicates, files and items ------------------------------------------------

    def _fading(self, cell: Cell) -> Iterator[Request]:
        yield "memory.store_many", self._stored_cell(cell, fades=True)
        if self.rng.random() < 0.4:
            yield SETTINGS, self._at(cell, set={HALF_LIFE: self.rng.randint(20, 200)})
            if self.rng.random() < 0.3:
                yield SETTINGS, self._at(cell, unset=[HALF_LIFE])
        later = self.clock() + self.rng.randint(20, 500) * DAY
        yield self.rng.choice((PLAN, JANITOR)), {"now": later.isoformat(), **_in(cell)}

    def _deep(self, cell: Cell) -> Iterator[Request]:
        """Yield steps that move facts to deep memory and then restore, use, erase or store some of them again."""
        yield "memory.store_many", self._stored_cell(cell, fades=True)
        if len(cell.ids) > 1 and self.rng.random() < 0.5:
            yield from self._link(cell)
        later = self.clock() + self.rng.randint(200, 800) * DAY
        yield PLAN, {"now": later.isoformat(), **_in(cell)}
        yield PURGE, {"now": (later + 2 * DAY).isoformat(), **_in(cell)}
        for _ in range(self.rng.randint(0, 3)):
            yield self._brought_up(cell, self.rng.sample(cell.ids, self.rng.randint(1, len(cell.ids))))

    def _brought_up(self, cell: Cell, some: list[str]) -> Request:
        match self.rng.choice(("restore", "restore", "use", "erase", "again")):
            case "use":
                return TOUCH, {"ids": some, "at": self.clock().isoformat(), "deep": True, **_in(cell)}
            case "erase":
                return "memory.forget", self._at(cell, ids=some, purge=True)
            case "again":
                again = {"text": cell.steps[0].arguments["facts"][0]["text"], "id": self.uuid()}
                cell.ids.append(again["id"])
                return "memory.store_many", self._at(cell, facts=[again], classify=False)
        return "memory.restore", self._at(cell, ids=some)

    def _crowded(self, cell: Cell) -> Iterator[Request]:
        """Limit the capacity of a namespace to its facts of clearly higher value."""
        stored = self._stored_cell(cell)
        for place, fact in enumerate(stored["facts"]):
            fact["salience"], fact["importance"] = (1.0, 1.0) if place % 2 else (0.01, 0.0)
        yield "memory.store_many", stored
        yield SETTINGS, self._at(cell, set={CAPACITY: len(cell.ids) // 2})
        yield PLAN, self._at(cell)

    def _alike(self, cell: Cell) -> Iterator[Request]:
        """Yield a consolidation of near-duplicates, and often a restore of some of them."""
        yield "memory.store_many", self._at(cell, facts=self._herds(cell), classify=False)
        if self.rng.random() < 0.5:
            yield "memory.pin", self._at(cell, id=self.rng.choice(cell.ids))
        yield CONSOLIDATE, self._at(cell, apply=True)
        if self.rng.random() < 0.6:
            yield "memory.restore", self._at(cell, ids=self.rng.sample(cell.ids, len(cell.ids) // 2))
            yield CONSOLIDATE, self._at(cell, apply=True)

    def _herds(self, cell: Cell) -> list[dict[str, Any]]:
        """Return facts that are near-duplicates within a herd, and never between herds."""
        how, now = self.rng.sample(HOW, len(cell.ids)), self.clock().isoformat()
        return [
            {
                "id": id_,
                "text": f"Herd number {place % HERDS} of {cell.name} {how[place]} {GRAZES}",
                "created_at": now,
                "salience": round(self.rng.random(), 3),
                "tags": [how[place]],
            }
            for place, id_ in enumerate(cell.ids)
        ]

    def _notes(self, cell: Cell) -> Iterator[Request]:
        """Yield steps that index a file, index it again after a change, forget parts of it and remove it."""
        said = [self._part(cell, place) for place in range(self.rng.randint(1, MOST_CHUNKS))]
        yield self._read(cell, said)
        for change in range(self.rng.randint(0, 4)):
            match self.rng.choice(("change", "change", "again", "forget", "remove")):
                case "change":
                    stays = self.rng.sample(said, self.rng.randint(0, len(said)))
                    said = [*stays, self._part(cell, MOST_CHUNKS + change)]
                    yield self._read(cell, said)
                case "again":
                    yield self._read(cell, said)
                case "forget":
                    ids = [_part_id(cell, one) for one in said[: self.rng.randint(1, len(said))]]
                    yield "memory.forget", self._at(cell, ids=ids, purge=self.rng.random() < 0.5)
                    yield self._read(cell, said)
                case "remove":
                    yield UNINDEX, {"paths": [cell.name], **_in(cell)}
                    if self.rng.random() < 0.7:
                        yield self._read(cell, said)

    def _part(self, cell: Cell, place: int) -> dict[str, str]:
        part = {"section": self.rng.choice(("", "Keel", "Keel > Sail")), "text": f"Note {place} of {cell.name} is new."}
        cell.ids.append(_part_id(cell, part))
        return part

    def _read(self, cell: Cell, said: Sequence[dict[str, str]]) -> Request:
        digest = sha256("\n".join(part["text"] for part in said).encode()).hexdigest()
        return INDEX, self._at(cell, path=cell.name, chunks=list(said), digest=digest, folder="/there")

    def _items(self, cell: Cell) -> Iterator[Request]:
        """Yield steps that put, replace and delete items under a few keys."""
        for change in range(self.rng.randint(1, 8)):
            place = {"path": ["sheds", cell.name], "key": self.rng.choice(("oats", "tools"))}
            if change and self.rng.random() < 0.3:
                yield DROP_ITEM, self._at(cell, **place)
            else:
                text = f"Shed {change} of {cell.name} is full." if self.rng.random() < 0.7 else None
                document = json.dumps({"shelves": change})
                yield PUT_ITEM, self._at(cell, **place, document=document, text=text, ttl=self.rng.choice((None, 9e3)))

    def _at(self, cell: Cell, **arguments: Any) -> dict[str, Any]:
        return {**arguments, "now": self.clock().isoformat(), **_in(cell)}


def _in(cell: Cell) -> dict[str, str]:
    return {"namespace": cell.namespace}


def _part_id(cell: Cell, part: dict[str, str]) -> str:
    """Return the id of a chunk of a file, as `workers.documents.files` computes it."""
    return str(uuid5(CHUNK_IDS, "\0".join((cell.namespace, cell.name, part["section"], part["text"]))))
