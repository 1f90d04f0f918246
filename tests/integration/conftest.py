"""Memories on the real servers: the embedder checked in, the pools closed at the end."""

from collections.abc import Iterator
from typing import Any

import pytest
from databases import new_database
from memory import Memory

from api.up.servers import Postgres
from workers.context import Context
from workers.memory.embed import check_embedder
from workers.settings import Settings
from workers.storage.connection import close_pools


@pytest.fixture
def context(database_url: str, redis_url: str) -> Iterator[Context]:
    # The documented start of a curve and classes of words: a fact's strength must not hang on the words of a test.
    documented: dict[str, Any] = {"salience": "constant", "lifetimes": "documented"}
    context = Context(Settings(database_url=database_url, redis_url=redis_url, time_travel=True, **documented))
    check_embedder(context)
    yield context
    close_pools()


@pytest.fixture
def memory(context: Context) -> Memory:
    return Memory(context)


@pytest.fixture
def twin(memory: Memory, postgres: Postgres, template: str) -> Iterator[Memory]:
    """A second memory in a database of its own, to compare the first one with."""
    with new_database(postgres, template) as url:
        twin = memory.having(database_url=url)
        check_embedder(twin.context)
        yield twin
        close_pools()
