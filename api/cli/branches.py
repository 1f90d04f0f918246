"""`ebb branch`: an older copy of a namespace, on which passes show what time does; the original stays as it is."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import output
from api.cli.connection import Everywhere, Yes, client

if TYPE_CHECKING:
    from api.client import Client


def branch(
    namespace: Annotated[
        str | None, typer.Argument(help="Which namespace; else EBB_NAMESPACE.", metavar="NAME")
    ] = None,
    older: Annotated[str | None, typer.Option(help="By how many days its instants are older, such as 365d.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Erase its branches, or the one of that age.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show its branches.")] = False,
    yes: Yes = False,
    everywhere: Everywhere = False,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Copy a namespace as NAME-older-365d, with every instant so much earlier; decay that to see what a year does."""
    if show == (drop or older is not None) or (everywhere and not show):
        raise typer.BadParameter("give --older, or --drop, or --list; --all goes with --list alone")
    with client(home, namespace) as memory:
        if show:
            _list(memory.branches(everywhere=everywhere), as_json=as_json)
        elif drop:
            _drop(memory, older, yes=yes, as_json=as_json)
        else:
            _make(memory, str(older), as_json=as_json)


def _make(memory: "Client", older: str, *, as_json: bool) -> None:
    with output.spinner("every fact is copied …"):
        done = memory.branch(older)
    if as_json:
        output.print_json(done)
        return
    output.console().print(f"[green]{done['action']}[/green] {done['branch']} with {done['facts']} facts")
    output.progress(f"Next: ebb decay -n {done['branch']}, then: ebb stats -n {done['branch']}")


def _drop(memory: "Client", older: str | None, *, yes: bool, as_json: bool) -> None:
    found = [one for one in memory.branches(everywhere=True)["branches"] if _is_meant(one, memory.namespace, older)]
    output.confirm_erasure(sum(one["facts"] for one in found), yes=yes, as_json=as_json)
    done = memory.drop_branch(older)
    if as_json:
        output.print_json(done)
    else:
        output.console().print(f"[yellow]dropped[/yellow] {', '.join(done['dropped'])}")


def _is_meant(one: dict[str, Any], namespace: str, older: str | None) -> bool:
    return namespace == one["branch"] or (namespace == one["of"] and older in (None, f"{one['days']}d"))


def _list(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json(found)
        return
    columns = ("branch", "of", "days", "facts")
    rows = [[*(one[name] for name in columns), "" if one["complete"] else "incomplete"] for one in found["branches"]]
    output.print_table([*columns, ""], rows)


COMMANDS: dict[str, Callable[..., None]] = {"branch": branch}
