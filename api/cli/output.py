"""Output of commands: results on stdout, as text or JSON; progress and errors on stderr."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TextIO

import typer

from workers.errors import EbbError, InvalidInputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _folder(text: str) -> Path | None:
    """Return a folder, or none of an empty text, as for EBB_HOME."""
    return Path(text) if text else None


HomeFolder = Annotated[
    Path | None,
    typer.Option(
        "--home", parser=_folder, metavar="<path>", help="Folder of data and logs; else EBB_HOME, else ~/.ebb."
    ),
]
OVERLONG = re.compile(r"(\S{80})\S{240,}?((?:'[.:;,]?)?)(?!\S)")
MASK = "•••"
LOGIN = re.compile(r"(//[^:@/]*):[^/]*@")
SECRET_OPTION = re.compile(r"([?&]\w*(?:password|secret)=)[^&]*")
SECRET_VALUE = re.compile(r"(\b\w*(?:password|secret)\s*=\s*)(?:'(?:\\.|[^'\\])*'|(?:\\.|\S)*)")
INTERRUPTED = 130
"""Exit code after Ctrl-C."""

NARROWEST = 72
"""Width at which every table has room for all columns; a narrower terminal breaks its lines."""

UNBROKEN = 1_000_000
"""Width of tables for files and other programs, which take a row as one line; `COLUMNS` sets another."""

WIDTHS = {"id": 36, "since": 10}
"""Columns of tables that are shown whole, so that they can be copied, and their characters."""


@cache
def console(*, stderr: bool = False) -> "Console":
    """Return the console for results, or the one for stderr."""
    from rich.console import Console  # rich is slow to load, and JSON does not need it

    class Harmless(Console):
        """A console that escapes control characters, so that stored texts cannot control the terminal."""

        def print(self, *objects: Any, **options: Any) -> None:
            """Print objects, with control characters in texts escaped."""
            super().print(*(_escaped(one) if isinstance(one, str) else one for one in objects), **options)

    screen = Harmless(stderr=stderr, highlight=False, emoji=False, soft_wrap=True)
    if not stderr:
        is_shown = screen.is_terminal or "COLUMNS" in os.environ
        screen.width = max(screen.width, NARROWEST) if is_shown else UNBROKEN
    else:
        screen.on_broken_pipe = lambda: _discard(screen)  # type: ignore[method-assign]  # instead of ending the process
    return screen


def _escaped(text: str) -> str:
    from workers.core import controls  # not needed for JSON

    return controls.escaped(text, lines=True)


def _discard(screen: "Console") -> None:
    """Discard further output on a stream without a reader, so that work continues."""
    screen.quiet = True
    discard(screen.file)


def discard(stream: IO[str]) -> None:
    """Discard what waits to be written on a stream, and all that follows."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - only its descriptor is wanted
        os.dup2(nothing.fileno(), stream.fileno())


@contextlib.contextmanager
def tolerating_closed_stdout() -> Iterator[None]:
    """Print on stdout while there is a reader, unlike after `| head`; continue without one."""
    try:
        yield
        if sys.stdout is not None:  # else it was closed before the start
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich raises the latter
        discard(sys.stdout)


def print_json(value: Any) -> None:
    """Print one JSON value on one line of stdout; control characters and lone surrogates are escaped."""
    typer.echo(json_line(value))


def standard_input() -> TextIO:
    """Return standard input, which a program may have closed before it started this one."""
    if sys.stdin is None:
        raise InvalidInputError("standard input is closed, so `-` reads nothing; give a file or a text.")
    return sys.stdin


def standard_output() -> TextIO:
    """Return standard output, which a program may have closed before it started this one."""
    if sys.stdout is None:
        raise InvalidInputError("standard output is closed; give a file.")
    return sys.stdout


def text_of_standard_input() -> str:
    """Return all text of standard input; refuse what is no UTF-8, which Python raises or turns into surrogates."""
    try:
        text = standard_input().read()
        text.encode()
    except UnicodeError:
        raise InvalidInputError("standard input is no UTF-8; convert it.") from None
    return text


