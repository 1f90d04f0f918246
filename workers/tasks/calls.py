"""What a task may be called with: the arguments that it has, each of the type that it declares.

A message may come from any program. What is declared as anything is checked where it is used; but a flag must be true
or false, for `"false"` would count as true, and what has no name here must not be ignored.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from celery import Task
from ebb.contract.faults import MOST_FAULTS, fault, joined, show
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import ErrorDetails

from workers.errors import InvalidInputError


def check(task: Task, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Check a call, in a few microseconds.

    Raises:
        InvalidInputError: an argument is unknown, missing, given twice or of another type; all faults are named.
    """
    model = _arguments(task.run)
    names = list(model.model_fields)
    if len(positional) > len(names) or set(names[: len(positional)]) & set(named):
        raise InvalidInputError(f"{task.name}: takes {len(names)} arguments, each once; give them by their names.")
    try:
        model.model_validate(dict(zip(names, positional, strict=False)) | dict(named))
    except ValidationError as error:
        details = error.errors(include_url=False)
        named_faults = [_fault(detail, task.name, names) for detail in details[:MOST_FAULTS]]
        raise InvalidInputError(joined(named_faults, len(details) - len(named_faults))) from None


@cache
def _arguments(run: Callable[..., Any]) -> type[BaseModel]:
    """Return the arguments of what a task runs as a model."""
    declared = inspect.signature(run).parameters.values()
    open_ended = any(one.kind is one.VAR_KEYWORD for one in declared)
    fields: dict[str, Any] = {
        one.name: (one.annotation, ... if one.default is one.empty else one.default)
        for one in declared
        if one.kind is not one.VAR_KEYWORD
    }
    config = ConfigDict(strict=True, extra="allow" if open_ended else "forbid", protected_namespaces=())
    return create_model("Arguments", __config__=config, **fields)


def _fault(detail: ErrorDetails, task: str, names: Sequence[str]) -> str:
    if detail["type"] == "extra_forbidden":
        where = show(str(detail["loc"][0]))[1:-1]
        return f"{where}: is no argument of {task}; known are {', '.join(names) or 'none'}"
    return fault(detail)
