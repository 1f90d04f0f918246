"""Methods that follow from the contract: one line for each operation.

What type checkers and editors see of them is in `methods.pyi`, which is written from the contract.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from ebb.contract.operation import Operation, operation


class Method:
    """A method that runs an operation, by default the one of the task `memory.` with the method's name.

    It takes the operation's parameters by name, or in their order, and the options of its owner by name. The
    operation is looked up at the first call, so that a program loads only the part of the contract that it uses.
    """

    def __init__(self, task: str = "") -> None:
        self._task = task

    def __set_name__(self, _owner: type, name: str) -> None:
        """Name the task after the method."""
        self._task = self._task or f"memory.{name}"

    @cached_property
    def operation(self) -> Operation:
        """Return the operation that it runs."""
        return operation(self._task)

    def __get__(self, owner: "Operations | None", _type: type["Operations"]) -> Callable[..., Any]:
        """Return the method of one owner."""

        def call(*positional: Any, **named: Any) -> Any:
            options = {name: named.pop(name) for name in owner.options if name in named}  # type: ignore[union-attr]
            arguments = self.operation.arguments(positional, named)
            return owner._perform(self.operation, arguments, **options)  # type: ignore[union-attr]  # noqa: SLF001

        call.__doc__ = self.operation.params.__doc__
        return call


class Operations:
    """Every operation of the contract as a method."""

    options: ClassVar[tuple[str, ...]] = ("idempotency_key",)
    """Arguments of each method that are not parameters of its operation."""

    def _perform(self, operation: Operation, given: dict[str, Any], **options: Any) -> Any:
        """Run an operation, and return its answer or an awaitable of it."""
        raise NotImplementedError

    store = Method()
    store_many = Method()
    remember = Method()
    edit = Method()
    recall = Method()
    recall_many = Method()
    lookup = Method()
    context = Method()
    fact = Method()
    facts = Method()
    history = Method()
    used = Method()
    reinforce = Method()
    pin = Method()
    forget = Method()
    forgotten = Method()
    restore = Method()
    held = Method()
    let_go = Method()
    keep = Method()
    contradictions = Method()
    resolve = Method()
    link = Method()
    unlink = Method()
    relate = Method()
    unrelate = Method()
    relations = Method()
    decay_relations = Method("relations.decay")
    stats = Method()
    forecast = Method()
    timeline = Method()
    time_series = Method("memory.course")
    curve = Method()
    neighbours = Method()
    put_item = Method()
    put_items = Method()
    items = Method()
    many_items = Method()
    drop_item = Method()
    item_paths = Method()
    index = Method()
    unindex = Method()
    documents = Method()
    decay = Method("decay.plan")
    prune = Method("decay.prune")
    backfill = Method("decay.backfill")
    runs = Method("decay.runs")
    consolidate = Method()
    janitor = Method()
    janitor_snapshot = Method()
    purge = Method()
    doctor = Method()
    branch = Method()
    branches = Method()
    drop_branch = Method()
    settings = Method()
    import_records = Method("memory.bring_back")
    namespaces = Method()
    system_time_series = Method("memory.system_course")


AsyncOperations = Operations
"""The same for programs with asyncio: what `_perform` returns is awaited there."""

JsonOperations = Operations
"""The same with answers as plain JSON."""
