"""`ebb shards`: the schemas that namespaces are spread over, and moves between them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import output
from api.cli.connection import located

if TYPE_CHECKING:
    from workers.context import Context

commands = typer.Typer(no_args_is_help=True)


@commands.callback()
def shards() -> None:
    """List shards, add one, and move namespaces between them."""


@commands.command(name="list")
def list_(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """List the shards with their schemas, numbers of namespaces and facts, and sizes."""
    from workers.admin import shards  # noqa: PLC0415 - psycopg is slow to load

    found = [asdict(one) for one in shards.listed(_context(home))]
    if as_json:
        output.print_json({"shards": found})
    else:
        output.print_table(list(found[0]), [list(one.values()) for one in found])


@commands.command()
def add(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Create the next shard. Then raise EBB_SHARDS in every process, and new namespaces use it too."""
    from workers.admin import shards  # noqa: PLC0415

    number = shards.add(_context(home), output.progress)
    if as_json:
        output.print_json({"shard": number})
    else:
        output.console().print(f"Shard {number} is there: restart every process with EBB_SHARDS={number + 1}.")


@commands.command()
def move(
    namespace: Annotated[str, typer.Argument(help="Which namespace.", metavar="NAMESPACE")],
    shard: Annotated[int, typer.Argument(help="Where to, as `ebb shards list` numbers them.", metavar="SHARD")],
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Move a namespace to another shard while it is in use; an interrupted move has moved everything or nothing."""
    from workers.admin import shard_moves  # noqa: PLC0415
    from workers.validation import namespace_name  # noqa: PLC0415

    with output.spinner("rows are copied …"):
        done = shard_moves.move(_context(home), namespace_name(namespace), shard)
    if as_json:
        output.print_json(asdict(done))
    elif done.old == done.new:
        output.console().print(f"{done.namespace} is on shard {done.new} already", markup=False)
    else:
        said = f"{done.namespace}: {done.rows} rows moved from shard {done.old} to {done.new}; writes waited"
        output.console().print(f"{said} {done.held_ms:.0f} ms", markup=False)


def _context(home: Path | None) -> "Context":
    from workers.context import Context  # noqa: PLC0415

    return Context(located(home))


COMMANDS = {"shards": commands}
