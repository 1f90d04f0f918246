"""The system under test: embedded servers, workers and beats, each restarted when it ends."""

import os
import re
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, Signals
from uuid import uuid4

import psutil
import redis
from celery import Celery
from psycopg.conninfo import make_conninfo

from api.up import servers
from api.up.processes import launched
from tests.chaos import launch
from tests.databases import drop_schemas
from workers.context import Context
from workers.coordination import bulk, outbox, touches
from workers.coordination.redis import own_keys
from workers.memory.embed import check_embedder
from workers.queues import UNACKED, configuration, length_of
from workers.settings import Settings
from workers.storage import schema

CHECKOUT = Path(__file__).parents[2]
WORKERS = {"worker": "recall,store", "maintenance": "maintenance"}
SETTINGS = {
    "EBB_DECAY_BATCH": "20",
    "EBB_SEGMENTS": "4",
    "EBB_LOG_LEVEL": "info",
    "EBB_SALIENCE": "constant",
    "EBB_FORGET_LIMIT": "1",
    "EBB_TIME_TRAVEL": "true",
    "EBB_TOUCH_COOLDOWN": "0",
}
SHARDS = "EBB_SHARDS"
START_SECONDS = 90.0
RESTART_SECONDS = 0.3
TWINS_KEYS = "4"
"""The Redis database of the twin; its own keys are in the next one, apart from locks left by killed processes."""

LOST = re.compile(r"Task ([\w.]+)\[\S+ retry: .*WorkerLostError")


def until(look: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> float:
    """Wait until a condition is true; return the seconds waited.

    Raises:
        TimeoutError: it did not become true.
    """
    began = time.monotonic()
    while not look():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"Within {seconds:g} s it did not come true that {what}.")
        time.sleep(0.02)
    return time.monotonic() - began


@dataclass
class Program:
    """A process that is restarted when it ends, unless it is held."""

    name: str
    command: list[str]
    log: Path
    environment: Mapping[str, str] | None = None
    process: "subprocess.Popen[bytes] | None" = None
    held: bool = True
    restarts: int = 0

    def start(self) -> None:
        """Start it, and restart it whenever it ends."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.held = False

    def look_after(self) -> None:
        """Restart it if it has ended."""
        if not self.held and self.process is not None and self.process.poll() is not None:
            time.sleep(RESTART_SECONDS)
            if not self.held:
                self.restarts += 1
                self.start()

    def signal(self, number: Signals) -> None:
        """Send it a signal; it is restarted if it ends."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self, number: Signals) -> None:
        """Stop it with a signal and wait; it is not restarted."""
        self.held = True
        if self.process is not None:
            self.signal(number)
            self.process.wait(60)

    def end(self) -> None:
        """Kill it with all of its children."""
        self.held = True
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, SIGKILL)
            self.process.wait()

    def children(self) -> list[psutil.Process]:
        """Return its current children."""
        if self.process is None:
            return []
        try:
            return psutil.Process(self.process.pid).children()
        except psutil.NoSuchProcess:
            return []


