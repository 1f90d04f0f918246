"""Many hosts: workers come and go under load, a host is cut off, and clocks differ; nothing is lost or doubled."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import hosts
import pytest
import server_process
from databases import SHARDS, UNSYNCED, WITHOUT_FSYNC
from ebb import EbbError, Memory
from hosts import FAKETIME, Network, network
from live_system import ROOT, LiveSystem, end, eventually, node
from load import Load, swept

from api.up import servers
from workers.storage import schema

FAULT = hosts.missing()

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(FAULT is not None, reason=str(FAULT)),
]

AWAY_SECONDS = 60.0 if os.environ.get("DEEP") else 3.0
"""How long a host is cut off."""

AHEAD = 3_600
"""By how many seconds the clock of the third host of workers is ahead."""

WORKERS = 8 if os.environ.get("DEEP") else 3
WRITES = 60 if os.environ.get("DEEP") else 10
"""How many writes each state of the hosts is measured with."""

PORT = 5432


@dataclass
class Hosted(LiveSystem):
    """A system whose parts run on hosts of their own: a worker is named by its host and a number."""

    network: Network = field(default_factory=Network)

    def _launch(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "workers", "worker", "--queues=recall,store,maintenance"]
        command += ["--concurrency=1", f"--hostname={node(name)}", "--without-mingle", "--without-gossip"]
        return self.run(name.partition("-")[0], name, command, OMP_NUM_THREADS="1")

    def run(self, host: str, name: str, command: list[str], **more: str) -> subprocess.Popen[bytes]:
        """Start a program on a host, with a log by its name."""
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                self.network.on(host, command),
                cwd=ROOT,
                env=self.environment() | more,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@pytest.fixture
def system(server_folder: Path, tmp_path: Path) -> Iterator[Hosted]:
    """Return a system with a host each for PostgreSQL, Redis and the API, and three for workers."""
    with ExitStack() as stack:
        net = stack.enter_context(network())
        for host in ("db", "broker", "api", "first", "second"):
            net.add(host)
        net.add("third", AHEAD if FAKETIME else 0)
        url = stack.enter_context(_postgres(net, server_folder / "hosts-postgres"))
        broker = stack.enter_context(_redis(net, server_folder / "hosts-redis"))
        system = Hosted(url, broker, tmp_path, {"EBB_TIME_TRAVEL": "false"}, network=net)
        stack.callback(system.stop)
        yield system


@contextmanager
def _postgres(net: Network, data: Path) -> Iterator[str]:
    server = servers.Postgres(data=data, sockets=data.with_name("hosts-sockets"))
    servers.prepare_postgres(server, report=print)
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.0.0.0/8 trust\n")
    command = net.on("db", [*server.command(), *UNSYNCED, "-c", "listen_addresses=*", "-c", f"port={PORT}"])
    fault = lambda: servers.postgres_fault(server.url("postgres"))  # noqa: E731 - a short one
    with server_process.running(command, data.with_name("hosts-postgres.log"), fault, signal.SIGINT):
        schema.apply(servers.ensure_database(server, "ebb"), count=SHARDS)
        yield f"postgresql://postgres@{net.address('db')}:{PORT}/ebb"


@contextmanager
def _redis(net: Network, data: Path) -> Iterator[str]:
    server = servers.Redis(data=data, port=servers.free_port(), fsync=WITHOUT_FSYNC)
    servers.prepare_redis(server)
    url = server.url().replace("127.0.0.1", net.address("broker"))
    command = net.on("broker", [*server.command(), "--bind", "*", "--protected-mode", "no"])
    with server_process.running(
        command, data.with_name("hosts-redis.log"), lambda: servers.redis_fault(url), signal.SIGTERM
    ):
        yield url


@contextmanager
def _api(system: Hosted) -> Iterator[Memory]:
    """Run the API on its host; give a client of it, which a key lets in."""
    address, port = system.network.address("api"), servers.free_port()
    key = system.ebb_json("keys", "create", "-n", "default")["key"]
    command = [sys.executable, "-m", "api.http"]
    process = system.run("api", "api", command, EBB_HOST=address, EBB_PORT=str(port))
    try:
        with Memory(f"http://{address}:{port}", key=key) as memory:
            eventually(lambda: _answers(memory), "the API answers")
            yield memory
    finally:
        end(process)


def _answers(memory: Memory) -> bool:
    try:
        memory.facts(limit=1)
    except EbbError:
        return False
    return True


@dataclass
class Throughput:
    """How many writes were acknowledged, and in how many seconds."""

    loads: Sequence[Load]
    figures: dict[str, float] = field(default_factory=dict)

    def acknowledged(self) -> int:
        return sum(len(load.acknowledged) for load in self.loads)

    def measure(self, what: str, writes: int = WRITES) -> None:
        """Note the rate of the next so many writes."""
        before, began = self.acknowledged(), time.monotonic()
        eventually(lambda: self.acknowledged() >= before + writes, what)
        self.figures[what] = round(writes / (time.monotonic() - began), 1)


def test_workers_come_and_go_a_host_is_cut_off_and_clocks_differ_and_nothing_is_lost(system: Hosted) -> None:
    names = [f"{host}-{number}" for number in range(3) for host in ("first", "second", "third")][:WORKERS]
    system.start(names[0])
    ((began,),) = system.rows("select clock_timestamp()")
    with ExitStack() as stack:
        memory = stack.enter_context(_api(system))
        loads = [Load(system, wait=True, store=memory.store), *(Load(system, wait=wait) for wait in (True, False))]
        for load in loads:
            stack.enter_context(load)
        rates = Throughput(loads)
        rates.measure("1 worker")
        system.start(*names[1:])
        rates.measure(f"{WORKERS} workers")
        with system.network.cut_off("second"):
            away_from = time.monotonic()
            rates.measure("a host cut off")
            eventually(lambda: time.monotonic() > away_from + AWAY_SECONDS, "the host was away for long enough")
        rates.measure(f"{WORKERS} workers again")
        for name in names[1:]:
            end(system.workers.pop(name))
        rates.measure("1 worker again")
    eventually(lambda: swept(system), "what was accepted is stored")
    rows = system.rows("select id::text, text, created_at between %s and clock_timestamp() from facts", [began])
    acknowledged = set().union(*(load.acknowledged for load in loads))
    figures = rates.figures | {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - {id_ for id_, _, _ in rows}),
        "doubled": sum(times - 1 for times in Counter(text for _, text, _ in rows).values()),
        "dated wrongly": sum(not dated for _, _, dated in rows),
    }
    sys.stdout.write(f"{figures}\n")
    assert [figures[name] for name in ("lost", "doubled", "dated wrongly")] == [0, 0, 0], figures
