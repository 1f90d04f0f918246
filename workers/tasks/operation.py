"""Tasks of the contract's operations: decorators that validate a message's arguments, and work on every shard."""

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from uuid import UUID

from celery import Task
from ebb.contract.faults import MOST_FAULTS, UNKNOWN, fault, joined, show
from ebb.contract.operation import SHARED, Answer, Operation, Params, Reaching, Scoped, parameters
from ebb.contract.values import FactIds, Instant, Namespace
from pydantic import Field, ValidationError

from workers.celery import app, settings
from workers.coordination import signals
from workers.errors import InvalidInputError
from workers.queues import LSN
from workers.storage import replicas, routing, server
from workers.tasks.task import EbbTask, context, instant, with_lsn

Place = tuple[Annotated[int, Field(ge=0, lt=2**31)], UUID]
"""The position of an iteration over facts: namespace and fact."""


class Upkeep(Params):
    """Parameters of a task that beat sends."""

    now: Instant | None = None


class Facts(Params):
    """Parameters of a task that another task sends: facts of a namespace, and an instant."""

    ids: FactIds
    namespace: Namespace
    now: Instant | None = None


P = TypeVar("P", bound=Params)
At = TypeVar("At", bound=tuple[Any, Any])
Body = Callable[[Any, P], Answer | dict[str, Any] | None]


def task_of(operation: Operation, params: type[P], **options: Any) -> Callable[[Body[P]], Any]:
    """Return the decorator that makes a function the task of an operation.

    The function gets the task and its parameters. `params` is the operation's class, or a subclass with fields for
    successors. A task that reads `from_replica` may run a second time, on the primary. After one that `grows` the words
    of the namespace are counted again.
    """
    return _declared(operation.name, params, operation.parameters, writes=operation.writes, **options)


def verb_of(operation: Operation, verb: Callable[..., Answer | dict[str, Any]], **options: Any) -> Any:
    """Return the task of an operation whose verb takes its parameters, and its instant if it has one."""

    @functools.wraps(verb)
    def body(task: Task, asked: Any) -> Answer | dict[str, Any]:
        if not operation.is_timed:
            return verb(context, asked)
        return verb(context, asked, instant(task, asked, writes=operation.writes))

    return task_of(operation, operation.params, **options)(body)


def internal(name: str, params: type[P], **options: Any) -> Callable[[Body[P]], Any]:
    """Return the decorator that makes a function an internal task, sent by another task or beat."""
    return _declared(name, params, (), **options)


def _declared(
    name: str,
    params: type[P],
    first: Sequence[str],
    *,
    base: type[Task] = EbbTask,
    writes: bool = False,
    from_replica: bool = False,
    grows: bool = False,
    **options: Any,
) -> Callable[[Body[P]], Any]:
    own = [one for one in first if one not in SHARED]
    names = tuple(dict.fromkeys([*own, *parameters(params)]))

    def decorate(body: Body[P]) -> Any:
        @functools.wraps(body)
        def run(self: Task, *positional: Any, **named: Any) -> dict[str, Any] | None:
            asked = validated(name, params, names, positional, named)

            def act() -> dict[str, Any] | None:
                answer = body(self, asked)
                if grows and isinstance(asked, Scoped):
                    signals.mark_grown(context.redis, asked.namespace)
                done = plain(answer) if isinstance(answer, Answer) else answer
                return with_lsn(done) if writes and done is not None else done

            with routing.at(_place(self, asked), settings.shards), server.answers():
                if from_replica and context.replicas:
                    return replicas.read(context.replicas, self.request.get(LSN), act)
                return act()

        run.__signature__ = _signature(params, names)  # type: ignore[attr-defined]  # for Celery's argument check
        return app.task(bind=True, name=name, base=base, **options)(run)

    return decorate


def _place(task: Task, asked: Params) -> routing.Place:
    """Return where the work of a task is: on the shard of its namespace, or where its sender worked."""
    namespace = asked.scope if isinstance(asked, Reaching) else getattr(asked, "namespace", None)
    return namespace or task.request.get(routing.HEADER) or 0


def validated(
    task: str, params: type[P], names: Sequence[str], positional: Sequence[Any], named: Mapping[str, Any]
) -> P:
    """Return a message's arguments as parameters; `names` is the order of positional ones.

    Raises:
        InvalidInputError: an argument is unknown, missing, given twice or not allowed.
    """
    by_place = dict(zip(names, positional, strict=False))
    if len(positional) > len(names):
        raise InvalidInputError(f"{task}: takes at most {len(names)} arguments; give them by their names.")
    if twice := [name for name in by_place if name in named]:
        raise InvalidInputError(
            f"{twice[0]}: is given to {task} twice, by place and by name; give it once. In a chain, the answer of the "
            "task before comes as first argument, unless the signature is immutable."
        )
    try:
        return params.model_validate(by_place | dict(named))
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = [_fault(detail, task, names) for detail in details[:MOST_FAULTS]]
        raise InvalidInputError(joined(faults, len(details) - len(faults))) from None


def shards_of(asked: Reaching) -> Iterator[routing.Place]:
    """Yield each place that an operation reaches, and work there meanwhile: its namespace, or every shard.

    What beat or a starting worker sends reaches the shards of its group, as each group has a beat and workers.
    """
    if asked.everywhere:
        yield from context.each_shard(own=getattr(asked, "scheduled", False) or getattr(asked, "startup", False))
    else:
        yield asked.namespace


def walk(
    asked: Any, step: Callable[[At], At | None], until: float, *, everywhere: bool, start: At, own: bool = False
) -> tuple[int, At] | None:
    """Repeat a step over all rows until the monotonic clock reaches `until`: of a namespace, every or each `own` shard.

    It begins at the position `after` of the asked `shard`. Return the shard and the position to continue from, if any.
    """
    place: At | None = asked.after or start
    for shard in context.each_shard(own=own) if everywhere else (0,):
        if shard < asked.shard:
            continue
        while place is not None and time.monotonic() < until:
            place = step(place)
        if place is not None:
            return shard, place
        place = start
    return None


def going_on(rest: tuple[int, tuple[Any, Any]]) -> dict[str, Any]:
    """Return the arguments of a successor."""
    shard, (namespace, row) = rest
    after = [namespace, str(row) if isinstance(row, UUID) else row]
    return {"after": after} | ({"shard": shard} if shard else {})  # earlier workers reject it


def plain(answer: Answer) -> dict[str, Any]:
    """Return the fields of an answer that were set, as JSON."""
    return answer.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _fault(detail: Any, task: str, names: Sequence[str]) -> str:
    if detail["type"] == UNKNOWN and len(detail["loc"]) == 1:
        where = show(str(detail["loc"][0]))[1:-1]
        return f"{where}: is no argument of {task}; known are {', '.join(names) or 'none'}"
    return fault(detail)


def _signature(params: type[Params], names: Sequence[str]) -> inspect.Signature:
    shown = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name in names:
        field = params.model_fields[name]
        default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return inspect.Signature(shown)