@dataclass
class System:
    """All programs of a system, in their own folder."""

    folder: Path
    postgres_folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    world: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    citus: str = ""
    """The address of a cluster's database, in which each system is a schema; without one, it has its own server."""
    programs: dict[str, Program] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Prepare both servers."""
        self.own_postgres = servers.Postgres(data=self.postgres_folder / "postgres", sockets=self.folder / "sockets")
        # with `everysec`, a killed one may lose two seconds of what it answered while its disk is slow
        self.own_redis = servers.Redis(data=self.folder / "redis", port=servers.free_port(), fsync="no")
        if not self.citus:
            servers.prepare_postgres(self.own_postgres, report=lambda _: None)
        servers.prepare_redis(self.own_redis)
        self.clock, self.clients_clock = self.folder / "clock", self.folder / "clients-clock"
        for clock in (self.clock, self.clients_clock):
            clock.write_bytes(struct.pack("d", 0.0))
        self.database = f"chaos_{uuid4().hex[:8]}"
        self.keeper = threading.Thread(target=self._keep, daemon=True)

    @property
    def database_url(self) -> str:
        """Return the address of the database that the workers use."""
        return self.url_of(self.database)

    @property
    def shards(self) -> int:
        """Return the number of shards."""
        return int(self.settings.get(SHARDS, "1"))

    @property
    def shard_urls(self) -> list[str]:
        """Return the address of each shard."""
        home = self.database if self.citus else "public"
        further = [f"{home}_{number:04}" for number in range(1, self.shards)]
        paths = [f"-csearch_path={schema},public" for schema in further]
        return [self.database_url, *(make_conninfo(self.database_url, options=path) for path in paths)]

    def url_of(self, database: str) -> str:
        """Return the address of a database, which is a schema on a cluster."""
        if self.citus:
            return make_conninfo(self.citus, options=f"-csearch_path={database},public")
        return self.own_postgres.url(database)

    @property
    def redis_url(self) -> str:
        """Return the address of Redis."""
        return self.own_redis.url()

    def start(self, *, beats: int = 1) -> None:
        """Start everything, and return when the workers answer."""
        self.start_servers()
        self.create(self.database)
        for name, queues in WORKERS.items():
            self._add(name, "worker", *_worker_options(name, queues))
        for number in range(beats):
            self.add_beat(number)
        self.keeper.start()
        until(self.answers, "the workers answer")

    def start_servers(self) -> None:
        """Start PostgreSQL, unless a cluster runs already, and Redis."""
        commands = {"postgres": [*self.own_postgres.command(), *self.options], "redis": self.own_redis.command()}
        if self.citus:
            del commands["postgres"]
        for name, what in commands.items():
            self.programs[name] = Program(name, what, self.folder / f"{name}.log")
            self.bring_up(name)

    def bring_up(self, name: str) -> None:
        """Start a server, and return when it answers."""
        program = self.programs[name]
        if program.process is None or program.process.poll() is not None:
            program.start()
        program.held = False
        until(lambda: self.server_fault(name) is None, f"{name} answers")

    def server_fault(self, name: str) -> str | None:
        """Return the reason why a server does not answer, or None if it does."""
        if name == "redis":
            return servers.redis_fault(self.redis_url)
        return servers.postgres_fault(self.own_postgres.url("postgres"))

    def add_beat(self, number: int) -> Program:
        """Start one more beat."""
        schedule = self.folder / f"beat-{number}"
        return self._add(f"beat-{number}", "beat", f"--schedule={schedule}", "--pidfile=", "--loglevel=info")

    def _add(self, name: str, *arguments: str) -> Program:
        command = launched("KILL", [sys.executable, "-m", "tests.chaos.launch", *arguments])
        program = Program(name, command, self.folder / f"{name}.log", self.environment())
        self.programs[name] = program
        program.start()
        return program

    def environment(self) -> dict[str, str]:
        """Return the environment of every process of Ebb."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("EBB_", "CHAOS_"))}
        urls = {"EBB_DATABASE_URL": self.database_url, "EBB_REDIS_URL": self.redis_url}
        paths = {"EBB_HOME": str(self.folder / "home"), "PYTHONPATH": str(CHECKOUT), launch.CLOCK: str(self.clock)}
        threads = {"REMAP_SIGTERM": "SIGQUIT", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return outside | urls | paths | threads | SETTINGS | self.settings | self.world

    def context(self, database: str) -> Context:
        """Return a context for a database of this server; the twin has its own Redis keys, and one shard."""
        redis_url = self.redis_url if database == self.database else self.redis_url.removesuffix("0") + TWINS_KEYS
        urls = {"EBB_DATABASE_URL": self.url_of(database), "EBB_REDIS_URL": redis_url}
        shards = {} if database == self.database else {SHARDS: "1"}
        return Context(Settings.from_environment(urls | SETTINGS | self.settings | shards))

    def create(self, database: str) -> Context:
        """Create an empty database with Ebb's schema and embedder."""
        context = self.context(database)
        if not self.citus:
            servers.ensure_database(self.own_postgres, database)
        schema.apply(self.url_of(database), count=context.settings.shards)
        for _ in context.each_shard():
            check_embedder(context)
        return context

    def set_clock(self, shift: float, *, of_clients: bool = False) -> None:
        """Shift the clock of all workers and beats, or of clients, by a number of seconds."""
        clock = self.clients_clock if of_clients else self.clock
        with clock.open("r+b") as file:  # in place: processes that have it mapped would die of a shorter file
            file.write(struct.pack("d", shift))

    def add_client(self, number: int, seed: int) -> Program:
        """Start a client with a ledger, on the clock of clients."""
        environment = self.environment() | {launch.CLOCK: str(self.clients_clock)}
        arguments = [self.redis_url, f"{seed} {number}", str(self.folder / f"ledger-{number}")]
        command = launched("KILL", [sys.executable, "-m", "tests.chaos.ledger", *arguments])
        program = Program(f"client-{number}", command, self.folder / f"client-{number}.log", environment)
        self.programs[program.name] = program
        program.start()
        return program

    def ledgers(self) -> list[Path]:
        """Return the files of the clients with ledgers."""
        return sorted(self.folder.glob("ledger-*"))

    def workers(self) -> list[Program]:
        """Return the two workers."""
        return [self.programs[name] for name in WORKERS]

    def answers(self) -> bool:
        """Return whether both workers answer."""
        app = Celery("chaos", set_as_current=False)
        app.conf.update(configuration(self.redis_url))
        try:
            return len(app.control.ping(timeout=1.0, limit=len(WORKERS))) == len(WORKERS)
        finally:
            app.close()

    def waiting(self) -> dict[str, int]:
        """Return the numbers of waiting messages, unacknowledged deliveries and accepted writes."""
        with redis.Redis.from_url(self.redis_url) as keys, own_keys(self.redis_url) as own:
            queues = {queue: length_of(keys, queue) for queue in launch.QUEUES}
            kept = {
                "outbox": outbox.size(own),
                "bulk lane": bulk.waiting(own)["batches"],
                "touches": int(own.zcard(touches.SENT)),
            }
            return queues | {"unacknowledged": int(keys.hlen(UNACKED))} | kept

    def lost_children(self) -> dict[str, int]:
        """Return the number of lost children by task, from the workers' logs."""
        logs = "".join((self.folder / f"{name}.log").read_text(errors="replace") for name in WORKERS)
        return dict(Counter(LOST.findall(logs)))

    def stop(self) -> None:
        """Stop all programs, Ebb's own first."""
        self.over.set()
        if self.keeper.is_alive():
            self.keeper.join()
        own = [program for name, program in self.programs.items() if name not in ("postgres", "redis")]
        for program in [*own, *(self.programs[name] for name in ("redis", "postgres") if name in self.programs)]:
            program.end()
        self._end_orphans()
        if self.citus:
            drop_schemas(self.citus, self.database)

    def _end_orphans(self) -> None:
        """Kill the remaining children of killed workers."""
        mark = str(self.folder)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("EBB_HOME", "").startswith(mark):
                    process.kill()

    def _keep(self) -> None:
        while not self.over.wait(0.1):
            for program in list(self.programs.values()):
                program.look_after()


def _worker_options(name: str, queues: str) -> list[str]:
    node = f"--hostname={name}@chaos"
    return [f"--queues={queues}", "--concurrency=2", node, "--without-mingle", "--without-gossip", "--loglevel=info"]
