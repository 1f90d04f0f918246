"""The command `ebb`: its commands, and the translation of errors to messages and exit codes."""

import ast
import errno
import gc
import os
import signal
import sys
from threading import current_thread, main_thread

# A short command spends most of its time on imports, which create many objects and little garbage, without plugins.
gc.set_threshold(500_000)
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# While modules are loaded, Ctrl-C ends the process without a traceback.
interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler and current_thread() is main_thread()
if interruptible:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from workers.errors import EbbError

if interruptible:
    signal.signal(signal.SIGINT, signal.default_int_handler)

COMMANDS = (
    ("system", "up down status worker beat flower api mcp"),
    ("facts", "store list edit reinforce used forget history pin forgotten restore"),
    ("recall", "recall lookup context"),
    ("facts", "timeline stats"),
    ("files", "index"),
    ("graph", "link unlink relate unrelate relations"),
    ("decay", "decay prune backfill-decay forecast held consolidate janitor contradictions resolve"),
    ("files", "import export remember"),
    ("admin", "purge branch settings reembed reindex migrate"),
    ("doctor", "doctor"),
    ("keys", "keys"),
    ("admin", "shards"),
)
"""Commands in the order of the help, with their modules, which have functions or groups of these names."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Why a file takes no more output."""

FAULTY = (errno.EIO, errno.ESTALE, errno.ENXIO, errno.ELOOP)
"""Why a device, a server of files or a link fails."""

COMPLETING = "_EBB_COMPLETE"
"""Variable with which the script that Typer installs in a shell asks for completions, of any command."""

USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]
"""The base class of errors of use, which Typer does not export."""


@contextmanager
def _short_usage_errors() -> Iterator[None]:
    """Shorten very long arguments in the message of an error of use."""
    try:
        yield
    except USAGE_ERROR as error:
        from api.cli import output  # only for errors

        error.message = output.shortened(error.message)
        raise


class Commands(TyperGroup):
    """The command group; its help shows each command's whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """Write the table of commands without truncating sentences, as Typer would."""
        docs = [(name, _docstrings(module)[name]) for module, names in COMMANDS for name in names.split()]
        with formatter.section("Commands"):
            formatter.write_dl([(name, doc.split("\n\n")[0].replace("\n", " ")) for name, doc in docs])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before a command."""
        with _short_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of a command and run it."""
        with _short_usage_errors():
            return super().invoke(ctx)


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Return the docstrings of a module's functions by the names of commands, read without importing it."""
    source = ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8"))
    functions = [one for one in source.body if isinstance(one, ast.FunctionDef)]
    return {one.name.rstrip("_").replace("_", "-"): ast.get_docstring(one) or "" for one in functions}


def command_line(name: str = "") -> typer.Typer:
    """Return the command line with the module of one command, without any for `--help`, or with all."""
    app = typer.Typer(
        name="ebb",
        cls=Commands,
        help="Long-term memory for AI agents that fades unless it is used.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help takes a third of the time to print
        callback=_options,
    )
    wanted = [one for one in COMMANDS if name in one[1].split()] or COMMANDS
    for module, names in wanted if name not in ("--help", "--version") else ():
        _add(app, module, names.split())
    return app


def _add(app: typer.Typer, module: str, names: list[str]) -> None:
    found = vars(import_module(f"api.cli.{module}"))
    groups = {one.info.name: one for one in found.values() if isinstance(one, typer.Typer)}
    for name in names:
        if name in groups:
            app.add_typer(groups[name])
        else:
            function = name.replace("-", "_")
            app.command(name)(found.get(function) or found[f"{function}_"])


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # loads the parser of e-mails

        typer.echo(f"ebb {version('ebb-server')}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _show_what_the_terminal_cannot() -> None:
    """Print characters that the encoding of the output lacks as escapes, in place of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _postgres_answers() -> Iterator[None]:
    """Raise an `UnavailableError` where PostgreSQL breaks off what a command does itself, as when it ends."""
    try:
        yield
    except Exception as error:
        psycopg = sys.modules.get("psycopg")  # slow to load; without it no connection was made
        if psycopg is None or not isinstance(error, psycopg.OperationalError | psycopg.errors.InsufficientPrivilege):
            raise
        from workers.storage.refusals import broken_off

        raise broken_off(error) from error


def _wanted() -> str:
    """Return the command whose module is loaded; all for a shell that asks for completions."""
    if COMPLETING in os.environ:
        return ""
    return sys.argv[1] if len(sys.argv) > 1 else "--help"


def _run_command() -> None:
    """Run the command, and print what it raises of Ebb's own errors."""
    try:
        with _postgres_answers():
            command_line(_wanted())()
    except EbbError as error:
        from api.cli import output  # only for errors

        output.fail(error, as_json=output.json_wanted(sys.argv))
        sys.exit(1)


def _discard_output() -> None:
    """Discard what waits to be written on stdout, which Python would try once more when it ends."""
    from api.cli import output

    if sys.stdout is not None:
        output.discard(sys.stdout)


def main() -> None:
    """Run the command line; exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted."""
    _show_what_the_terminal_cannot()
    if os.environ.get("COLUMNS", "").strip("0") == "":
        os.environ.pop("COLUMNS", None)  # as some consoles say for an unknown width; Rich would print nothing
    try:
        _run_command()
    except KeyboardInterrupt:  # while the command's module is loaded; Typer handles others
        from api.cli import output

        sys.exit(output.INTERRUPTED)
    except OSError as error:
        if error.errno == errno.ENOENT and error.filename is None:  # of `os.getcwd` alone
            sys.exit("Error: the current folder is not there any more. Change to another one, or give whole paths.")
        if error.errno not in (*FULL, *FAULTY, errno.EPIPE):
            raise
        _discard_output()
        if error.errno == errno.EPIPE:  # the reader has seen enough, such as `head`
            sys.exit(1)
        if error.errno in FAULTY:
            sys.exit(f"Error: a file or device fails: {error.strerror}. Check it, or give another file.")
        sys.exit(f"Error: the output cannot be written: {error.strerror}. Make room, or write elsewhere.")
    finally:
        gc.freeze()  # skips the collections at exit, a fifth of the run time
