"""Methods for the operations of the contract; their signatures are in the generated `methods.pyi`."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from ebb.contract.operation import Operation, operation


class Method:
    """A method that runs an operation, by default that of the task `memory.NAME`.

    It takes the operation's parameters, and the options of its owner by name. The operation is looked up at the first
    call, so that a program imports only the part of the contract that it uses.
    """

    def __init__(self, task: str = "") -> None:
        self._task = task

    def __set_name__(self, _owner: type, name: str) -> None:
        """Set the default name of the task."""
        self._task = self._task or f"memory.{name}"

    @cached_property
    def operation(self) -> Operation:
        """Return the operation."""
        return operation(self._task)

    def __get__(self, owner: "Operations | None", _type: type["Operations"]) -> Callable[..., Any]:
        """Return the bound method."""

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
        """Run an operation; return its answer or an awaitable."""
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
    upload = Method()
    unindex = Method()
    documents = Method()
    register_folder = Method()
    unregister_folder = Method()
    folders = Method()
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
"""The operations of asyncio clients, whose `_perform` returns awaitables."""

JsonOperations = Operations
"""The operations of clients that return plain JSON."""
