"""PostgreSQL with streaming replication for a test: a primary and its replica."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from databases import SHARDS, UNSYNCED

from api.up import servers
from api.up.processes import grant_access, launched, system_user
from workers.storage import replicas, schema
from workers.storage.connection import close_pools

DATABASE = "ebb"


@dataclass
class Replicated:
    """A primary and its replicas by their initial names."""

    folder: Path
    wait: Callable[[Callable[[], object], str], object]
    known: dict[str, servers.Postgres] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def prepare(self) -> None:
        """Start a primary with Ebb's tables, and a replica of it."""
        primary = self.known["primary"] = self._server("primary")
        servers.prepare_postgres(primary, report=print)
        self.start("primary")
        schema.apply(servers.ensure_database(primary, DATABASE), count=SHARDS)
        self.add("replica")

    def add(self, name: str) -> None:
        """Start another replica of the primary."""
        replica = self.known[name] = self._server(name)
        self._copy(self.known["primary"], replica)
        self.start(name)

    def _server(self, name: str) -> servers.Postgres:
        return servers.Postgres(data=self.folder / name, sockets=self.folder / f"{name}-sockets")

    def _copy(self, primary: servers.Postgres, replica: servers.Postgres) -> None:
        copy = [str(servers.postgres_programs() / "pg_basebackup"), "--host", str(primary.sockets), "--user=postgres"]
        copy += ["--pgdata", str(replica.data), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        replica.sockets.mkdir(mode=0o700)
        replica.data.mkdir(mode=0o700)
        user = system_user()
        if user is not None:
            grant_access(user, [replica.data, replica.sockets], servers.postgres_programs(), print)
        subprocess.run(launched("TERM", copy, user), check=True, cwd="/")

    def start(self, name: str) -> None:
        """Start a server and return when it answers."""
        server = self.known[name]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*server.command(), *UNSYNCED, "-c", "hot_standby_feedback=on", "-c", "wal_receiver_timeout=5s"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.wait(lambda: servers.postgres_fault(server.url("postgres")) is None, f"{name} answers")

    def end(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Kill a server with SIGKILL, as if its host had failed."""
        process = self.running.pop(name)
        process.send_signal(how)
        process.wait()

    def stop(self) -> None:
        """Stop all servers."""
        for name in [*self.running]:
            self.end(name, signal.SIGINT)

    def url(self, name: str) -> str:
        """Return the URL of the database on a server."""
        return self.known[name].url(DATABASE)

    def both(self) -> str:
        """Return the URL that selects the server that accepts writes."""
        hosts = ",".join(str(server.sockets) for server in self.known.values())
        return f"postgresql://postgres@/{DATABASE}?host={hosts}&target_session_attrs=read-write"

    def do(self, name: str, statement: str) -> tuple[object, ...]:
        """Run a statement on a server, and return its first row."""
        with psycopg.connect(self.url(name), autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return (cursor.fetchone() if cursor.description else None) or ()

    def catch_up(self) -> None:
        """Wait until the replica has replayed everything written so far."""
        (written,) = self.do("primary", "select pg_current_wal_flush_lsn()::text")
        self.wait(
            lambda: self.do("replica", f"select pg_last_wal_replay_lsn() >= '{written}'::pg_lsn")[0],
            "the replica has everything",
        )


@contextmanager
def replicated(folder: Path, wait: Callable[[Callable[[], object], str], object]) -> Iterator[Replicated]:
    """Run a primary and its replica for the duration of the block; `wait` waits for a condition."""
    folder.mkdir()
    both = Replicated(folder, wait)
    try:
        both.prepare()
        yield both
    finally:
        replicas.stop()
        close_pools()
        both.stop()
