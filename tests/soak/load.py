"""The load: users that store, recall, link, forget and call the HTTP API at a steady rate, by a fast clock."""

import random
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from ebb.contract.operation import BATCH_SECONDS, RECALL_SECONDS, STORE_SECONDS
from uuid_utils.compat import uuid7

from api.client import Client
from api.transport import Answer
from tests.soak.clock import Clock
from workers.errors import InvalidInputError

NAMESPACES = tuple(f"tenant-{number}" for number in range(12))
OVER_HTTP = "over-http"
"""A namespace on the real clock, since the HTTP API takes no other."""

CLASSES = ("session", "short", "active", "normal", "stable", "durable", "permanent")
CLASS_WEIGHTS = (20, 20, 20, 20, 10, 8, 2)
LINKS = ("RELATED_TO", "CAUSED_BY", "PART_OF", "DEPENDS_ON")
PEOPLE = tuple(f"Person {number}" for number in range(60))
REMEMBERED = 400
MANY = 40
NOT_THERE = 404


@dataclass(slots=True)
class World:
    """State shared by all users: the clock, texts for facts and queries, and the ids of stored facts."""

    clock: Clock
    texts: Sequence[str]
    known: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=REMEMBERED)))


@dataclass(slots=True)
class User:
    """One user: its connections, requests and failures."""

    world: World
    client: Client
    http: httpx2.Client
    rng: random.Random
    done: Counter[str] = field(default_factory=Counter)
    gone: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def call(self, task: str, seconds: float = STORE_SECONDS, **arguments: Any) -> Answer:
        """Send a task with the instant of the fast clock, and wait for its answer."""
        return self.client.call(task, arguments | {"now": self.world.clock.now()}, seconds)

    def namespace(self) -> str:
        """Return a random namespace; the first ones are more frequent."""
        return NAMESPACES[min(int(self.rng.expovariate(0.4)), len(NAMESPACES) - 1)]

    def text(self) -> str:
        """Return a text; a tenth of them have probably been stored before."""
        if self.rng.random() < 0.1:
            return self.world.texts[self.rng.randrange(500)]
        return f"{self.rng.choice(self.world.texts)} {self.rng.randrange(10**6)}"

    def question(self) -> str:
        """Return some words, sometimes with a name."""
        words = self.rng.choice(self.world.texts).split()
        named = [self.rng.choice(PEOPLE)] if self.rng.random() < 0.3 else []
        return " ".join(self.rng.sample(words, min(5, len(words))) + named)

    def fact(self, namespace: str, count: int) -> list[str]:
        """Return ids of facts of a namespace that exist or recently existed."""
        known = list(self.world.known[namespace])
        return self.rng.sample(known, min(count, len(known)))

    def note(self, namespace: str, answers: Sequence[Answer]) -> None:
        """Record the ids of stored facts."""
        self.world.known[namespace].extend(one["id"] for one in answers if "id" in one)


def new_fact(user: User) -> dict[str, Any]:
    """Return a random fact: with a lifetime, about a person, of a session, long or short."""
    rng = user.rng
    fact: dict[str, Any] = {"text": user.text(), "id": str(uuid7())}
    if rng.random() < 0.8:
        fact["decay_class"] = rng.choices(CLASSES, CLASS_WEIGHTS)[0]
    if rng.random() < 0.3:
        fact |= {"entity": rng.choice(PEOPLE), "key": rng.choice(("city", "job", "car", "pet")), "value": user.text()}
    if rng.random() < 0.4:
        kind = rng.choice(("semantic", "episodic"))
        fact |= {"session": rng.randrange(200), "turn": rng.randrange(100), "kind": kind}
        fact.pop("decay_class", None)
    if rng.random() < 0.05:
        fact["text"] = " ".join(user.text() for _ in range(30))
    return fact


def store(user: User) -> None:
    """Store one fact, sometimes superseding another, and half of the time without waiting."""
    name, fact = user.namespace(), new_fact(user)
    if user.rng.random() < 0.1 and (older := user.fact(name, 1)):
        fact["supersedes"] = older[0]
    arguments = fact | {"namespace": name}
    if user.rng.random() < 0.5 and "supersedes" not in fact:
        user.client.accept("memory.store", arguments | {"now": user.world.clock.now()})
        user.note(name, [fact])
    else:
        user.note(name, [user.call("memory.store", **arguments)])


def store_many(user: User) -> None:
    """Store a batch."""
    name = user.namespace()
    facts = [new_fact(user) for _ in range(MANY)]
    user.note(name, user.call("memory.store_many", BATCH_SECONDS, facts=facts, namespace=name)["results"])


def recall(user: User) -> None:
    """Recall, which touches the results."""
    rng = user.rng
    options = {"explain": True} if rng.random() < 0.1 else {"kind": "episodic"} if rng.random() < 0.1 else {}
    user.call("memory.recall", RECALL_SECONDS, query=user.question(), namespace=user.namespace(), **options)


def context(user: User) -> None:
    """Request a context."""
    user.call("memory.context", RECALL_SECONDS, query=user.question(), namespace=user.namespace())


def lookup(user: User) -> None:
    """Look up all facts about a person."""
    user.call("memory.lookup", RECALL_SECONDS, entity=user.rng.choice(PEOPLE), namespace=user.namespace())


def link(user: User) -> None:
    """Link two facts."""
    name = user.namespace()
    pair = user.fact(name, 2)
    if len(pair) == 2:
        user.call("memory.link", source=pair[0], target=pair[1], type=user.rng.choice(LINKS), namespace=name)


