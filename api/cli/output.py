"""What commands print: results on stdout, for people or as JSON; progress and errors on stderr."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from workers.errors import EbbError, InvalidInputError

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
HomeFolder = Annotated[Path | None, typer.Option("--home", help="Folder of data and logs; else EBB_HOME, else ~/.ebb.")]


@cache
def console(*, stderr: bool = False) -> "Console":
    """Return the console for results, or the one for everything else."""
    from rich.console import Console  # noqa: PLC0415  rich takes a while to load, and JSON needs none of it

    class Harmless(Console):
        """A console on which no stored text moves the cursor or turns the direction of writing."""

        def print(self, *objects: Any, **options: Any) -> None:
            """Print objects, of which texts have their control characters escaped."""
            super().print(*(_escaped(one) if isinstance(one, str) else one for one in objects), **options)

    screen = Harmless(stderr=stderr, highlight=False, soft_wrap=True)
    if stderr:
        screen.on_broken_pipe = lambda: _discard(screen)  # type: ignore[method-assign]
    return screen


def _escaped(text: str) -> str:
    from workers.core import controls  # noqa: PLC0415 - only for people

    return controls.escaped(text, lines=True)


def _discard(screen: "Console") -> None:
    """Print nothing more on a stream that has no reader: work goes on without a progress report."""
    screen.quiet = True
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - only its descriptor is wanted
        os.dup2(nothing.fileno(), screen.file.fileno())


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print on stdout as long as there is a reader, as with `| head`, and go on with the work without one."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich ends the program by the latter
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - only its descriptor is wanted
            os.dup2(nothing.fileno(), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print one JSON value on one line of stdout; control characters and halves of characters are escaped."""
    typer.echo(json_line(value))


def json_line(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return one JSON value on one line, which no terminal takes for more than text."""
    from workers.core import controls  # noqa: PLC0415 - only to print

    return controls.escaped_json(json.dumps(value, ensure_ascii=False, default=default))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings; an absent value is shown as a dash."""
    from rich.table import Table  # noqa: PLC0415  see console
    from rich.text import Text  # noqa: PLC0415 - what a fact says in brackets is no markup

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(_escaped(column))
    for row in rows:
        table.add_row(*(Text("-" if cell is None else _escaped(str(cell))) for cell in row))
    console().print(table)


def ending(fact: dict[str, Any]) -> str | None:
    """Return when a fact ends if it is never used, and why; why it ended, if that is over; nothing if it never does."""
    if fact.get("deep"):
        return f"deep: {fact['deep']}"
    at = fact.get("ends_at")  # absent in answers of older workers
    return f"{at[:10]} {fact['ends_for']}" if at else None


def as_it_is(text: str) -> str:
    """Return text that is shown as it is beside markup: brackets in it are no markup."""
    from rich.markup import escape  # noqa: PLC0415  see console

    return escape(text)


def progress(text: str) -> None:
    """Say on stderr what has just been done."""
    from rich.text import Text  # noqa: PLC0415  see console

    console(stderr=True).print(Text("✓", style="green"), text, markup=False)


@contextlib.contextmanager
def bar(unit: str) -> Iterator[Any]:
    """Give a function that shows how much is done, as a bar on stderr where that is a terminal."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.fields[count]} " + unit),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, count=0)
        yield lambda count, done, total: bar.update(task, completed=done, total=total, count=count)


def spinner(text: str) -> Any:
    """Return a block during which stderr says what is being done, where that is a terminal."""
    return console(stderr=True).status(text)


def say_words_alone(answer: dict[str, Any]) -> None:
    """Say on stderr that an answer was found by words alone, if it was; older workers do not say."""
    if answer.get("by_meaning") is False:
        console(stderr=True).print(
            "[yellow]Only words were matched[/yellow]: the embedder does not answer, or none of its vectors "
            "are here yet; `ebb doctor` says more."
        )


def say_held(facts: int) -> None:
    """Say loudly that facts are over but stay visible, because the forget limit holds them back."""
    console().print(
        f"[bold red]Forget limit met:[/bold red] {facts} facts are over but stay visible. "
        "List them with `ebb held`, then let them go with `ebb held --let-go` or keep them with `ebb held --keep`."
    )


def confirm_restore(facts: int, *, yes: bool, as_json: bool) -> None:
    """Ask on a terminal whether so many facts shall be restored; see `_confirm`."""
    otherwise = f"{facts} facts match; nothing was restored. To restore them, run the same command with --yes."
    _confirm(f"{facts} facts will be restored. Go on?", otherwise, yes=yes or not facts, as_json=as_json)


def confirm_erasure(facts: int, *, yes: bool, as_json: bool) -> None:
    """Ask on a terminal whether so many facts shall be erased for good; see `_confirm`."""
    otherwise = (
        f"{facts} facts would be erased for good; nothing was erased. To erase them, run the same command with --yes, "
        "or on a terminal."
    )
    _confirm(f"{facts} facts will be erased for good. Go on?", otherwise, yes=yes or not facts, as_json=as_json)


def confirm_forgetting(facts: int, *, yes: bool, as_json: bool) -> None:
    """Ask on a terminal whether so many facts shall be forgotten; see `_confirm`."""
    otherwise = (
        f"{facts} facts would be forgotten; nothing was done. To forget them, run the same command with --yes, or on a "
        "terminal."
    )
    _confirm(f"{facts} facts will be forgotten. Go on?", otherwise, yes=yes or not facts, as_json=as_json)


def _confirm(question: str, otherwise: str, *, yes: bool, as_json: bool) -> None:
    """Ask on a terminal, and exit with 2 where that is not confirmed; without a terminal only `--yes` confirms it."""
    if yes:
        return
    if not sys.stdin.isatty() or as_json:
        fail(InvalidInputError(otherwise), as_json=as_json)
    elif typer.confirm(question, err=True):
        return
    raise typer.Exit(2)


def json_wanted(arguments: Sequence[str]) -> bool:
    """Tell whether the command line asks for JSON; what follows `--` is data."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def fail(error: EbbError, *, as_json: bool) -> None:
    """Say what went wrong: on stderr in words, or on stdout as `{"error": {"type", "message"}}`."""
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": str(error)}})
    else:
        console(stderr=True).print("[bold red]Error:[/bold red]", end=" ")
        console(stderr=True).print(str(error), markup=False)


def without_password(url: str) -> str:
    """Return the URL as it may be shown: with dots where the password was."""
    password = urlsplit(url).password
    shown = url.replace(f":{password}@", ":•••@") if password else url
    return re.sub(r"(sentinel_password=)[^&]*", r"\1•••", shown)
