"""`ebb contradictions` and `resolve`: facts that cannot both be true, and which of them to believe."""

from collections.abc import Callable
from typing import Annotated

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client


def contradictions(
    limit: Annotated[int, typer.Option(help="How many pairs at most.")] = 100,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show facts that say different values of the same key of the same entity."""
    with client(home, namespace) as memory:
        found = memory.contradictions(limit)
    if as_json:
        output.print_json(found)
        return
    rows = [
        [
            *([pair["entity"], pair["key"]] if place == 0 else ["", ""]),
            fact["value"],
            fact["created_at"][:10],
            fact["id"],
        ]
        for pair in found["contradictions"]
        for place, fact in enumerate(pair["facts"])
    ]
    if rows:
        output.print_table(["entity", "key", "value", "since", "id"], rows)
        output.console().print("[dim]settle one: ebb resolve OLD --keep NEW, or ebb resolve ONE TWO --both[/dim]")
    else:
        output.console().print(f"Nothing in {memory.namespace!r} contradicts anything else.")


def resolve(
    ids: Annotated[list[str], typer.Argument(help="The facts that shall hold no longer, or with --both the two.")],
    keep: Annotated[str | None, typer.Option(help="The fact that takes their place.")] = None,
    both: Annotated[bool, typer.Option("--both", help="Two facts hold, though they differ.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Settle a contradiction: keep one fact, which supersedes the other, or accept both."""
    if both == (keep is not None):
        raise typer.BadParameter("give either the id to --keep, or --both")
    with client(home, namespace) as memory:
        answer = memory.resolve(*ids, keep=keep, both=both)
    if as_json:
        output.print_json(answer)
    elif both:
        output.console().print(f"[green]accepted[/green] {' and '.join(answer['accepted'])}")
    else:
        output.console().print(f"[green]kept[/green] {answer['kept']}, superseded {', '.join(answer['superseded'])}")


COMMANDS: dict[str, Callable[..., None]] = {"contradictions": contradictions, "resolve": resolve}
