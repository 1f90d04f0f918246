"""`ebb import` and `ebb export`: facts as JSONL files; `ebb remember`: files of conversations."""

import contextlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer
from ebb.contract.facts import MOST_MESSAGES, REMEMBER

from api.cli import output
from api.cli.operations import Call, Everywhere, NamespaceName, client, command_of, configured, located
from workers.errors import InvalidInputError

if TYPE_CHECKING:
    from api.archive_import import BadLine, Checkpoint

MOST_ERRORS = 10
PLACES = ("offset", "begun")
"""Fields of an import's progress that are no counts."""


def import_(
    file: Annotated[str, typer.Argument(help="One JSON object a line, each with a `text`; `-` for standard input.")],
    product: Annotated[
        Literal["openmemory", "mem0", "letta", "cogx"] | None,
        typer.Option("--from", help="Whose export it is, else Ebb's own."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Store all of it as if it were new, also what was forgotten on request.")
    ] = False,
    classify: Annotated[
        bool,
        typer.Option(
            "--classify", help="Give facts without decay_class or tags these by their words; a class is a lifetime."
        ),
    ] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Store every fact of a JSONL file; after a failure, run it again to continue.

    Lifetimes start now, however old a fact is; `source_date` and `created_at` keep its age. Only `last_seen_at` sets an
    earlier start. Lines of `ebb export` are restored as they were, with history, links and relations. Facts that were
    live then and have ended since live again; facts forgotten on request stay forgotten unless --again is given. Facts
    without decay_class never expire, unless --classify is given or `ebb backfill-decay` classifies them later.
    """
    from api import archive_import  # noqa: PLC0415 - Celery is slow to load
    from api.contrib import foreign  # noqa: PLC0415

    errors: list[BadLine] = []
    with contextlib.ExitStack() as stack:
        memory, source = stack.enter_context(client(home, namespace)), stack.enter_context(_open(file))
        facts = stack.enter_context(foreign.lines(source, product, datetime.now(UTC))) if product else source
        show, total = stack.enter_context(output.bar("lines")), archive_import.size_of(facts)
        done = archive_import.import_file(
            memory,
            facts,
            None if product else _checkpoint(file, home, memory.namespace),
            lambda bad: _report(bad, errors, archive_import.ERRORS_KEPT),
            lambda now: show(now.lines, now.offset, total),
            into=namespace,
            again=again,
            classify=classify,
        )
    counts = {name: count for name, count in asdict(done).items() if name not in PLACES}
    _print(counts, errors, as_json=as_json)


def export(
    file: Annotated[Path | None, typer.Argument(help="Where to; else standard output.")] = None,
    now: Annotated[str | None, typer.Option(help="The instant as of which to say how facts are.")] = None,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Facts alone, a line each.")] = False,
) -> None:
    """Write all facts, one per line, followed by links, relations and other records; `ebb import` restores them."""
    from api import archive_import  # noqa: PLC0415 - these are slow to load
    from workers import validation  # noqa: PLC0415
    from workers.admin.export import export as exporting  # noqa: PLC0415
    from workers.context import Context  # noqa: PLC0415

    settings = located(home)
    name = None if everywhere else validation.namespace_name(namespace or settings.namespace)
    context = Context(settings)
    at = context.now() if now is None else validation.instant(now, "--now")
    with contextlib.ExitStack() as stack:
        target = sys.stdout if file is None else stack.enter_context(_new(file))
        lines = exporting(context, name, at)
        for line in (fact for fact in lines if "text" in fact) if as_json else archive_import.with_frame(lines):
            target.write(output.json_line(line, _plain) + "\n")


File = Annotated[str, typer.Argument(help="JSON or JSONL, or an export of ChatGPT or Claude; `-` is standard input.")]


@command_of(
    REMEMBER, left_out=("messages", "touch", "classify", "count_turns"), own={"file": (File, inspect.Parameter.empty)}
)
def remember(call: Call) -> None:
    """Store the messages of conversations as turns; known ones are not stored again."""
    from api.contrib.conversations import conversations  # noqa: PLC0415 - slow to load

    source = call.stack.enter_context(_open(call.own["file"]))
    answers = [
        call.perform(
            messages=one.messages[place : place + MOST_MESSAGES], session=call.given.get("session", one.session)
        )
        for one in conversations(source)
        for place in range(0, len(one.messages), MOST_MESSAGES)
    ]
    turns = [turn for answer in answers for turn in answer["turns"]]
    if not turns:
        raise InvalidInputError(f"{call.own['file']} has no messages with words; each needs `role` and `content`.")
    errors = [turn for turn in turns if "error" in turn]
    if call.as_json:
        output.print_json({"conversations": answers})
    else:
        added, left_out = sum(one["added"] for one in answers), sum(len(one["left_out"]) for one in answers)
        known = len(turns) - added - len(errors)
        output.console().print(
            f"{len(turns)} turns: {added} added, {known} known, {len(errors)} with errors; {left_out} messages left out"
        )
        for turn in errors[:MOST_ERRORS]:
            output.console(stderr=True).print(f"message {turn['message']}: {turn['error']}", style="red", markup=False)
    if errors:
        raise typer.Exit(1)


def _checkpoint(file: str, home: Path | None, namespace: str) -> "Checkpoint | None":
    """Return the checkpoint of a file; reading standard input cannot be continued."""
    from api import archive_import  # noqa: PLC0415 - Celery is slow to load

    folder = configured(home).home.expanduser() / "imports"
    return None if file == "-" else archive_import.Checkpoint(folder, Path(file), namespace)


def _report(bad: "BadLine", errors: "list[BadLine]", most: int) -> None:
    """Print what is wrong with a line, and keep the first `most` errors."""
    if len(errors) < most:
        errors.append(bad)
    output.console(stderr=True).print(f"line {bad.line}: {bad.error}", style="red", markup=False)


def _print(counts: dict[str, int], errors: "list[BadLine]", *, as_json: bool) -> None:
    """Print the counts; exit with 1 if a line was rejected."""
    if as_json:
        output.print_json(counts | {"errors": [{"line": bad.line, "error": bad.error} for bad in errors]})
    else:
        output.console().print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))
    if counts["rejected"]:
        raise typer.Exit(1)


@contextlib.contextmanager
def _open(file: str) -> Iterator[Any]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{file} cannot be read: {error}. Give a JSONL file, or - for standard input."
        ) from None
    with source:
        yield source


@contextlib.contextmanager
def _new(file: Path) -> Iterator[TextIO]:
    """Open a file that gets its name when complete: a failed export keeps the previous one."""
    own = file.resolve()
    draft = own if own.exists() and not own.is_file() else own.with_name(f"{own.name}.part")
    try:
        target = draft.open("w", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} cannot be written: {error}. Give a file in a folder that is there.") from None
    try:
        with target:
            yield target
        if draft != own:
            draft.replace(own)
    except BaseException:
        if draft != own:
            draft.unlink(missing_ok=True)
        raise


def _plain(value: Any) -> str:
    shown = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return shown.replace("+00:00", "Z")
