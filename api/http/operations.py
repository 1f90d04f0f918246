"""Routes of operations: path, query and body parameters follow from the operation's parameters."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from ebb.contract.operation import Operation, Params, plain_type
from ebb.contract.values import parsed
from ebb.methods import Operations
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, create_model
from pydantic.fields import FieldInfo

from api.http.dispatch import ACCEPTED, Admin, Reader, Session, System, Writer
from api.http.problems import responses

Act = Callable[[Session, dict[str, Any], Response], Any]
"""A handler of a request: session, given parameters and response, whose headers and status it may set."""

Fields = Mapping[str, FieldInfo]


class Body(Params):
    """A body; its schema is built at once for FastAPI."""

    model_config = ConfigDict(defer_build=False)


WITHOUT_BODY = ("GET", "DELETE")
SESSIONS = {"read": Reader, "write": Writer, "admin": Admin, "system": System}
"""The dependency for each scope."""

OF_WRITES = ("timeout", "wait")
OF_READS = ("timeout",)
"""Query parameters of sessions; reads have nothing to wait for."""

METHODS = {method.operation.name: name for name, method in vars(Operations).items() if hasattr(method, "operation")}
"""The library's method for each task, which names the operation in the OpenAPI document."""

JSON: TypeAdapter[Any] = TypeAdapter(Any)


def add(
    routes: APIRouter,
    operation: Operation,
    act: Act | None = None,
    *,
    session: Any = None,
    route: str = "",
    name: str = "",
    left_out: tuple[str, ...] = (),
    own: Fields | None = None,
    problems: tuple[int, ...] = (),
    **options: Any,
) -> None:
    """Add a route of an operation, by default the one that it declares, which performs it unchanged.

    `session` is the annotated dependency that checks the caller's scope, `name` the id in the OpenAPI document, by
    default that of the library's method. Parameters in `left_out` have no equivalent here, and those in `own` differ
    from the operation's. `problems` are statuses of expected errors, `options` those of FastAPI.
    """
    session = session or SESSIONS[operation.scope]
    method, url = (route or operation.route).split()
    fields = {name: operation.params.model_fields[name] for name in operation.over_http if name not in left_out}
    fields |= own or {}
    path, query, body = _placed(method, url, {name: _spelled(operation, name, one) for name, one in fields.items()})
    own_query = [operation.spelled.get(name, name) for name in query]
    queried = (*own_query, *(OF_WRITES if session in (Writer, Admin) else OF_READS))
    endpoint = _endpoint(operation, act, queried, has_body=bool(body))
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by FastAPI
        [
            _parameter("memory", session),
            _parameter("request", Request),
            _parameter("response", Response),
            *map(_in_path, path, path.values()),
            *([_in_body(operation, body)] if body else []),
            *map(_in_query, query, query.values()),
        ]
    )
    routes.add_api_route(
        url.partition("?")[0],
        endpoint,
        methods=[method],
        name=name or METHODS[operation.name],
        response_model=options.pop("response_model", operation.answer),
        summary=(name or METHODS[operation.name]).replace("_", " ").title(),
        responses=(ACCEPTED if session is not Reader and method != "GET" else {})
        | responses(*problems)
        | options.pop("responses", {}),
        **options,
    )


def field(kind: Any, *given: Any, **how: Any) -> FieldInfo:
    """Return a parameter of a type, with the arguments of Pydantic's `Field`."""
    return FieldInfo.from_annotated_attribute(kind, Field(*given, **how))


def _spelled(operation: Operation, name: str, field: FieldInfo) -> FieldInfo:
    """Return a parameter under its name over HTTP."""
    if name not in operation.spelled:
        return field
    renamed = copy(field)
    renamed.validation_alias = operation.spelled[name]
    return renamed


