"""`ebb lookup`: what is known about a person or thing, by name."""

from collections.abc import Callable
from typing import Any

from ebb.contract.recall import LOOKUP

from api.cli import output
from api.cli.operations import command

COLUMNS = ["key", "value", "confidence", "ends", "tags", "text"]


@command(LOOKUP, arguments=("entity", "key"), left_out=("limit", "cursor"))
def lookup(found: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Show all facts about an entity, or one of its properties, the most confident first; nothing is embedded."""
    if not found["results"]:
        about = f"{asked['key']!r} of {asked['entity']!r}" if "key" in asked else asked["entity"]
        output.console().print(
            f"Nothing in {namespace!r} is about {output.as_it_is(about)}. Ask in words with `ebb recall`."
        )
        return
    output.print_table(COLUMNS, [_row(one) for one in found["results"]])


def _row(one: dict[str, Any]) -> list[Any]:
    tags = ",".join(one["tags"]) or None
    return [one["key"], one["value"], f"{one['confidence']:.2f}", output.ending(one), tags, one["text"]]


COMMANDS: dict[str, Callable[..., None]] = {"lookup": lookup}
