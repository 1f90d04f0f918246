"""Shards: list them, and add one."""

from collections.abc import Callable

from workers.context import Context
from workers.storage import namespaces, routing, schema, shards
from workers.storage.connection import connect, transaction
from workers.storage.shards import Shard


def listed(context: Context) -> list[Shard]:
    """Return all shards with their numbers of namespaces and facts, and their sizes."""
    found = []
    for number in context.each_shard():
        with transaction(context.database_url) as db:
            found.append(shards.measure(db, number, on_citus=namespaces.is_on_citus(db)))
    return found


def add(context: Context, report: Callable[[str], None] = lambda _: None) -> int:
    """Create the schema of the next shard; return its number. New namespaces use it once EBB_SHARDS counts it."""
    with routing.at(0, 1), connect(context.database_url) as db:
        number = shards.next_number(db)
    schema.apply(context.direct_database_url, report, number + 1)
    return number
