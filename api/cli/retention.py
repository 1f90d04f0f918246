"""`ebb forget`, `history` and `pin`: the owner's own decisions about single facts."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, Yes, client

Ids = Annotated[list[str], typer.Argument(help="The facts' ids.")]
Id = Annotated[str, typer.Argument(help="The fact's id.")]
COLOURS = {"forgotten": "yellow", "purged": "yellow", "restored": "green", "unknown": "red"}


def forget(
    ids: Ids,
    purge: Annotated[bool, typer.Option("--purge", help="Erase them at once: no way back.")] = False,
    yes: Yes = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Forget facts; until they are purged, `ebb restore` brings them back."""
    if purge:
        output.confirm_erasure(len(set(ids)), yes=yes, as_json=as_json)
    with client(home, namespace) as memory:
        answer = memory.forget(ids, purge=purge)
    show_fates(answer, as_json=as_json)


def history(
    id: Id,  # noqa: A002 - the contract's name
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Tell everything that happened to a fact, oldest first."""
    with client(home, namespace) as memory:
        told = memory.history(id)
    if as_json:
        output.print_json(told)
        return
    screen = output.console()
    screen.print(told["text"], markup=False)
    pinned = f", pinned {_until(told['pinned_until'])}" if told["pinned"] else ""
    ends = f", ends {told['ends_at']} ({told['ends_for']}) unless used" if told.get("ends_at") else ""
    screen.print(f"[bold]{told['state']}[/bold]{pinned}{ends}\n")
    output.print_table(["at", "what", ""], [[one["at"], one["what"], _details(one)] for one in told["events"]])


def pin(
    id: Id,  # noqa: A002 - the contract's name
    off: Annotated[bool, typer.Option("--off", help="End the pin: it fades on from now.")] = False,
    until: Annotated[str | None, typer.Option(help="Only until then, ISO 8601 with zone or a date.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Keep a fact as it is: it neither fades nor ends, for good or until an instant."""
    with client(home, namespace) as memory:
        done = memory.pin(id, until=until, off=off)
    if as_json:
        output.print_json(done)
    else:
        how_long = f", pinned {_until(done['until'])}" if done["pinned"] else ", not pinned"
        output.console().print(f"[green]{done['action']}[/green] {done['id']}{how_long}")


def show_fates(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print what became of each fact; exit with 1 if one was not there or was refused."""
    if as_json:
        output.print_json(answer)
    else:
        for one in answer["results"]:
            _show_fate(one)
    if any("error" in one or one["action"] == "unknown" for one in answer["results"]):
        raise typer.Exit(1)


def _show_fate(one: dict[str, Any]) -> None:
    if "error" in one:
        output.console(stderr=True).print(one["error"], style="red", markup=False)
        return
    colour = COLOURS.get(one["action"], "dim")
    known = one["action"] == "unchanged" and "reason" in one
    since = f", forgotten {one['forgotten_at']}: {one['reason']}" if known else ""
    pinned = ", pinned: it had ended by itself before, and does not again" if one.get("pinned") else ""
    output.console().print(f"[{colour}]{one['action']}[/{colour}] {one['id']}{since}{pinned}")


def _details(event: dict[str, Any]) -> str:
    return ", ".join("for good" if value is None else f"{name} {value}" for name, value in event["details"].items())


def _until(instant: str | None) -> str:
    return "for good" if instant is None else f"until {instant}"


COMMANDS: dict[str, Callable[..., None]] = {"forget": forget, "history": history, "pin": pin}
