"""`ebb lookup`: what is known of somebody or something, by name."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client


def lookup(
    entity: Annotated[str, typer.Argument(help="Whom or what it is about.")],
    key: Annotated[str | None, typer.Argument(help="Which of its properties; else all.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only facts with this tag.")] = None,
    as_of: Annotated[str | None, typer.Option(help="What was true at that instant or date.")] = None,
    known_as_of: Annotated[str | None, typer.Option(help="What had been told, and held for true, by then.")] = None,
    touch: Annotated[bool, typer.Option("--touch/--no-touch", help="Whether looking up strengthens.")] = True,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show all facts about an entity, or one of its properties, the most confident first; nothing is embedded."""
    options = {"tag": tag, "as_of": as_of, "known_as_of": known_as_of}
    given: Any = {name: one for name, one in options.items() if one}
    with client(home, namespace) as memory:
        found = memory.lookup(entity, key, touch=touch, **given)
    if as_json:
        output.print_json(found)
        return
    if not found["results"]:
        about = entity if key is None else f"{key!r} of {entity!r}"
        output.console().print(
            f"Nothing in {memory.namespace!r} is about {output.as_it_is(about)}. Ask in words with `ebb recall`."
        )
        return
    columns = ["key", "value", "confidence", "ends", "tags", "text"]
    rows = [
        [
            one["key"],
            one["value"],
            f"{one['confidence']:.2f}",
            output.ending(one),
            ",".join(one["tags"]) or None,
            one["text"],
        ]
        for one in found["results"]
    ]
    output.print_table(columns, rows)


COMMANDS: dict[str, Callable[..., None]] = {"lookup": lookup}
