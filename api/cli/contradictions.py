"""`ebb contradictions` and `resolve`: facts that cannot both be true, and which of them to believe."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from ebb.contract.reports import CONTRADICTIONS

from api.cli import output
from api.cli.connection import NamespaceName, client
from api.cli.operations import command


@command(CONTRADICTIONS, left_out=("cursor",))
def contradictions(found: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """Show facts that have different values for the same key of the same entity."""
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
        output.console().print(f"Nothing in {namespace!r} contradicts anything else.")


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
