"""`ebb purge`: what was forgotten long ago is erased, from the servers' files too where that is wanted."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from api.cli import output
from api.cli.reaching import NamespaceName, client, located


def purge(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much would be erased.")] = False,
    now: Annotated[str | None, typer.Option(help="Any instant, such as a year from now.")] = None,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Also write the servers' files anew without it; others wait meanwhile.")
    ] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Erase for good what was forgotten more than EBB_RETENTION_DAYS ago, in every namespace.

    Within an hour workers clean pages and indexes of it, too. Its bytes go as the servers need the room, or by --scrub.
    """
    from workers import intake  # noqa: PLC0415

    at = None if now is None else intake.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, output.spinner("what was forgotten long ago is erased …"):
        done = memory.purge(at, dry_run=dry_run)
        while done["left"] and not dry_run and (more := memory.purge(at))["purged"]:
            done = more | {"purged": done["purged"] + more["purged"]}
    left = _scrub(home) if scrub and not dry_run else []
    done |= {"scrubbed": scrub and not dry_run, "out_of_reach": left}
    if as_json:
        output.print_json(done)
    else:
        count, would = (done["left"], "would be ") if dry_run else (done["purged"], "")
        output.console().print(f"{count} facts {would}erased that were forgotten before {done['forgotten_before']}")
        for one in left:
            output.console().print(f"not reached: {one}", markup=False)


def _scrub(home: Path | None) -> list[str]:
    """Write the servers' files anew; return what was not reached."""
    from workers.context import Context, utc_now  # noqa: PLC0415
    from workers.forgetting import scrub as scrubbing  # noqa: PLC0415

    with output.spinner("tables and logs are written anew …"):
        return scrubbing.scrub(Context(located(home)), utc_now()).left


COMMANDS: dict[str, Callable[..., None]] = {"purge": purge}
