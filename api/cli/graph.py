"""`ebb link`, `unlink`, `relate`, `unrelate` and `relations`: what facts and entities have to do with each other."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client

Source = Annotated[str, typer.Argument(help="The fact that the link leads from.")]
Target = Annotated[str, typer.Argument(help="The fact that it leads to.")]
From = Annotated[str, typer.Argument(metavar="FROM", help="An entity, such as a person or a project.")]
Type = Annotated[str, typer.Argument(metavar="TYPE", help="What it has to do with the other, such as works_on.")]
To = Annotated[str, typer.Argument(metavar="TO", help="The other entity.")]
COLUMNS = ("from", "type", "to", "weight", "lastObserved")
PASSED = {"processed": "processed", "decayed": "decayed", "belowMinimum": "below minimum", "pinned": "pinned"}


def link(
    source: Source,
    target: Target,
    type: Annotated[  # noqa: A002 - the contract's name
        str, typer.Argument(help="SUPERSEDES, CAUSED_BY, PART_OF, RELATED_TO or DEPENDS_ON.")
    ],
    strength: Annotated[float, typer.Option(help="How close they are, 0 to 1.")] = 1.0,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Link two facts: whoever recalls one is shown the other too."""
    with client(home, namespace) as memory:
        done = memory.link(source, target, type, strength)
    if as_json:
        output.print_json(done)
    else:
        output.console().print(
            f"[green]linked[/green] {done['source']} {done['type']} {done['target']}, strength {done['strength']:g}"
        )


def unlink(
    source: Source,
    target: Target,
    type: Annotated[str | None, typer.Argument(help="Which link; else all between the two.")] = None,  # noqa: A002
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Remove the link between two facts; the facts stay."""
    with client(home, namespace) as memory:
        done = memory.unlink(source, target, type)
    _show_removed(done, "link", as_json=as_json)


def relate(
    source: From,
    type: Type,  # noqa: A002 - the contract's name
    target: To,
    weight: Annotated[float | None, typer.Option(help="How sure it is, 0 to 1; else 1.")] = None,
    pinned: Annotated[
        bool | None, typer.Option("--pinned/--not-pinned", help="Whether it never fades; else as it was.")
    ] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Note that an entity has to do with another; unless noted again, that weighs half after 90 days."""
    with client(home, namespace) as memory:
        done = memory.relate(source, target, type, weight=weight, pinned=pinned)
    if as_json:
        output.print_json(done)
    else:
        how = "pinned" if done["pinned"] else f"last observed {done['lastObserved']}"
        output.console().print(
            f"[green]observed[/green] {output.as_it_is(_words(done))}, weight {done['weight']:g}, {how}"
        )


def unrelate(
    source: From,
    type: Type,  # noqa: A002 - the contract's name
    target: To,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Remove a relation for good."""
    with client(home, namespace) as memory:
        done = memory.unrelate(source, target, type)
    _show_removed(done, "relation", as_json=as_json)


def relations(
    decayed: Annotated[bool, typer.Option("--decayed", help="Those that have faded out of use.")] = False,
    entity: Annotated[str | None, typer.Option(help="Only those of this entity.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    decay: Annotated[bool, typer.Option("--decay", help="Bring stored weights up to date instead.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --decay: only say what would change.")] = False,
    now: Annotated[str | None, typer.Option(help="With --decay: as of that instant, ISO 8601 with zone.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show which entities have to do with each other, strongest first."""
    if (dry_run or now) and not decay:
        raise typer.BadParameter("--dry-run and --now belong to --decay")
    with client(home, namespace) as memory:
        if decay:
            found = memory.decay_relations(now, dry_run=dry_run)
        else:
            found = memory.relations(decayed=decayed, entity=entity, limit=limit)
    if as_json:
        output.print_json(found)
    elif decay:
        output.print_table(["", memory.namespace], [[label, found[name]] for name, label in PASSED.items()])
        _show_edges(found.get("edges", []))
    elif found["edges"]:
        _show_edges(found["edges"])
        if found["total"] > len(found["edges"]):
            output.console().print(f"[dim]of {found['total']}; more with --limit[/dim]")
    else:
        output.console().print(f"No {'decayed ' if decayed else ''}relations in {memory.namespace!r}.")


def _show_edges(edges: list[dict[str, Any]]) -> None:
    if edges:
        rows = [[*(edge[name] for name in COLUMNS), "pinned" if edge.get("pinned") else ""] for edge in edges]
        output.print_table([*COLUMNS[:-1], "last observed", ""], rows)


def _show_removed(done: dict[str, Any], what: str, *, as_json: bool) -> None:
    """Print how many were removed; exit with 1 if none was there."""
    if as_json:
        output.print_json(done)
    else:
        output.console().print(
            f"[yellow]removed[/yellow] {done['removed']} {what}{'' if done['removed'] == 1 else 's'}"
        )
    if not done["removed"]:
        raise typer.Exit(1)


def _words(edge: dict[str, Any]) -> str:
    return f"{edge['from']} {edge['type']} {edge['to']}"


COMMANDS: dict[str, Callable[..., None]] = {
    "link": link, "unlink": unlink, "relate": relate, "unrelate": unrelate, "relations": relations,
}  # fmt: skip