def relate(user: User) -> None:
    """Observe a relation of two people."""
    one, other = user.rng.sample(PEOPLE, 2)
    user.call("memory.relate", source=one, target=other, type="knows", namespace=user.namespace())


def keep(user: User) -> None:
    """Reinforce, pin or unpin, forget, purge or restore known facts; most are forgotten in the end."""
    name, rng = user.namespace(), user.rng
    ids = user.fact(name, rng.randrange(1, 6))
    what = rng.choices(("reinforce", "pin", "forget", "purge", "restore"), (3, 1, 3, 3, 2))[0]
    if not ids:
        return
    if what in ("reinforce", "pin"):
        more = {} if what == "reinforce" else {"off": rng.random() < 0.5}
        user.call(f"memory.{what}", id=ids[0], namespace=name, **more)
    elif what == "restore":
        user.call("memory.restore", ids=ids, namespace=name)
    else:
        user.call("memory.forget", ids=ids, purge=what == "purge", namespace=name)


def look(user: User) -> None:
    """Call an operation for operators."""
    name, task = user.namespace(), user.rng.choice(("stats", "forecast", "contradictions", "relations", "facts"))
    arguments = {"namespace": name}
    user.client.call(f"memory.{task}", arguments, STORE_SECONDS)


def over_http(user: User) -> None:
    """Send a random request to the HTTP API."""
    rng = user.rng
    what = rng.choices(("recall", "store", "later", "context", "fact", "forget", "metrics"), (8, 4, 2, 1, 1, 1, 1))[0]
    answer = _HTTP[what](user)
    if answer.is_error and answer.status_code != NOT_THERE:
        raise RuntimeError(f"HTTP {what}: {answer.status_code} {answer.text[:200]}")
    if what == "store":
        user.note(OVER_HTTP, [answer.json()])


def _at(id_: Sequence[str]) -> str:
    return f"/memory/facts/{id_[0] if id_ else uuid7()}"


_HTTP: dict[str, Callable[[User], httpx2.Response]] = {
    "recall": lambda user: user.http.post("/memory/recall", json={"query": user.question()}),
    "store": lambda user: user.http.post("/memory/facts", json=new_fact(user)),
    "later": lambda user: user.http.post("/memory/facts", json=new_fact(user), params={"wait": "false"}),
    "context": lambda user: user.http.post("/memory/context", json={"query": user.question()}),
    "fact": lambda user: user.http.get(_at(user.fact(OVER_HTTP, 1))),
    "forget": lambda user: user.http.delete(_at(user.fact(OVER_HTTP, 1))),
    "metrics": lambda user: user.http.get("/metrics"),
}

MIX: dict[Callable[[User], None], int] = {
    store: 22,
    store_many: 3,
    recall: 30,
    context: 6,
    lookup: 4,
    link: 5,
    relate: 5,
    keep: 12,
    look: 2,
    over_http: 14,
}


def run(user: User, rate: float, ending: threading.Event) -> None:
    """Send up to `rate` requests per second until the end."""
    due = time.monotonic()
    while not ending.is_set():
        act = user.rng.choices(list(MIX), list(MIX.values()))[0]
        began = time.perf_counter()
        _do(user, act.__name__, lambda act=act: act(user))  # type: ignore[misc]
        user.seconds[act.__name__].append(time.perf_counter() - began)
        due = max(due + user.rng.expovariate(rate), time.monotonic() - 1)
        ending.wait(max(0.0, due - time.monotonic()))


def _do(user: User, name: str, act: Callable[[], object]) -> None:
    """Send a request and count it; a fact that no longer exists is no failure."""
    try:
        act()
        user.done[name] += 1
    except InvalidInputError as error:
        user.gone[f"{name}: {_without_ids(error)}"] += 1
    except Exception as error:  # noqa: BLE001 - whatever it is, it is one failure, and the user goes on
        user.failed.append(f"{name}: {type(error).__name__}: {error}")


def _without_ids(error: Exception) -> str:
    return " ".join("…" if any(sign.isdigit() for sign in word) else word for word in str(error).split())


ALL = {"everywhere": True}

# Tasks of beat, each with its interval in seconds of the fast clock.
ROUNDS: dict[str, tuple[float, dict[str, Any]]] = {
    "decay.plan": (10.0, ALL),
    "decay.prune": (25.0, ALL),
    "memory.purge": (15.0, ALL),
    "relations.decay": (45.0, ALL),
    "memory.consolidate": (10.0, {"apply": True}),
    "memory.janitor": (10.0, {}),
    "memory.rebuild_indexes": (60.0, {}),
}

ONE_BY_ONE = ("memory.consolidate", "memory.janitor")
"""Tasks for one namespace at a time."""

TIMELESS = ("memory.rebuild_indexes",)


def pass_time(user: User, ending: threading.Event) -> None:
    """Send the tasks of beat at the pace of the fast clock."""
    last = dict.fromkeys(ROUNDS, 0.0)
    while not ending.wait(0.5):
        for task, (every, arguments) in ROUNDS.items():
            if time.monotonic() - last[task] > every:
                last[task] = time.monotonic()
                one: dict[str, Any] = {"namespace": user.namespace()} if task in ONE_BY_ONE else {}
                sent = {**arguments, **one} | ({} if task in TIMELESS else {"now": user.world.clock.now()})
                _do(user, task, lambda task=task, sent=sent: user.client.call(task, sent, BATCH_SECONDS))  # type: ignore[misc]
