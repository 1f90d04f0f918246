"""`ebb purge`: what was forgotten long ago is erased, from the servers' files too where that is wanted."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import output
from api.cli.connection import Everywhere, NamespaceName, Yes, client, located

if TYPE_CHECKING:
    from api.client import Client


def purge(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much would be erased.")] = False,
    now: Annotated[str | None, typer.Option(help="With --dry-run any instant, such as a year from now.")] = None,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Also write the servers' files anew without it; others wait meanwhile.")
    ] = False,
    yes: Yes = False,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Erase for good what was forgotten more than EBB_RETENTION_DAYS ago, in one namespace or with --all in every one.

    It says how much that is and asks; without a terminal it wants --yes. Workers do so by themselves once a day. Within
    an hour they clean pages and indexes of it, too. Its bytes go as the servers need the room, or by --scrub.
    """
    from workers import validation  # noqa: PLC0415

    at = None if now is None else validation.instant(now, "--now").isoformat()
    with client(home, namespace) as memory:
        done = memory.purge(at, dry_run=True, everywhere=everywhere)
        if not dry_run:
            output.confirm_erasure(done["left"], yes=yes, as_json=as_json)
            done = _erase(memory, at, everywhere=everywhere)
    left = _scrub(home) if scrub and not dry_run else []
    done |= {"scrubbed": scrub and not dry_run, "out_of_reach": left}
    if as_json:
        output.print_json(done)
    else:
        count, would = (done["left"], "would be ") if dry_run else (done["purged"], "")
        output.console().print(f"{count} facts {would}erased that were forgotten before {done['forgotten_before']}")
        for one in left:
            output.console().print(f"not reached: {one}", markup=False)


def _erase(memory: "Client", at: str | None, *, everywhere: bool) -> dict[str, Any]:
    """Purge until nothing is left; return what the last purge answered, with the number of all that were erased."""
    with output.spinner("what was forgotten long ago is erased …"):
        done = memory.purge(at, everywhere=everywhere)
        while done["left"] and (more := memory.purge(at, everywhere=everywhere))["purged"]:
            done = more | {"purged": done["purged"] + more["purged"]}
    return done


def _scrub(home: Path | None) -> list[str]:
    """Write the servers' files anew; return what was not reached."""
    from workers.admin import purge as scrubbing  # noqa: PLC0415
    from workers.context import Context  # noqa: PLC0415

    context = Context(located(home))
    with output.spinner("tables and logs are rewritten …"):
        return scrubbing.scrub(context, context.now()).left


COMMANDS: dict[str, Callable[..., None]] = {"purge": purge}
