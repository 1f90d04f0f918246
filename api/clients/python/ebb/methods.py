"""Methods for the operations of the contract; their signatures are in the generated `methods.pyi`."""

from collections.abc import Callable
from functools import cache, cached_property, reduce
from inspect import Parameter, Signature, iscoroutinefunction, signature
from operator import or_
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from ebb.contract.operation import Operation, operation


class Method:
    """A method that runs the operation of a task.

    It takes the operation's parameters, and the options of its owner by name. The operation is looked up at the first
    call, so that a program imports only the part of the contract that it uses.
    """

    def __init__(self, name: str, task: str) -> None:
        self._name, self._task = name, task

    @cached_property
    def operation(self) -> Operation:
        """Return the operation."""
        return operation(self._task)

    def __get__(self, owner: "Operations | None", kind: type["Operations"]) -> Callable[..., Any]:
        """Return the bound method, or of a class the function that takes the owner first."""

        def call(*positional: Any, **named: Any) -> Any:
            if owner is None:
                return self.__get__(self._owner(kind, positional), kind)(*positional[1:], **named)
            options = {name: named.pop(name) for name in owner.options if name in named}
            arguments = self.operation.arguments(positional, named)
            return owner._perform(self.operation, arguments, **options)  # noqa: SLF001 - its own method

        async def awaited(*positional: Any, **named: Any) -> Any:
            return await call(*positional, **named)

        # frameworks and mocks ask a function whether it is to be awaited
        method = awaited if iscoroutinefunction(kind._perform) else call  # noqa: SLF001 - its own method
        method.__name__, method.__qualname__ = self._name, f"{kind.__name__}.{self._name}"
        method.__doc__ = self.operation.params.__doc__
        method.__signature__ = _signature(self.operation, kind, bound=owner is not None)  # type: ignore[attr-defined]  # read by help()
        return method

    def _owner(self, kind: type["Operations"], positional: tuple[Any, ...]) -> "Operations":
        if positional and isinstance(positional[0], kind):
            return positional[0]
        raise TypeError(
            f"{kind.__name__}.{self._name} is called on the class: make a {kind.__name__}() first, and call "
            f"{self._name} on that."
        )


@cache
def _signature(operation: Operation, kind: type["Operations"], *, bound: bool) -> Signature:
    """Return the signature of a method, as the stub has it: all parameters by name but those that are needed."""
    fields = operation.params.model_fields
    needed = [name for name in operation.over_http if fields[name].is_required()] or operation.over_http[:1]
    shown = [] if bound else [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name in (*needed, *(one for one in operation.over_http if one not in needed)):
        field = fields[name]
        default = Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        place = Parameter.POSITIONAL_OR_KEYWORD if name in needed else Parameter.KEYWORD_ONLY
        shown.append(Parameter(name, place, default=default, annotation=_bare(field.annotation)))
    performs = signature(kind._perform)  # noqa: SLF001 - of its own classes
    options = [performs.parameters[name] for name in kind.options if operation.scope != "read"]
    shown += [one.replace(kind=Parameter.KEYWORD_ONLY) for one in options]
    answers = performs.return_annotation
    return Signature(shown, return_annotation=operation.answer if answers is Any else answers)


def _bare(kind: Any) -> Any:
    """Return a type without what Pydantic checks beyond it."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bare(of[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(_bare, of))
    return list[_bare(of[0])] if origin is list else kind  # type: ignore[misc]  # a type made while it runs


class Operations:
    """Every operation of the contract as a method."""

    options: ClassVar[tuple[str, ...]] = ("idempotency_key",)
    """Arguments of each method that are not parameters of its operation."""

    def _perform(self, operation: Operation, given: dict[str, Any], **options: Any) -> Any:
        """Run an operation; return its answer or an awaitable."""
        raise NotImplementedError


NAMES = """
    store store_many remember edit recall recall_many lookup context fact facts history used reinforce pin
    forget forgotten restore held let_go keep contradictions resolve link unlink relate unrelate relations
    decay_relations stats forecast timeline time_series curve neighbours put_item put_items items many_items
    drop_item item_paths index upload unindex documents register_folder unregister_folder folders decay prune
    backfill runs consolidate janitor janitor_snapshot purge doctor branch branches drop_branch settings
    shards move_namespace import_records namespaces system_time_series
"""
TASKS = {
    "decay_relations": "relations.decay",
    "time_series": "memory.course",
    "decay": "decay.plan",
    "prune": "decay.prune",
    "backfill": "decay.backfill",
    "runs": "decay.runs",
    "import_records": "memory.bring_back",
    "system_time_series": "memory.system_course",
}
"""Tasks that have other names than `memory.NAME`."""

for _name in NAMES.split():
    setattr(Operations, _name, Method(_name, TASKS.get(_name, f"memory.{_name}")))

AsyncOperations = Operations
"""The operations of asyncio clients, whose `_perform` returns awaitables."""

JsonOperations = Operations
"""The operations of clients that return plain JSON."""
