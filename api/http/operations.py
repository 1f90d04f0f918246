"""Routes of operations: what each takes from path, query and body follows from its parameters in the contract."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from ebb.contract.operation import SHARED, Operation, Params
from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import create_model
from pydantic.fields import FieldInfo

from api.http.problems import responses
from api.http.sending import ACCEPTED, Session

Act = Callable[[Session, dict[str, Any], Response], Any]
"""Answers a request: through the caller's session, by what was given, with headers and status of the response."""


def add(
    routes: APIRouter,
    operation: Operation,
    session: Any,
    act: Act | None = None,
    *,
    words: Mapping[str, str] | None = None,
    left_out: tuple[str, ...] = SHARED,
    problems: tuple[int, ...] = (),
    **options: Any,
) -> None:
    """Add the route of an operation.

    `session` is the annotated dependency that says who may ask. `words` describe parameters that are other here than
    elsewhere; those `left_out` are not taken. `problems` are the statuses of expected errors.
    """
    method, path = operation.route.split()
    fields = {name: field for name, field in operation.params.model_fields.items() if name not in left_out}
    described = {name: _described(field, (words or {}).get(name)) for name, field in fields.items()}
    in_path = {name: field for name, field in described.items() if f"{{{name}}}" in path}
    others = {name: field for name, field in described.items() if name not in in_path}
    body = _body(operation, others) if others and method not in ("GET", "DELETE") else None

    def endpoint(**given: Any) -> Any:
        memory, response = given.pop("memory"), given.pop("response")
        if body is not None:
            content: Params | None = given.pop("body")
            given |= {} if content is None else content.given()
        elif others:
            given = {name: _plain(value) for name, value in given.items() if value is not None}
        given |= {name: str(given[name]) for name in in_path}
        return memory.perform(operation, given) if act is None else act(memory, given, response)

    endpoint.__name__ = operation.params.__name__.lower()
    endpoint.__doc__ = operation.params.__doc__
    endpoint.__signature__ = _signature(in_path, others, body, session)  # type: ignore[attr-defined]
    routes.add_api_route(
        path.removeprefix(routes.prefix),
        endpoint,
        methods=[method],
        response_model=options.pop("response_model", operation.answer),
        responses=(ACCEPTED if operation.accepted else {}) | responses(*problems) | options.pop("responses", {}),
        **options,
    )


def _described(field: FieldInfo, words: str | None) -> FieldInfo:
    if words is None:
        return field
    copied = FieldInfo.merge_field_infos(field, description=words)
    copied.annotation = field.annotation
    return copied


def _body(operation: Operation, fields: Mapping[str, FieldInfo]) -> type[Params]:
    """Return the model of a body: the parameters without those of the path and those that doors fill in."""
    config = operation.params.model_config
    model = create_model(
        f"{operation.params.__name__}Request",
        __base__=Params,
        __doc__=operation.params.__doc__,
        **{name: (field.annotation, field) for name, field in fields.items()},  # type: ignore[call-overload]
    )
    model.model_config["json_schema_extra"] = config.get("json_schema_extra")
    return model  # type: ignore[no-any-return]


def _signature(
    in_path: Mapping[str, FieldInfo], others: Mapping[str, FieldInfo], body: type[Params] | None, session: Any
) -> inspect.Signature:
    shown = [_parameter("memory", session), _parameter("response", Response)]
    shown += [_parameter(name, Annotated[field.annotation, field, Path()]) for name, field in in_path.items()]
    if body is not None:
        optional = not any(field.is_required() for field in others.values())
        shown.append(_parameter("body", Annotated[body | None if optional else body, Body()], None if optional else ...))
    else:
        shown += [
            _parameter(name, Annotated[field.annotation, _in_query(field)], field.get_default())
            if not field.is_required()
            else _parameter(name, Annotated[field.annotation, _in_query(field)])
            for name, field in others.items()
        ]
    return inspect.Signature(shown)
