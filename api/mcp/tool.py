"""A tool: a function that agents may call, on the memory that is opened for its caller, with errors in words."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias

from ebb.contract.operation import Operation
from mcp.server.mcpserver import Context
from mcp.server.mcpserver import tools as served
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field, TypeAdapter
from pydantic.fields import FieldInfo
from starlette.requests import Request

from api.client import Client
from api.transport import Answer
from workers.errors import EbbError

Scope: TypeAlias = Literal["read", "write"]
P = ParamSpec("P")
_JSON: TypeAdapter[Any] = TypeAdapter(Any)

Id = Annotated[str, Field(description="A fact's id, a UUID as recall, lookup and store give it.")]


@dataclass(frozen=True, slots=True)
class Opened:
    """A memory that is open to a caller, whether their recalls strengthen, and whether they may change it."""

    client: Client
    touches: bool = True
    writes: bool = True


Opener: TypeAlias = Callable[[Request | None, Scope], Opened]
"""Opens the memory for a call: by the HTTP request that brought it, if one did, and what it wants to do.

It raises an `EbbError` where the caller may not.
"""

Call: TypeAlias = Context[Opener, Request]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool for the server; its name, description and schema are its function's."""

    run: Callable[..., Answer]
    annotations: ToolAnnotations


def tool_of(
    operation: Operation,
    names: str,
    *,
    types: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    words: Mapping[str, str] | None = None,
) -> Callable[[Callable[[Any, dict[str, Any]], Answer]], Callable[..., Answer]]:
    """Return the decorator that gives a function the named parameters of an operation, as a tool takes them.

    The function gets the call and what was given other than by default. `types` and `defaults` take the place of those
    of the contract where an agent shall have less, `words` that of its descriptions.
    """
    fields = operation.params.model_fields
    parameters = [_parameter(fields[name], name, types or {}, defaults or {}, words or {}) for name in names.split()]

    def decorate(run: Callable[[Any, dict[str, Any]], Answer]) -> Callable[..., Answer]:
        def tool(call: Any, **given: Any) -> Answer:
            said = {name: value for name, value in given.items() if value not in (None, fields[name].default)}
            return run(call, _JSON.dump_python(said, mode="json"))

        shown = [inspect.Parameter("call", inspect.Parameter.KEYWORD_ONLY, annotation=Call), *parameters]
        tool.__name__, tool.__doc__ = run.__name__, run.__doc__
        tool.__signature__ = inspect.Signature(shown, return_annotation=Answer)  # type: ignore[attr-defined]
        tool.__annotations__ = {one.name: one.annotation for one in shown} | {"return": Answer}
        return tool

    return decorate


def _parameter(
    field: FieldInfo, name: str, types: Mapping[str, Any], defaults: Mapping[str, Any], words: Mapping[str, str]
) -> inspect.Parameter:
    kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    empty = inspect.Parameter.empty if field.is_required() else field.default
    kind = types.get(name, kind)
    described: Any = Annotated[kind, Field(description=words.get(name, field.description))]
    default = defaults.get(name, empty)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=described, default=default)


def registered(tool: Tool) -> served.Tool:
    """Return a tool as the server takes it, which refuses arguments that it does not know.

    Otherwise the SDK drops them, and a misspelt `supersedes` would leave the old fact beside the new one.
    """
    made = served.Tool.from_function(tool.run, annotations=tool.annotations, structured_output=True)
    arguments = made.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    made.parameters = arguments.model_json_schema(by_alias=True)
    return made


def read(call: Call) -> Opened:
    """Return the memory that a call may read."""
    return call.request_context.lifespan_context(call.request_context.request, "read")


def written(call: Call) -> Client:
    """Return the memory that a call may change."""
    return call.request_context.lifespan_context(call.request_context.request, "write").client


def reads(run: Callable[P, Answer]) -> Tool:
    """Return the tool of a function that changes nothing but how well facts are remembered."""
    return Tool(_worded(run), ToolAnnotations(read_only_hint=True, open_world_hint=False))


def writes(run: Callable[P, Answer]) -> Tool:
    """Return the tool of a function that adds to what is there."""
    return Tool(_worded(run), ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False))


def removes(run: Callable[P, Answer]) -> Tool:
    """Return the tool of a function that takes away, where twice is as once."""
    annotations = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    )
    return Tool(_worded(run), annotations)


def brief(answer: Any) -> Any:
    """Return an answer without what it leaves open, for each word of it costs an agent."""
    if isinstance(answer, list):
        return [brief(one) for one in answer]
    if isinstance(answer, dict):
        return {name: brief(value) for name, value in answer.items() if value not in (None, [])}
    return answer


def _worded(run: Callable[P, Answer]) -> Callable[P, Answer]:
    """Return the function with errors that the agent reads: what is wrong, what was given, and what to do."""

    @functools.wraps(run)
    def worded(*args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            return run(*args, **kwargs)
        except EbbError as error:
            raise ToolError(str(error)) from error

    return worded
