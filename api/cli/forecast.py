"""`ebb forecast`: what will cool, shrink and be forgotten on each of the days to come, unless it is used."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client

COLUMNS = ("warm", "cold", "compressed", "fingerprinted", "stale", "forgotten", "held")


def forecast(
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days to look ahead.")] = 7,
    shown: Annotated[int, typer.Option(min=0, max=100, help="How many facts to name for each day and change.")] = 3,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Say what passes will do on each of the coming days, unless somebody recalls it before."""
    with client(home, namespace) as memory:
        found = memory.forecast(days, shown)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ["day", *COLUMNS], [[day["at"][:10], *(day[name] or None for name in COLUMNS)] for day in found["days"]]
    )
    for day in found["days"]:
        for fact in day["facts"]:
            output.console().print(_line(day, fact), markup=False)


def _line(day: dict[str, Any], fact: dict[str, Any]) -> str:
    return f"{day['at'][:10]}  {fact['change']:<13}  {fact['id']}  {fact['text']}"


COMMANDS: dict[str, Callable[..., None]] = {"forecast": forecast}
