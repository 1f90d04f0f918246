"""Fixtures of memories on real servers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from databases import CITUS_URL, database_of, new_database, reused_databases
from memory import DOCUMENTED, SHARDS, Memory
from psycopg.conninfo import conninfo_to_dict

from api.up.servers import Postgres
from workers.context import Context
from workers.memory.embed import check_embedder
from workers.settings import Settings
from workers.storage import schema
from workers.storage.connection import close_pools


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach stand-ins on this machine directly, whatever proxy the environment names."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="session")
def reused(postgres: Postgres, template: str) -> Iterator[Callable[[], AbstractContextManager[str]]]:
    with reused_databases(postgres, template) as databases:
        yield databases


@pytest.fixture(scope="session")
def reused_sharded(postgres: Postgres, template: str) -> Iterator[Callable[[], AbstractContextManager[str]]]:
    with new_database(postgres, template) as url:
        schema.apply(url, count=SHARDS)
        close_pools()
        with reused_databases(postgres, str(conninfo_to_dict(url)["dbname"])) as databases:
            yield databases


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a database without rows, which other tests may have used before; with shards for `sharded`."""
    if CITUS_URL:
        with database_of(request) as url:
            yield url
            close_pools()
    else:
        with request.getfixturevalue("reused_sharded" if "sharded" in request.fixturenames else "reused")() as url:
            yield url


@pytest.fixture
def context(database_url: str, redis_url: str) -> Context:
    context = Context(Settings(database_url=database_url, redis_url=redis_url, time_travel=True, **DOCUMENTED))
    check_embedder(context)
    return context


@pytest.fixture
def memory(context: Context) -> Memory:
    return Memory(context)


@pytest.fixture
def sharded(context: Context) -> Iterator[Memory]:
    """Return a memory on several shards."""
    memory = Memory(context).having(shards=SHARDS)
    if CITUS_URL:
        schema.apply(context.database_url, count=SHARDS)
    for _ in memory.context.each_shard():
        check_embedder(memory.context)
    yield memory
    close_pools()


@pytest.fixture
def twin(memory: Memory, postgres: Postgres, template: str) -> Iterator[Memory]:
    """Return a second memory in its own database, for comparison."""
    with new_database(postgres, template) as url:
        twin = memory.having(database_url=url)
        check_embedder(twin.context)
        yield twin
        close_pools()
