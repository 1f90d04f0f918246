"""`ebb link`, `unlink`, `relate`, `unrelate` and `relations`: links between facts, relations between entities."""

from typing import Annotated, Any

import typer
from ebb.contract.graph import LINK, RELATE, UNLINK, UNRELATE
from ebb.contract.values import MOST_FACTS

from api.cli import output
from api.cli.operations import NamespaceName, client, command, say_if_unknown

COLUMNS = ("from", "type", "to", "weight", "lastObserved")
PASSED = {
    "processed": "processed",
    "decayed": "decayed",
    "belowMinimum": "below minimum",
    "newlyBelow": "newly below",
    "pinned": "pinned",
}


@command(LINK, arguments=("source", "target", "type"))
def link(done: dict[str, Any], _: dict[str, Any], __: str) -> None:
    """Link two facts: when one is recalled, the other is found too."""
    output.console().print(
        f"[green]linked[/green] {done['source']} {done['type']} {done['target']}, strength {done['strength']:g}"
    )


@command(UNLINK, arguments=("source", "target", "type"), fails=lambda done: not done["removed"])
def unlink(done: dict[str, Any], _: dict[str, Any], __: str) -> None:
    """Remove the link between two facts; the facts stay."""
    output.console().print(f"[yellow]removed[/yellow] {output.counted(done['removed'], 'link')}")


@command(RELATE, arguments=("source", "type", "target"), flags={"pinned": "--pinned/--not-pinned"})
def relate(done: dict[str, Any], _: dict[str, Any], __: str) -> None:
    """Record that an entity is related to another; unless observed again, the weight halves after 90 days."""
    how = "pinned" if done["pinned"] else f"last observed {done['lastObserved']}"
    related = output.escape_markup(f"{done['from']} {done['type']} {done['to']}")
    output.console().print(f"[green]observed[/green] {related}, weight {done['weight']:g}, {how}")


@command(UNRELATE, arguments=("source", "type", "target"), fails=lambda done: not done["removed"])
def unrelate(done: dict[str, Any], _: dict[str, Any], __: str) -> None:
    """Remove a relation for good."""
    output.console().print(f"[yellow]removed[/yellow] {output.counted(done['removed'], 'relation')}")


def relations(
    decayed: Annotated[
        bool, typer.Option("--decayed", help="Those below the minimum weight, which recall does not use.")
    ] = False,
    entity: Annotated[str | None, typer.Option(help="Only those of this entity.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_FACTS, help="How many at most.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="The `next` of the page before; else the first page.")] = None,
    decay: Annotated[bool, typer.Option("--decay", help="Bring stored weights up to date instead.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --decay: only report what would change.")] = False,
    now: Annotated[str | None, typer.Option(help="With --decay: as of that instant, ISO 8601 with zone.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show relations between entities, strongest first."""
    if (dry_run or now) and not decay:
        raise typer.BadParameter("--dry-run and --now belong to --decay")
    if decay and (decayed or entity or cursor):
        raise typer.BadParameter("--decay updates all relations: leave out --decayed, --entity and --cursor")
    with client(home, namespace) as memory:
        if decay:
            found = memory.decay_relations(dry_run=dry_run, now=now)
        else:
            found = memory.relations(decayed=decayed, entity=entity, limit=limit, cursor=cursor)
        if as_json:
            output.print_json(found)
            return
        if decay:
            output.print_table(["", memory.namespace], [[label, found[name]] for name, label in PASSED.items()])
            _show_edges(found.get("edges", []))
        elif found["edges"]:
            _show_edges(found["edges"])
            output.print_more(found)
        else:
            output.console().print(f"No {'decayed ' if decayed else ''}relations in {memory.namespace!r}.")
        if not found["processed" if decay else "edges"]:
            say_if_unknown(memory)


def _show_edges(edges: list[dict[str, Any]]) -> None:
    if edges:
        rows = [[*(edge[name] for name in COLUMNS), "pinned" if edge.get("pinned") else ""] for edge in edges]
        output.print_table([*COLUMNS[:-1], "last observed", ""], rows)
