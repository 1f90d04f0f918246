"""Commands of operations: the options of a command follow from the operation's parameters."""

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from ebb.contract.operation import SHARED, Operation, parameters, plain_type
from pydantic.fields import FieldInfo

from api.cli import output
from api.cli.connection import NamespaceName, client

Show: TypeAlias = Callable[[dict[str, Any], dict[str, Any], str], None]
"""Prints an answer for people: the answer, what was given, and the namespace."""


def command(
    operation: Operation,
    *,
    arguments: tuple[str, ...] = (),
    left_out: tuple[str, ...] = (),
    flags: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Callable[[Show], Callable[..., None]]:
    """Return the decorator that makes a function, which prints an answer, the command of an operation.

    `arguments` are parameters given by their place, one of which may be `-` for standard input; those `left_out` are
    not offered. `flags` names options otherwise, `words` describes parameters otherwise.
    """
    fields = {name: operation.params.model_fields[name] for name in parameters(operation.params)}
    taken = {name: field for name, field in fields.items() if name not in (*SHARED, *left_out)}

    def decorate(show: Show) -> Callable[..., None]:
        def run(namespace: str | None, home: Path | None, as_json: bool, **given: Any) -> None:
            said = {name: _read(value) if name in arguments else value for name, value in given.items()}
            said = {name: value for name, value in said.items() if value is not None}
            with client(home, namespace) as memory:
                answer = memory.perform(operation, said)
            if as_json:
                output.print_json(answer)
            else:
                show(answer, said, memory.namespace)

        run.__doc__ = show.__doc__
        run.__name__ = show.__name__
        own = [_parameter(name, field, name in arguments, flags or {}, words or {}) for name, field in taken.items()]
        run.__signature__ = inspect.Signature([*sorted(own, key=_needed_first), *COMMON])  # type: ignore[attr-defined]
        return run

    return decorate


def _parameter(
    name: str, field: FieldInfo, is_argument: bool, flags: Mapping[str, str], words: Mapping[str, str]
) -> inspect.Parameter:
    kind = plain_type(field.annotation)
    told = words.get(name) or f"{(field.description or name)[0].upper()}{(field.description or name)[1:]}."
    if is_argument:
        info: Any = typer.Argument(help=told)
    elif kind is bool and field.default is False and name not in flags:
        info = typer.Option(f"--{name.replace('_', '-')}", help=told)
    else:
        info = typer.Option(*flags.get(name, "").split(), help=told)
    default = inspect.Parameter.empty if field.is_required() else field.default
    optional = kind if default is inspect.Parameter.empty or default is not None else kind | None
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[optional, info], default=default
    )


def _read(value: Any) -> Any:
    return sys.stdin.read() if value == "-" else value


def _needed_first(parameter: inspect.Parameter) -> bool:
    return parameter.default is not inspect.Parameter.empty


COMMON = [
    inspect.Parameter("namespace", inspect.Parameter.KEYWORD_ONLY, annotation=NamespaceName, default=None),
    inspect.Parameter("home", inspect.Parameter.KEYWORD_ONLY, annotation=output.HomeFolder, default=None),
    inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, annotation=output.Json, default=False),
]
"""Options of every command on one namespace."""
