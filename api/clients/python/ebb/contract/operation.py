"""Operations: what Ebb can be asked to do, each declared once for all doors.

Task, HTTP route, command, tool and client of an operation are derived from its declaration: its name, parameters,
answer, queue, scope, route and limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from inspect import get_annotations
from pkgutil import iter_modules
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ebb.contract.values import Flag, Namespace, Now, days_of_a_year, one_or_all, whole_days

RECALL_SECONDS = 15.0
STORE_SECONDS = 45.0
BATCH_SECONDS = 180.0
LONG_SECONDS = 3_600.0
"""Default timeouts of clients."""

SHARED = ("namespace", "now")
"""Parameters of many operations, which interfaces fill in."""

EXAMPLE_ID = "01a1fd54-5b58-7629-9b8d-dfaf36313cae"
EXAMPLE_OTHER_ID = "01a1fd55-0c3e-7d02-8a41-52b7e3f0c9d6"


class Params(BaseModel):
    """The parameters of an operation, in the order of the task's arguments; unknown ones are refused."""

    # NaN and infinities stay what they are, to be refused: as null they would be something else
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, ser_json_inf_nan="constants")

    def given(self) -> dict[str, Any]:
        """Return the given parameters as plain JSON."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)


class Scoped(Params):
    """Parameters of an operation on one namespace."""

    namespace: Namespace = "default"


class Timed(Scoped):
    """Parameters of an operation at an instant, by default now by the database's clock."""

    now: Now | None = None


class Reaching(Timed):
    """Parameters of an operation on one namespace, or on all if requested."""

    namespace: Annotated[Namespace, BeforeValidator(one_or_all)] = "default"
    everywhere: Flag = Field(default=False, description="all namespaces; over HTTP that needs the scope `system`")

    @property
    def scope(self) -> str | None:
        """Return the name of the namespace, or None for all."""
        return None if self.everywhere else self.namespace


class Answer(BaseModel):
    """The answer of a task as JSON, or a part of one; newer workers may add fields.

    JSON has only the fields that the task has set, at every door.
    """

    model_config = ConfigDict(extra="allow", defer_build=True)


class Rejected(Answer):
    """An item of a batch that was rejected, which does not affect the others."""

    error: str = Field(description="what is wrong with it, and what to do")
    index: int = Field(description="the place of the item in the batch, from 0")


class Accepted(Answer):
    """An accepted write: its task, and the id of the fact that it creates, if any."""

    task: UUID
    id: UUID | None = None


class TaskState(Answer):
    """The state of a task: `ended` means that its result, kept for five minutes, has expired.

    `late` means that it was not done in time: no worker starts it any more, but one that had started may finish it.
    """

    task: UUID
    state: Literal["waiting", "done", "failed", "ended", "late"]
    result: Any = None
    error: str | None = None


class Page(Answer):
    """A page of a listing; `next` is the `cursor` of the next page, null after the last one."""

    next: str | None = None


Queue = Literal["recall", "store", "maintenance"]
Scope = Literal["read", "write", "admin", "system"]


