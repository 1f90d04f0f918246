"""The servers of a benchmark: PostgreSQL and Redis, configured as `ebb up` does."""

import os
import platform
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
from psycopg import sql

from api.up import servers
from tests import server_process
from workers.context import Context
from workers.coordination.redis import own_keys
from workers.memory.embed import check_embedder
from workers.settings import Settings
from workers.storage import schema
from workers.storage.connection import Connection, close_pools, connect

CHECKOUT = Path(__file__).parents[2]
MEMORY = Path("/proc/meminfo")
PROCESSOR = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """Two running servers, and the folder of their files."""

    folder: Path
    postgres: servers.Postgres
    redis: servers.Redis

    def context(self, database: str, **settings: str) -> Context:
        """Return a context on a database; settings by name, in lower case."""
        own = {f"EBB_{name.upper()}": value for name, value in settings.items()}
        urls = {"EBB_DATABASE_URL": self.postgres.url(database), "EBB_REDIS_URL": self.redis.url()}
        return Context(Settings.from_environment(urls | own))

    def environment(self, settings: Settings) -> dict[str, str]:
        """Return the environment of a process that uses the same two servers."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith("EBB_")}
        urls = {"EBB_DATABASE_URL": settings.database_url, "EBB_REDIS_URL": settings.redis_url}
        paths = [str(CHECKOUT), outside.get("PYTHONPATH", "")]
        own = {"EBB_HOME": str(self.folder / "home"), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        return outside | urls | own

    def exists(self, database: str) -> bool:
        """Return whether a database of that name exists."""
        with self._administration() as db:
            return db.execute("select from pg_database where datname = %s", [database]).fetchone() is not None

    def create(self, database: str, **settings: str) -> Context:
        """Create a database with Ebb's schema and embedder."""
        self.drop(database)
        context = self.context(database, **settings)
        schema.apply(servers.ensure_database(self.postgres, database))
        check_embedder(context)
        return context

    def copy(self, original: str, database: str) -> Context:
        """Create a database as a copy of another, to which only this process's pool may be connected."""
        close_pools()
        self.drop(database)
        self._administer("create database {} template {} strategy file_copy", database, original)
        return self.context(database)

    def rename(self, database: str, new: str) -> None:
        """Rename a database when it is complete."""
        close_pools()
        self._administer("alter database {} rename to {}", database, new)

    def drop(self, database: str) -> None:
        """Drop a database if it exists."""
        self._administer("drop database if exists {} with (force)", database)

    def drop_all(self) -> None:
        """Drop every database that benchmarks have generated."""
        close_pools()
        with self._administration() as db:
            found = db.execute("select datname from pg_database where datname like 'bench\\_%'").fetchall()
        for (database,) in found:
            self.drop(database)

    def empty_redis(self) -> None:
        """Delete every message, result and key of earlier measurements."""
        with redis.Redis.from_url(self.redis.url()) as keys, own_keys(self.redis.url()) as own:
            keys.flushall()
            own.flushdb()

    def _administer(self, statement: str, *names: str) -> None:
        with self._administration() as db:
            db.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def _administration(self) -> Connection:
        return psycopg.connect(self.postgres.url("postgres"), autocommit=True)


@contextmanager
def started(keep: Path | None) -> Iterator[Machine]:
    """Run servers during the block, in a folder that is removed afterwards unless it is to be kept."""
    folder = keep or Path(tempfile.mkdtemp(prefix="ebb-bench-", dir="/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    postgres = servers.Postgres(data=folder / "postgres", sockets=folder / "sockets")
    own_redis = servers.Redis(data=folder / "redis", port=servers.free_port())
    servers.prepare_postgres(postgres, report=lambda _: None)
    servers.prepare_redis(own_redis)
    postgres_url, redis_url = postgres.url("postgres"), own_redis.url()
    try:
        with (
            server_process.running(
                postgres.command(), folder / "postgres.log", lambda: servers.postgres_fault(postgres_url), signal.SIGINT
            ),
            server_process.running(
                own_redis.command(), folder / "redis.log", lambda: servers.redis_fault(redis_url), signal.SIGTERM
            ),
        ):
            yield Machine(folder, postgres, own_redis)
            close_pools()
    finally:
        if keep is None:
            shutil.rmtree(folder)


@contextmanager
def session(context: Context) -> Iterator[Connection]:
    """Yield a separate connection in autocommit, without time limits, for preparing measurements."""
    with connect(context.database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = 0; set maintenance_work_mem = '2GB'")
        yield db


def description() -> dict[str, str | int]:
    """Return a description of the machine."""
    model = [line.split(":")[1].strip() for line in PROCESSOR.read_text().splitlines() if line.startswith("model name")]
    memory = int(MEMORY.read_text().split()[1]) // 1024 if MEMORY.exists() else 0
    return {
        "cores": os.cpu_count() or 0,
        "processor": model[0] if model else platform.processor(),
        "memory_mib": memory,
        "system": platform.platform(),
        "python": platform.python_version(),
    }
