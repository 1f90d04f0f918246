"""Methods of the library that follow from the contract: one line for each operation.

What type checkers and editors see of them is in `methods.pyi`, which is written from the contract.
"""

from collections.abc import Callable
from typing import Any

from ebb.contract.admin import BRANCH, BRANCHES, DOCTOR, DROP_BRANCH, IMPORT, SETTINGS, SYSTEM_TIME_SERIES
from ebb.contract.conversation import REMEMBER
from ebb.contract.decay import (
    BACKFILL,
    CONSOLIDATE,
    DECAY,
    HELD,
    JANITOR,
    JANITOR_SNAPSHOT,
    KEEP,
    LET_GO,
    PRUNE,
    PURGE,
    RUNS,
)
from ebb.contract.documents import (
    DOCUMENTS,
    DROP_ITEM,
    INDEX,
    ITEM_PATHS,
    ITEMS,
    MANY_ITEMS,
    PUT_ITEM,
    PUT_ITEMS,
    UNINDEX,
)
from ebb.contract.facts import EDIT, STORE, STORE_MANY
from ebb.contract.graph import DECAY_RELATIONS, LINK, RELATE, RELATIONS, UNLINK, UNRELATE
from ebb.contract.operation import Operation
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL, RECALL_MANY
from ebb.contract.reports import (
    CONTRADICTIONS,
    CURVE,
    FACT,
    FACTS,
    FORECAST,
    NAMESPACES,
    NEIGHBOURS,
    RESOLVE,
    STATS,
    TIME_SERIES,
    TIMELINE,
)
from ebb.contract.retention import FORGET, FORGOTTEN, HISTORY, PIN, REINFORCE, RESTORE, USED


class Method:
    """A method that has an operation done.

    It takes the operation's parameters by name, or in their order; writes also take an `idempotency_key`.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.__doc__ = operation.params.__doc__

    def __get__(self, memory: "Operations", _owner: type["Operations"]) -> Callable[..., Any]:
        """Return the method of one memory."""

        def call(*positional: Any, idempotency_key: str | None = None, **named: Any) -> Any:
            given = self.operation.arguments(positional, named)
            return memory._perform(self.operation, given, idempotency_key)  # noqa: SLF001 - it is the memory's own

        return call


class Operations:
    """Every operation of the contract as a method."""

    def _perform(self, operation: Operation, given: dict[str, Any], key: str | None) -> Any:
        """Have an operation done, and return its answer or what will be its answer."""
        raise NotImplementedError

    store = Method(STORE)
    store_many = Method(STORE_MANY)
    remember = Method(REMEMBER)
    edit = Method(EDIT)
    recall = Method(RECALL)
    recall_many = Method(RECALL_MANY)
    lookup = Method(LOOKUP)
    context = Method(CONTEXT)
    fact = Method(FACT)
    facts = Method(FACTS)
    history = Method(HISTORY)
    used = Method(USED)
    reinforce = Method(REINFORCE)
    pin = Method(PIN)
    forget = Method(FORGET)
    forgotten = Method(FORGOTTEN)
    restore = Method(RESTORE)
    held = Method(HELD)
    let_go = Method(LET_GO)
    keep = Method(KEEP)
    timeline = Method(TIMELINE)
    contradictions = Method(CONTRADICTIONS)
    resolve = Method(RESOLVE)
    link = Method(LINK)
    unlink = Method(UNLINK)
    relate = Method(RELATE)
    unrelate = Method(UNRELATE)
    relations = Method(RELATIONS)
    decay_relations = Method(DECAY_RELATIONS)
    stats = Method(STATS)
    forecast = Method(FORECAST)
    time_series = Method(TIME_SERIES)
    curve = Method(CURVE)
    neighbours = Method(NEIGHBOURS)
    put_item = Method(PUT_ITEM)
    put_items = Method(PUT_ITEMS)
    items = Method(ITEMS)
    many_items = Method(MANY_ITEMS)
    drop_item = Method(DROP_ITEM)
    item_paths = Method(ITEM_PATHS)
    index = Method(INDEX)
    unindex = Method(UNINDEX)
    documents = Method(DOCUMENTS)
    decay = Method(DECAY)
    prune = Method(PRUNE)
    backfill = Method(BACKFILL)
    runs = Method(RUNS)
    consolidate = Method(CONSOLIDATE)
    janitor = Method(JANITOR)
    janitor_snapshot = Method(JANITOR_SNAPSHOT)
    purge = Method(PURGE)
    doctor = Method(DOCTOR)
    branch = Method(BRANCH)
    branches = Method(BRANCHES)
    drop_branch = Method(DROP_BRANCH)
    settings = Method(SETTINGS)
    import_records = Method(IMPORT)
    namespaces = Method(NAMESPACES)
    system_time_series = Method(SYSTEM_TIME_SERIES)


AsyncOperations = Operations
"""The same for programs with asyncio: what `_perform` returns is awaited there."""