@dataclass(frozen=True)
class Operation:
    """One operation: the name of its task, its parameters and answer, and how it is reached.

    `route` is its HTTP method and path, or empty, with the names of parameters that stand in the query beside a body;
    `spelled` has the names of parameters over HTTP where they differ, `inside` those that HTTP does not take. `scope`
    is what a key must allow, `seconds` how long a client waits. What is `accepted` may be answered before it is done,
    and is done once if it is sent again. One that `clears` takes null as a value.
    """

    name: str
    params: type[Params]
    answer: type[Answer]
    queue: Queue
    scope: Scope = "read"
    route: str = ""
    seconds: float = RECALL_SECONDS
    accepted: bool = False
    spelled: Mapping[str, str] = field(default_factory=dict, hash=False)
    inside: tuple[str, ...] = ()
    clears: bool = False

    registry: ClassVar[dict[str, "Operation"]] = {}

    def __post_init__(self) -> None:
        """Register the operation by its task's name."""
        self.registry[self.name] = self

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters in order."""
        return parameters(self.params)

    @cached_property
    def is_scoped(self) -> bool:
        """Return whether it has a namespace."""
        return "namespace" in self.parameters

    @cached_property
    def is_timed(self) -> bool:
        """Return whether it has an instant."""
        return "now" in self.parameters

    @property
    def writes(self) -> bool:
        """Return whether it writes, and so takes an idempotency key over HTTP."""
        return self.scope in ("write", "admin")

    @cached_property
    def over_http(self) -> tuple[str, ...]:
        """Return the parameters of its route: without the namespace, and with the instant only if it is described."""
        is_dated = self.is_timed and self.params.model_fields["now"].description is not None
        hidden = {"namespace", *self.inside, *(() if is_dated else ("now",))}
        return tuple(name for name in self.parameters if name not in hidden)

    def arguments(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name.

        Raises:
            TypeError: more were given than there are parameters, or one was given twice.
        """
        names = self.over_http
        by_place = dict(zip(names, positional, strict=False))
        if len(positional) > len(names) or by_place.keys() & named.keys():
            taken = f"{', '.join(names)}, each once" if names else "no arguments"
            raise TypeError(f"{self.name} takes {taken}.")
        return by_place | dict(named)


def reads(
    name: str, params: type[Params], answer: type[Answer], route: str, seconds: float = RECALL_SECONDS,
    *, scope: Scope = "read", **more: Any,
) -> Operation:  # fmt: skip
    """Return an operation that reads, for callers that wait."""
    return Operation(name, params, answer, "recall", scope, route, seconds, **more)


def writes(
    name: str, params: type[Params], answer: type[Answer], route: str, seconds: float = STORE_SECONDS,
    *, accepted: bool = True, **more: Any,
) -> Operation:  # fmt: skip
    """Return an operation that writes facts or what belongs to them."""
    return Operation(name, params, answer, "store", "write", route, seconds, accepted, **more)


def administers(
    name: str, params: type[Params], answer: type[Answer], route: str, seconds: float = LONG_SECONDS,
    *, scope: Scope = "admin", **more: Any,
) -> Operation:  # fmt: skip
    """Return an operation on all facts of a namespace, or on what belongs to the system."""
    return Operation(name, params, answer, "maintenance", scope, route, seconds, **more)


def examples(*given: dict[str, Any]) -> ConfigDict:
    """Return the configuration of parameters with examples."""
    return ConfigDict(json_schema_extra={"examples": list(given)})


def parameters(params: type[Params]) -> tuple[str, ...]:
    """Return the names of parameters in order: the operation's own, then inherited, then shared ones."""
    by_class = [name for kind in params.__mro__ for name in get_annotations(kind)]
    own = [name for name in dict.fromkeys(by_class) if name in params.model_fields and name not in SHARED]
    return (*own, *(name for name in SHARED if name in params.model_fields))


def plain_type(annotation: Any) -> type[Any]:
    """Return the plain type of an annotation on a command line or in a URL: bool, int, float or str."""
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, *validators = get_args(annotation)
        as_text = any(
            isinstance(one, BeforeValidator) and one.func in (whole_days, days_of_a_year) for one in validators
        )
        return str if as_text else plain_type(kind)
    if origin in (Union, UnionType):
        return plain_type(next(one for one in get_args(annotation) if one is not NoneType))
    return annotation if annotation in (bool, int, float) else str


@cache
def operations() -> Mapping[str, Operation]:
    """Return all operations by task name."""
    package = import_module(__package__)
    for module in iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    return Operation.registry


def find(name: str) -> Operation | None:
    """Return the operation of a task, if any."""
    return Operation.registry.get(name) or operations().get(name)


def operation(name: str) -> Operation:
    """Return the operation of a task.

    Raises:
        KeyError: there is none of this name.
    """
    return Operation.registry.get(name) or operations()[name]


def of_params(params: type[Params]) -> Operation:
    """Return the operation of a class of parameters.

    Raises:
        TypeError: it is none.
    """
    found = next((one for one in operations().values() if one.params is params), None)
    if found is None:
        raise TypeError(f"{params.__name__} has no parameters of an operation; give an object such as Store(text='…').")
    return found
