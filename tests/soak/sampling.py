"""Samples of a running system: memory and files of each process, queues, connections, sizes of tables and indexes."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

import psutil
import psycopg
import redis
from ebb.broker import RESULTS_AFTER

from tests.soak.system import System
from workers.coordination import bulk, outbox
from workers.coordination.redis import open_redis, own_keys
from workers.queues import MAINTENANCE, RECALL, STORE, UNACKED, length_of

PROC = Path("/proc")
KIB = 1024
EVERY_SECONDS = 5.0
SIZES_EVERY = 6
SAMPLED_KEYS = 300

CONNECTIONS = """
    select count(*), count(*) filter (where state = 'active'),
        coalesce(max(extract(epoch from now() - state_change)) filter (where state like 'idle in transaction%%'), 0)
    from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and application_name <> %s
"""
OWN_NAME = "soak"

SIZES = """
    select relname, pg_relation_size(oid) from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'i') and pg_relation_size(oid) > 0
"""

LIVE = "select count(*) filter (where forgotten_at is null), count(*) from facts"


@dataclass(frozen=True, slots=True)
class Memory:
    """Anonymous memory of a process in MiB, in total and as its proportional share, and its open files.

    Pages of files are left out, since the kernel evicts them on demand, and so is PostgreSQL's shared cache, which
    fills up to its size. Children share pages with their parent until one of them writes to them. A leak shows in the
    total. The share also grows when a process copies a shared page; the shares of all processes add up to the memory
    in use.
    """

    program: str
    own: float
    share: float
    files: int


@dataclass(slots=True)
class Samples:
    """All samples of one run; times are seconds since its start. `missed` lists samples that failed."""

    times: list[float] = field(default_factory=list)
    processes: list[dict[int, Memory]] = field(default_factory=list)
    servers: list[dict[str, float]] = field(default_factory=list)
    sizes: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, at: float, taken: "Sample") -> None:
        """Add the sample of one instant."""
        self.times.append(at)
        self.processes.append(taken.processes)
        self.servers.append(taken.servers)
        if taken.sizes:
            self.sizes.append((at, taken.sizes))


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample of one instant; sizes of tables and indexes only in some."""

    processes: dict[int, Memory]
    servers: dict[str, float]
    sizes: dict[str, int]


@contextmanager
def sampled(system: System, file: Path) -> Iterator[Samples]:
    """Take a sample every five seconds while the block runs, and write each to a file immediately."""
    samples, ending = Samples(), threading.Event()
    with ThreadPoolExecutor(1) as thread, file.open("a", encoding="utf-8") as lines:
        sampling = thread.submit(_sample, system, samples, ending, lines)
        try:
            yield samples
        finally:
            ending.set()
            sampling.result()


def _sample(system: System, samples: Samples, ending: threading.Event, lines: TextIO) -> None:
    began, number = time.monotonic(), 0
    while not ending.wait(max(0.0, began + number * EVERY_SECONDS - time.monotonic())):
        try:
            taken = _now(system, with_sizes=number % SIZES_EVERY == 0)
        except Exception as error:  # noqa: BLE001 - one sample less, of whatever reason, must not cost all others
            samples.missed.append(f"{time.monotonic() - began:.0f} s: {type(error).__name__}: {error}")
        else:
            at = time.monotonic() - began
            samples.add(at, taken)
            print(json.dumps([at, asdict(taken)]), file=lines, flush=True)
        number += 1


def _now(system: System, *, with_sizes: bool) -> Sample:
    url = system.database_url
    with psycopg.connect(url, autocommit=True, application_name=OWN_NAME, connect_timeout=5) as db:
        sizes = db.execute(SIZES).fetchall() if with_sizes else []
        return Sample(memory(system), {**_redis(system), **_database(db)}, dict(sizes))


def read(file: Path) -> Samples:
    """Return the samples in a file, whose last line may be incomplete."""
    samples = Samples()
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            at, values = json.loads(line)
            processes = {int(pid): Memory(**one) for pid, one in values.pop("processes").items()}
            samples.add(at, Sample(processes, **values))
    return samples


def memory(system: System) -> dict[int, Memory]:
    """Return the memory and files of each process."""
    found = {}
    for program, process in system.programs():
        with suppress(OSError, psutil.Error):  # it has just ended
            found[process.pid] = _memory(program, process.pid)
    return found


def _memory(program: str, pid: int) -> Memory:
    lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    kib = {name.rstrip(":"): int(value) for name, value, *_ in (line.split() for line in lines)}
    files = len(list((PROC / str(pid) / "fd").iterdir()))
    return Memory(program, kib["Anonymous"] / KIB, kib["Pss_Anon"] / KIB, files)


def waiting(system: System) -> float:
    """Return the number of messages that wait, are being processed, or are in the outbox."""
    with redis.Redis.from_url(system.redis_url) as messages, own_keys(system.redis_url) as own:
        return sum(_waiting(messages, own).values())


def _waiting(messages: redis.Redis, own: redis.Redis) -> dict[str, float]:
    found = {f"queue {name}": float(length_of(messages, name)) for name in (RECALL, STORE, MAINTENANCE)}
    kept = {"outbox": float(outbox.size(own)), "bulk lane": float(bulk.waiting(own)["batches"])}
    return found | {"unacknowledged": float(messages.hlen(UNACKED))} | kept


def _redis(system: System) -> dict[str, float]:
    """Return the lengths of the queues, and the memory of Redis in total and without expiring keys."""
    with redis.Redis.from_url(system.redis_url) as messages, own_keys(system.redis_url) as own:
        found = _waiting(messages, own)
        found["redis clients"] = float(messages.info("clients")["connected_clients"])
        keyspace = messages.info("keyspace")
        found["keys that stay"] = float(sum(one["keys"] - one["expires"] for one in keyspace.values()))
        found["keys that expire"] = float(sum(one["expires"] for one in keyspace.values()))
        whole = messages.info("memory")["used_memory"] / KIB / KIB
        found["redis MiB"] = whole
        with open_redis(system.redis_url, RESULTS_AFTER) as results:
            found["redis MiB without keys that expire"] = whole - _expiring_mib(own) - _expiring_mib(results)
    return found


def _expiring_mib(keys: redis.Redis) -> float:
    """Return the estimated size of the expiring keys, from a sample."""
    space: dict[str, Any] = keys.info("keyspace").get(f"db{keys.connection_pool.connection_kwargs['db']}", {})
    if not space.get("expires"):
        return 0.0
    with keys.pipeline(transaction=False) as asking:
        for _ in range(SAMPLED_KEYS):
            asking.randomkey()
        names = asking.execute()
        for name in names:
            asking.ttl(name)
            asking.memory_usage(name)
        answers = asking.execute()
    taken = [size for ttl, size in zip(answers[::2], answers[1::2], strict=True) if size and ttl > 0]
    return float(space["expires"] * sum(taken) / max(len(taken), 1) / KIB / KIB)


def _database(db: "psycopg.Connection[Any]") -> dict[str, float]:
    connections, active, idle = db.execute(CONNECTIONS, [OWN_NAME]).fetchone() or (0, 0, 0)
    live, rows = db.execute(LIVE).fetchone() or (0, 0)
    return {
        "connections": float(connections),
        "active connections": float(active),
        "longest idle in transaction s": float(idle),
        "live facts": float(live),
        "facts": float(rows),
    }
