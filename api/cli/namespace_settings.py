"""`ebb settings`: how one namespace is kept, where that differs from the `EBB_` settings."""

import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client

MARK = "set for this namespace"


def settings(
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="PATH=VALUE: hygiene.confidenceDecay.halfLife=60, hygiene.episodicTTL=false …"),
    ] = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", help="PATH that shall be as elsewhere again.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show or set how a namespace's facts fade and its episodes age; from the next pass on it holds for all of them."""
    given = dict(_assignment(one) for one in set_ or [])
    with client(home, namespace) as memory:
        answer = memory.settings(set=given, unset=unset or [])
    if as_json:
        output.print_json(answer)
        return
    own = dict(_leaves(answer["own"]))
    rows = [[path, _plain(value), MARK if path in own else ""] for path, value in _leaves(answer["settings"])]
    output.print_table(["setting", "value", ""], rows)


def _assignment(given: str) -> tuple[str, Any]:
    """Return path and value of `path=value`; what is no JSON is a word."""
    path, sign, value = given.partition("=")
    if not sign or not path.strip():
        raise typer.BadParameter(f"{given!r} is no PATH=VALUE.", param_hint="--set")
    try:
        return path.strip(), json.loads(value)
    except ValueError:
        return path.strip(), value


def _leaves(settings: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


COMMANDS: dict[str, Callable[..., None]] = {"settings": settings}
