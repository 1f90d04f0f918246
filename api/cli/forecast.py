"""`ebb forecast`: what will cool, shrink and be forgotten on each of the coming days, unless it is used."""

from collections.abc import Callable
from typing import Any

from ebb.contract.reports import FORECAST

from api.cli import output
from api.cli.operations import command

COLUMNS = ("warm", "cold", "compressed", "fingerprinted", "stale", "forgotten", "held")


@command(FORECAST)
def forecast(found: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Show what passes will do on each of the coming days, if nothing is used until then."""
    output.print_table(
        ["day", *COLUMNS], [[day["at"][:10], *(day[name] or None for name in COLUMNS)] for day in found["days"]]
    )
    for day in found["days"]:
        for fact in day["facts"]:
            output.console().print(_line(day, fact), markup=False)


def _line(day: dict[str, Any], fact: dict[str, Any]) -> str:
    return f"{day['at'][:10]}  {fact['change']:<13}  {fact['id']}  {fact['text']}"


COMMANDS: dict[str, Callable[..., None]] = {"forecast": forecast}
