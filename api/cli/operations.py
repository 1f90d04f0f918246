"""Commands of operations: the options of a command follow from the operation's parameters."""

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_origin

import typer
from ebb.contract.operation import SHARED, Operation, parameters, plain_type
from pydantic.fields import FieldInfo

from api.cli import output
from api.cli.connection import NamespaceName, client

if TYPE_CHECKING:
    from api.client import Client

Show: TypeAlias = Callable[[dict[str, Any], dict[str, Any], str], None]
"""Prints an answer for people: the answer, what was given, and the namespace."""

Run: TypeAlias = Callable[["Client", dict[str, Any], bool], None]
"""Does what a command is for: the client, what was given, and whether JSON is to be printed."""

Act: TypeAlias = Callable[["Client", dict[str, Any]], dict[str, Any]]
"""Has an operation done by what was given."""

Own: TypeAlias = Mapping[str, tuple[Any, Any]]
"""The annotations and defaults of options that mean something else here, or that only the command line has."""


def command(
    operation: Operation, act: Act | None = None, *, fails: Callable[[dict[str, Any]], bool] | None = None, **how: Any
) -> Callable[[Show], Callable[..., None]]:
    """Return the decorator that makes a function, which prints an answer, the command of an operation.

    `act` has the operation done where a command has something of its own to do; `how` is as for `options_of`. After
    an answer that `fails` the command exits with 1. What is as by default was not said: of a known fact it changes
    nothing.
    """
    defaults = {name: field.default for name, field in operation.params.model_fields.items()}

    def decorate(show: Show) -> Callable[..., None]:
        def run(memory: "Client", given: dict[str, Any], as_json: bool) -> None:
            said = {name: value for name, value in given.items() if value != defaults.get(name)}
            answer = memory.perform(operation, said) if act is None else act(memory, said)
            if as_json:
                output.print_json(answer)
            else:
                show(answer, given, memory.namespace)
            if fails is not None and fails(answer):
                raise typer.Exit(1)

        run.__doc__, run.__name__ = show.__doc__, show.__name__
        return options_of(operation, **how)(run)

    return decorate


def options_of(
    operation: Operation,
    *,
    arguments: tuple[str, ...] = (),
    reads: str = "",
    left_out: tuple[str, ...] = (),
    own: Own | None = None,
    flags: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Callable[[Run], Callable[..., None]]:
    """Return the decorator that gives a command the options of an operation.

    `arguments` are parameters given by their place, of which the one that `reads` may be `-` for standard input; those
    `left_out` are not offered. `flags` names options otherwise, `words` describes parameters otherwise.
    """
    fields = {name: operation.params.model_fields[name] for name in parameters(operation.params)}
    in_order = dict.fromkeys((*arguments, *fields))
    taken = {name: fields[name] for name in in_order if name not in (*SHARED, *left_out, *(own or {}))}
    said = {name: _sentence(name, field, reads) for name, field in taken.items()} | dict(words or {})
    offered = [_parameter(name, field, name in arguments, flags or {}, said[name]) for name, field in taken.items()]
    offered += [_keyword(name, annotation, default) for name, (annotation, default) in (own or {}).items()]

    def decorate(run: Run) -> Callable[..., None]:
        def with_client(namespace: str | None, home: Path | None, as_json: bool, **given: Any) -> None:
            if given.get(reads) == "-":
                given[reads] = sys.stdin.read()
            with client(home, namespace) as memory:
                run(memory, {name: value for name, value in given.items() if value is not None}, as_json)

        with_client.__doc__, with_client.__name__ = run.__doc__, run.__name__
        ordered = [*sorted(offered, key=_needed_first), *COMMON]
        with_client.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        return with_client

    return decorate


def _sentence(name: str, field: FieldInfo, reads: str) -> str:
    described = field.description or name
    return f"{described[0].upper()}{described[1:]}{'; `-` reads it from standard input' if name == reads else ''}."


def _parameter(
    name: str, field: FieldInfo, is_argument: bool, flags: Mapping[str, str], sentence: str
) -> inspect.Parameter:
    kind: Any = plain_type(field.annotation)
    if is_argument:
        kind = list[str] if get_origin(field.annotation) is list else kind
        info: Any = typer.Argument(help=sentence)
    elif kind is bool and field.default is False and name not in flags:
        info = typer.Option(f"--{name.replace('_', '-')}", help=sentence)
    else:
        info = typer.Option(*flags.get(name, "").split(), help=sentence)
    default = inspect.Parameter.empty if field.is_required() else field.default
    optional = kind if default is inspect.Parameter.empty or default is not None else kind | None
    return _keyword(name, Annotated[optional, info], default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _needed_first(parameter: inspect.Parameter) -> bool:
    return parameter.default is not inspect.Parameter.empty


COMMON = [
    _keyword("namespace", NamespaceName, None),
    _keyword("home", output.HomeFolder, None),
    _keyword("as_json", output.Json, default=False),
]
"""Options of every command on one namespace."""