def _placed(method: str, url: str, fields: Fields) -> tuple[Fields, Fields, Fields]:
    """Return the parameters in the path, those in the query, and those in the body.

    Without a body all others are in the query, otherwise those that the route names there.
    """
    path, _, in_query = url.partition("?")
    named = {name: one for name, one in fields.items() if f"{{{name}}}" in path}
    others = {name: one for name, one in fields.items() if name not in named}
    if method in WITHOUT_BODY:
        return named, others, {}
    queried = {name: others.pop(name) for name in in_query.split("&") if name in others}
    return named, queried, others


def _endpoint(operation: Operation, act: Act | None, queried: Sequence[str], *, has_body: bool) -> Callable[..., Any]:
    def endpoint(memory: Session, request: Request, response: Response, **given: Any) -> Any:
        lists = [operation.spelled.get(name, name) for name, one in given.items() if isinstance(one, list)]
        _refuse_wrong(request, queried, lists)
        body: Params | None = given.pop("body") if has_body else None
        said = {*request.query_params, *request.path_params}
        plain = {
            name: JSON.dump_python(one, mode="json")
            for name, one in given.items()
            if operation.spelled.get(name, name) in said
        }
        known = plain | (body.given() if body is not None else {})
        if any(one and operation.spelled.get(name, name) == "everywhere" for name, one in known.items()):
            memory.caller.check("system")
        answer = memory.perform(operation, known) if act is None else act(memory, known, response)
        # FastAPI need not validate it, as workers have made it from the model.
        content, status = JSON.dump_json(answer), response.status_code or HTTPStatus.OK
        return Response(content, status, response.headers, "application/json")

    endpoint.__doc__ = operation.params.__doc__
    return endpoint


def _refuse_wrong(request: Request, known: Sequence[str], lists: Sequence[str]) -> None:
    """Refuse query parameters that are unknown or given twice: if a filter were ignored, more facts would match."""
    unknown, twice = f"is no parameter of this route; known are {', '.join(known)}", "is given twice; give it once"
    times = Counter(name for name, _ in request.query_params.multi_items())
    wrong = {name: unknown for name in times if name not in known}
    wrong |= {name: twice for name, number in times.items() if number > 1 and name in known and name not in lists}
    if wrong:
        raise RequestValidationError(
            [
                {"type": "wrong_parameter", "loc": ("query", name), "msg": said, "input": request.query_params[name]}
                for name, said in wrong.items()
            ]
        )


def _in_body(operation: Operation, fields: Fields) -> inspect.Parameter:
    """Return the body with these parameters, which may be left out if they all may."""
    params = operation.params
    own: dict[str, Any] = {name: (field.annotation, field) for name, field in fields.items()}
    model = create_model(f"{params.__name__}Request", __base__=Body, **own)
    model.__doc__ = params.__doc__
    model.model_config["json_schema_extra"] = params.model_config.get("json_schema_extra")
    if any(field.is_required() for field in fields.values()):
        return _parameter("body", model)
    return _parameter("body", model | None, None)


def _in_path(name: str, field: FieldInfo) -> inspect.Parameter:
    return _parameter(name, Annotated[_type(field), Path(description=field.description, examples=field.examples)])


def _in_query(name: str, field: FieldInfo) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.is_required() else field.default
    alias = field.validation_alias if isinstance(field.validation_alias, str) else None
    read = BeforeValidator(partial(_from_text, plain_type(field.annotation)))
    return _parameter(name, Annotated[_type(field), read, Query(alias=alias, description=field.description)], default)


def _from_text(kind: type[Any], given: Any) -> Any:
    """Return a query parameter as a JSON value, unless it is a string; a list of one empty text is an empty list."""
    if given == [""]:
        return []
    if kind is str or not isinstance(given, str):
        return given
    value = parsed(given)
    return value if isinstance(value, bool | int | float | None) else given


def _type(field: FieldInfo) -> Any:
    annotation: Any = field.annotation
    return Annotated[annotation, *field.metadata] if field.metadata else annotation


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
