"""Real servers for the tests: one PostgreSQL and one Redis for all tests, and a fresh database for each test."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import cache, partial
from pathlib import Path

import httpcore2
import pytest
import redis
import server_process
from databases import (
    CITUS_URL,
    SHARDS,
    UNSYNCED,
    WITHOUT_FSYNC,
    database_of,
    distributed_schemas,
    new_database,
    wait_until_dropped,
)
from hypothesis import settings
from made_up import examples

from api.up import servers


def _own_ports() -> range:
    """Return ports that no other test process chooses; each second one, since `ebb up` also takes the port after."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = servers.FREE_PORTS
    size = len(ports) // count
    return range(ports.start + number * size, ports.start + (number + 1) * size, 2)


servers.FREE_PORTS = _own_ports()
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)  # hundreds of clients: reading it takes 20 ms
settings.register_profile("ebb", examples(100))
settings.load_profile("ebb")

IN_MEMORY = Path("/dev/shm")
HERE = Path(__file__).parent
LONGEST_FIRST = ("acceptance", "integration", "unit")
"""The folders of tests in the order in which their files start."""

LEAST_FREE = 4 * 1024**3
"""Free bytes of memory required for the servers of one test process."""


def pytest_collection() -> None:
    """Look for garbage only once everything is imported: little of it is garbage, and the search takes a second."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude what was imported from garbage collection: walking it took a tenth of the tests' processor time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start long files first and short ones last, so that all test processes end at about the same time."""
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (item.path not in long, LONGEST_FIRST.index(item.path.relative_to(HERE).parts[0])))


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Return a folder with a path short enough for Unix sockets, unlike pytest's own.

    It is in memory if there is room: copying and dropping a database creates and removes 400 files. The folders of
    killed runs are removed; a server that still runs in one stops then.
    """
    for killed in IN_MEMORY.glob("ebb-*/lock"):
        with suppress(OSError), killed.open() as lock:
            flock(lock, LOCK_EX | LOCK_NB)
            shutil.rmtree(killed.parent, ignore_errors=True)
    in_memory = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > LEAST_FREE
    new = Path(tempfile.mkdtemp(prefix="new-", dir=IN_MEMORY if in_memory else "/tmp"))
    with (new / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        folder = new.rename(new.with_name(new.name.replace("new-", "ebb-")))
        yield folder
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres(server_folder: Path) -> Iterator[servers.Postgres]:
    server = servers.Postgres(data=server_folder / "postgres", sockets=server_folder / "sockets")
    servers.prepare_postgres(server, report=print)
    log = server_folder / "postgres.log"
    url = server.url("postgres")
    with server_process.running(
        [*server.command(), *UNSYNCED], log, lambda: servers.postgres_fault(url), signal.SIGINT
    ):
        yield server
        wait_until_dropped()


@pytest.fixture(scope="session")
def redis_server(server_folder: Path) -> Iterator[servers.Redis]:
    server = servers.Redis(data=server_folder / "redis", port=servers.free_port(), fsync=WITHOUT_FSYNC)
    servers.prepare_redis(server)
    log = server_folder / "redis.log"
    with server_process.running(server.command(), log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
        yield server


@pytest.fixture(scope="session")
def template(postgres: servers.Postgres) -> str:
    """Return the name of the database that tests copy, with the schema in it."""
    from workers.storage import schema  # tests of the pure core do not need tables

    schema.apply(servers.ensure_database(postgres, "template_ebb"), count=SHARDS)
    return "template_ebb"


@pytest.fixture(scope="session")
def fresh(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[str]]]:
    """Return a function for a new database, or for an empty schema on the cluster that `EBB_TEST_CITUS_URL` names."""
    if CITUS_URL:
        with distributed_schemas(CITUS_URL) as schemas:
            yield schemas
    else:
        yield partial(new_database, request.getfixturevalue("postgres"), request.getfixturevalue("template"))


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    with database_of(request) as url:
        yield url


@pytest.fixture(scope="session")
def redis_client(redis_server: servers.Redis) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url()) as client:
        yield client


@pytest.fixture
def redis_url(redis_server: servers.Redis, redis_client: redis.Redis) -> str:
    redis_client.flushall()
    return redis_server.url()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove a developer's own `EBB_*` variables."""
    for name in [name for name in os.environ if name.startswith("EBB_")]:
        monkeypatch.delenv(name)
