"""The command `ebb`: the commands of all modules, and the one place where errors become words and codes."""

import gc
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from api.cli import (
    admin,
    archives,
    context,
    contradictions,
    decay,
    doctor,
    graph,
    hygiene,
    index,
    keys,
    lookup,
    mcp,
    memory,
    output,
    processes,
    retention,
    system,
)
from workers.errors import EbbError

GARBAGE_THRESHOLD = 50_000
"""Objects made between two looks for garbage."""

MODULES = (
    memory, lookup, context, index, retention, contradictions, graph, decay, hygiene, archives, admin, doctor, mcp,
)  # fmt: skip
"""Whose commands stand beside each other, in the order of the help."""


class Commands(TyperGroup):
    """The commands, each with the whole of its first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as Typer calls it
        """Write the table of commands, whose sentences Typer would cut off."""
        rows = [(name, str(command.help).split("\n\n")[0]) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(sentence.split())) for name, sentence in rows])


app = typer.Typer(
    name="ebb",
    cls=Commands,
    help="Long-term memory for AI agents that fades unless it is used.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help takes a third of the time
)
for command in (*system.COMMANDS, *processes.COMMANDS):
    app.command()(command)
for module in MODULES:
    for name, own in module.COMMANDS.items():
        app.command(name)(own)
app.add_typer(keys.commands, name="keys")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - it loads the parser of e-mails

        typer.echo(f"ebb {version('ebb-server')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; exit with 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    # Most of a short command's time is imports: they make many objects, hardly any garbage, and need no plugins.
    gc.set_threshold(GARBAGE_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        app()
    except EbbError as error:
        output.fail(error, as_json=output.json_wanted(sys.argv))
        sys.exit(1)