def json_line(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return one JSON value on one line, without control characters."""
    from workers.core import controls  # needed only for printing

    plain = sys.stdout is not None and sys.stdout.encoding.lower() != "utf-8"
    return controls.escaped_json(json.dumps(value, ensure_ascii=plain, default=default))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings, with a dash for None; only headings are cut."""
    from rich.table import Table
    from rich.text import Text  # brackets in facts are not markup

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        heading = Text(_escaped(column), overflow="ellipsis")
        table.add_column(heading, overflow="fold", min_width=WIDTHS.get(column), no_wrap=column in WIDTHS)
    for row in rows:
        table.add_row(*(Text("-" if cell is None else _escaped(str(cell))) for cell in row))
    _print_unpadded(console(), table)


def print_more(page: dict[str, Any]) -> None:
    """Print how to see the next page of a listing, if there is one."""
    if page.get("next"):
        console().print(f"There are more: --cursor {page['next']}", markup=False)


def _print_unpadded(screen: "Console", table: "Table") -> None:
    """Print a table; without the blanks at the ends of lines where no terminal shows it."""
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as lines:
        screen.print(table)
    for line in lines.get().splitlines():
        screen.out(line.rstrip(), highlight=False)


def ending(fact: dict[str, Any]) -> str | None:
    """Return when and why a fact ends without use, why it ended if it is in deep memory, or None if it never does."""
    if fact.get("deep"):
        return f"deep: {fact['deep']}"
    at = fact.get("ends_at")  # absent in answers of older workers
    return f"{at[:10]} {fact['ends_for']}" if at else None


def escape_markup(text: str) -> str:
    """Return text with Rich's markup escaped."""
    from rich.markup import escape

    return escape(text)


def progress(text: str) -> None:
    """Report a completed step on stderr."""
    from rich.text import Text

    console(stderr=True).print(Text("✓", style="green"), text, markup=False)


@contextlib.contextmanager
def bar(unit: str) -> Iterator[Any]:
    """Yield a function that updates a progress bar on stderr, shown on terminals only; results may go to stdout."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.fields[count]} " + unit), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    hidden = not screen.is_terminal
    with Progress(*columns, console=screen, transient=True, redirect_stdout=False, disable=hidden) as bar:
        task = bar.add_task("", total=None, count=0)
        yield lambda count, done, total: bar.update(task, completed=done, total=total, count=count)


def spinner(text: str) -> Any:
    """Return a context that shows the current work on stderr, on terminals only."""
    return console(stderr=True).status(text)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, which ends in s unless there is one."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def over(facts: int) -> str:
    """Return how many facts have ended and are held."""
    return f"{counted(facts, 'fact')} {'is over but stays' if facts == 1 else 'are over but stay'} visible"


def short(text: str, most: int) -> str:
    """Return a text of at most so many characters."""
    from workers.core.text import beginning  # not needed for JSON

    return text if len(text) <= most else f"{beginning(text, most - 1)}…"


def of(namespace: str | None) -> str:
    """Return the option that names a namespace in a command to type next; nothing where commands use it without.

    None stands for one of several.
    """
    from workers.settings import Settings  # not needed for most output

    if namespace is None:
        return " -n NAME"
    return "" if namespace == Settings.from_environment().namespace else f" -n {namespace}"


def warn_held(facts: int, namespace: str | None, *, dry_run: bool = False) -> None:
    """Print a warning that the forget limit holds back facts that have ended, or would after a dry run."""
    if dry_run:
        console().print(f"[bold red]Forget limit:[/bold red] it would hold {counted(facts, 'fact')} back.")
        return
    listing = f"List them with `ebb held{of(namespace)}`."
    console().print(f"[bold red]Forget limit met:[/bold red] {over(facts)}. {listing} {decide(namespace)}")


def decide(namespace: str | None) -> str:
    """Return how to decide about held facts."""
    held = f"ebb held{of(namespace)}"
    ways = f"Let them go with `{held} --let-go ID…` or keep them with `{held} --keep ID…`"
    return f"{ways}, or all with `--all` in place of ids."


ERASE = ("will be erased for good", "would be erased for good; nothing was erased")
FORGET = ("will be forgotten", "would be forgotten; nothing was done")
LEAVE = ("will leave the session", "would leave the session; nothing was done")
RESTORE = ("will be restored", "would be restored; nothing was done")
"""What happens to facts, for `confirm`: the question, and what is said without a terminal."""


def confirm(what: tuple[str, str], facts: int, *, yes: bool, as_json: bool) -> None:
    """Ask on a terminal, and exit with 2 if not confirmed; without a terminal only `--yes` confirms."""
    if yes or not facts:
        return
    asked, otherwise = what
    if as_json or sys.stdin is None or not sys.stdin.isatty():
        said = f"{counted(facts, 'fact')} {otherwise}. To do so, run the same command with --yes, or on a terminal."
        fail(InvalidInputError(said), as_json=as_json)
    elif _confirmed(f"{counted(facts, 'fact')} {asked}. Go on?"):
        return
    raise typer.Exit(2)


def _confirmed(question: str) -> bool:
    """Ask; the end of input is no. Exit with 130 after Ctrl-C."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as ended:
        typer.echo(err=True)  # the next line of a terminal
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise typer.Exit(INTERRUPTED) from None
        return False


def json_wanted(arguments: Sequence[str]) -> bool:
    """Return whether the command line asks for JSON; arguments after `--` are data."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def shortened(message: str) -> str:
    """Return the message of an error with the beginnings of very long words, which stand in it as they were typed."""
    return OVERLONG.sub(r"\1…\2", message)


def fail(error: EbbError, *, as_json: bool) -> None:
    """Print an error: on stderr as text, or on stdout as `{"error": {"type", "message"}}`."""
    message = shortened(str(error))
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": message}})
    else:
        console(stderr=True).print("[bold red]Error:[/bold red]", end=" ")
        console(stderr=True).print(message, markup=False)


def without_password(address: str) -> str:
    """Return a URL, or the `name=value` form of libpq, with its passwords masked."""
    if "://" not in address:
        return SECRET_VALUE.sub(rf"\1{MASK}", address)
    return SECRET_OPTION.sub(rf"\1{MASK}", LOGIN.sub(rf"\1:{MASK}@", address))
