"""Running systems for tests; when a test fails, the workers' logs are shown."""

import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import prepared
import pytest
import redis
import server_process
import stand_in
from databases import WITHOUT_FSYNC, database_of, new_database
from ebb import Memory
from live_api import serving
from live_browser import FLAGS, installed_browser
from live_system import FOLDER, LiveSystem
from pgbouncer import pgbouncer, pooled
from psycopg.conninfo import conninfo_to_dict
from stand_in import StandIn

from api.up import servers

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from api.client import Client


THROUGH_PGBOUNCER = bool(os.environ.get("EBB_TEST_PGBOUNCER"))

SHARED: list[LiveSystem] = []
"""The system shared by all tests of this test process, once one has needed it."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for system in getattr(item, "funcargs", {}).values():
        if report.failed and isinstance(system, LiveSystem):
            system.show_stuck_workers()
            report.sections.append(("logs of the workers", system.logs(2500)))
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the shared system before the tests of other folders, the last ones: even an idle system takes time."""
    if nextitem and nextitem.path.parent != item.path.parent and not nextitem.get_closest_marker("long"):
        for system in SHARED:
            system.stop()


@pytest.fixture(scope="session")
def redis_of_live(server_folder: Path) -> Iterator[str]:
    """Return the URL of a Redis that no test flushes, used by workers across modules."""
    server = servers.Redis(data=server_folder / "redis-of-live", port=servers.free_port(), fsync=WITHOUT_FSYNC)
    servers.prepare_redis(server)
    log = server_folder / "redis-of-live.log"
    with server_process.running(server.command(), log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
        yield server.url()


@pytest.fixture(scope="session", autouse=True)
def _pooler(request: pytest.FixtureRequest, server_folder: Path) -> Iterator[None]:
    """Have all systems on the tests' PostgreSQL reach it through PgBouncer, where `EBB_TEST_PGBOUNCER` is set."""
    if not THROUGH_PGBOUNCER:
        yield
        return
    postgres: servers.Postgres = request.getfixturevalue("postgres")
    own = str(postgres.sockets)
    with pgbouncer(postgres, server_folder / "pooler") as port:
        LiveSystem.pooled = lambda url: pooled(url, port) if conninfo_to_dict(url).get("host") == own else None
        yield


@pytest.fixture(scope="session", autouse=True)
def _prepared() -> Iterator[None]:
    yield
    prepared.source.close()


@pytest.fixture(scope="session")
def webhook() -> Iterator[StandIn]:
    """Return the server that gets the shared system's notices of facts that end soon."""
    with stand_in.serving(StandIn(lambda handler: handler.send(204, b""))) as server:
        yield server


@pytest.fixture(scope="session")
def shared(
    fresh: Callable[[], AbstractContextManager[str]],
    redis_of_live: str,
    webhook: StandIn,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveSystem]:
    """Return the system shared by all tests of this test process."""
    settings = {
        "EBB_ANN_THRESHOLD": "60",
        "EBB_FOLDERS": str(FOLDER.parent),
        "EBB_ENDING_NOTICE_DAYS": "7",
        "EBB_ENDING_WEBHOOK": webhook.url,
    }
    with fresh() as url:
        system = LiveSystem(url, redis_of_live, tmp_path_factory.mktemp("live"), settings, shared=True)
        try:
            system.start("worker", "maintenance")
            SHARED.append(system)
            yield system
        finally:
            system.stop()


@pytest.fixture(scope="module")
def live(shared: LiveSystem) -> Iterator[LiveSystem]:
    """Return the shared system; each test uses a namespace of its own."""
    if not shared.workers:  # stopped, since only other tests seemed to follow
        shared.start("worker", "maintenance")
    yield shared
    shared.settle()
    shared.rows("delete from api_keys")
    shared.send("memory.publish_keys", {}).get()


@pytest.fixture(scope="module")
def url(live: LiveSystem) -> Iterator[str]:
    """Return the address of an API of the shared system."""
    with serving(live) as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture
def memory(url: str, namespace: str) -> Iterator[Memory]:
    """Return the memory of the test's namespace, over HTTP."""
    with Memory(url, namespace=namespace) as memory:
        yield memory


@pytest.fixture
def client(live: LiveSystem, namespace: str) -> Iterator["Client"]:
    """Return the client of the test's namespace."""
    with live.client(namespace) as client:
        yield client


@pytest.fixture(scope="module")
def traceback_logged(live: LiveSystem) -> Callable[[], str]:
    """Return a function for the first traceback that the shared system logged since this module began."""
    sizes = live.log_sizes()

    def found() -> str:
        live.settle()
        return live.traceback_after(sizes)

    return found


@pytest.fixture(scope="module")
def module_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a database for all tests of a module."""
    with database_of(request) as url:
        yield url


@pytest.fixture(scope="module")
def alone(
    module_database: str, redis_server: servers.Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSystem]:
    """Return a system for the tests of one module, which inspect all of its data and work."""
    with started(module_database, redis_server, tmp_path_factory.mktemp("alone"), {}) as system:
        yield system


@pytest.fixture(scope="module")
def real(
    module_database: str, redis_server: servers.Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSystem]:
    """Return a system for the tests of a module without time travel, unlike all others."""
    settings = {"EBB_TIME_TRAVEL": "false"}
    with started(module_database, redis_server, tmp_path_factory.mktemp("real"), settings) as system:
        yield system


@contextmanager
def started(url: str, redis_server: servers.Redis, folder: Path, settings: dict[str, str]) -> Iterator[LiveSystem]:
    """Yield a system that runs on an emptied Redis."""
    with redis.Redis.from_url(redis_server.url()) as keys:
        keys.flushall()
    system = LiveSystem(url, redis_server.url(), folder, settings)
    try:
        system.start("all")
        yield system
    finally:
        system.stop()


@pytest.fixture
def idle(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[LiveSystem]:
    """Return a system for one test, which starts its workers and may kill them."""
    system = LiveSystem(database_url, redis_url, tmp_path)
    yield system
    system.stop()


@pytest.fixture
def copy_of(postgres: servers.Postgres, database_url: str) -> Iterator[Callable[[], str]]:
    """Return a function that copies the test's database, which must have no connections."""
    copies = []

    def copy() -> str:
        copied = new_database(postgres, str(conninfo_to_dict(database_url)["dbname"]))
        copies.append(copied)
        return copied.__enter__()

    yield copy
    for copied in copies:
        copied.__exit__(None, None, None)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Return a real browser; skip the test if there is none."""
    from playwright.sync_api import sync_playwright  # most tests do not need a browser

    with sync_playwright() as playwright:
        found = installed_browser(playwright.chromium.executable_path)
        if found is None:
            pytest.skip("no browser: install chromium, or run `playwright install chromium`")
        running = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def namespace() -> str:
    """Return a namespace for one test."""
    return f"test-{uuid4()}"
