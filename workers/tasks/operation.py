"""Tasks of the contract's operations: a message's arguments become validated parameters before anything is done."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from celery import Task
from ebb.contract.faults import MOST_FAULTS, UNKNOWN, fault, joined, show
from ebb.contract.operation import Answer, Operation, Params, parameters
from pydantic import ValidationError

from workers.celery import app
from workers.errors import InvalidInputError
from workers.tasks.task import EbbTask

P = TypeVar("P", bound=Params)
Body = Callable[[Any, P], Answer | dict[str, Any]]


def task_of(
    operation: Operation, params: type[P], *, base: type[Task] = EbbTask, **options: Any
) -> Callable[[Body[P]], Any]:
    """Return the decorator that makes a function the task of an operation.

    The function gets the task and its parameters. `params` are the operation's own, or a subclass of them with what
    the task passes on to its successor.
    """

    def decorate(body: Body[P]) -> Any:
        @functools.wraps(body)
        def run(self: Task, *positional: Any, **named: Any) -> dict[str, Any]:
            answer = body(self, validated(operation.name, params, positional, named))
            return answer if isinstance(answer, dict) else plain(answer)

        run.__signature__ = _signature(params)  # type: ignore[attr-defined]  # what Celery and readers of tasks see
        return app.task(base=base, bind=True, name=operation.name, params=params, **options)(run)

    return decorate


def validated(task: str, params: type[P], positional: Sequence[Any], named: Mapping[str, Any]) -> P:
    """Return the parameters that a message's arguments are.

    Raises:
        InvalidInputError: an argument is unknown, missing, given twice or not allowed; the first faults are named.
    """
    names = parameters(params)
    by_place = dict(zip(names, positional, strict=False))
    if len(positional) > len(names) or by_place.keys() & named.keys():
        raise InvalidInputError(f"{task}: takes {len(names)} arguments, each once; give them by their names.")
    try:
        return params.model_validate(by_place | dict(named))
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = [_fault(detail, task, names) for detail in details[:MOST_FAULTS]]
        raise InvalidInputError(joined(faults, len(details) - len(faults))) from None


def plain(answer: Answer) -> dict[str, Any]:
    """Return the fields of an answer that were set, as JSON."""
    return answer.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _fault(detail: Any, task: str, names: Sequence[str]) -> str:
    if detail["type"] == UNKNOWN and len(detail["loc"]) == 1:
        where = show(str(detail["loc"][0]))[1:-1]
        return f"{where}: is no argument of {task}; known are {', '.join(names) or 'none'}"
    return fault(detail)


def _signature(params: type[Params]) -> inspect.Signature:
    shown = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name in parameters(params):
        field = params.model_fields[name]
        default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return inspect.Signature(shown)
