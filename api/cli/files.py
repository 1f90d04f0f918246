"""`ebb import`, `export`, `remember` and `index`: files of facts, of conversations, and of Markdown."""

import contextlib
import fcntl
import inspect
import os
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TextIO

import typer
from ebb.contract import documents
from ebb.contract.facts import MOST_MESSAGES, REMEMBER

from api.cli import output
from api.cli.operations import (
    Call,
    Everywhere,
    NamespaceName,
    client,
    command,
    configured,
    located,
    on_database,
    refuse_both,
    say_if_unknown,
)
from workers.errors import EbbError, InvalidInputError

if TYPE_CHECKING:
    from api.archive_import import BadLine, Checkpoint
    from api.contrib.conversations import Conversation
    from workers.documents.folders import Folder, Indexer, Sync

MOST_ERRORS = 10
SHOWN_EVERY = 1_000
"""After how many facts an export shows their number."""

PLACES = ("offset", "begun", "last")
"""Fields of an import's progress that are no counts."""

SAID = {"kept": "kept as ended", "beside": "other records"}
SAID_OF_ONE = SAID | {"lines": "line", "duplicates": "duplicate", "beside": "other record"}
"""Counts of an import that have a name of their own in text."""

INTO = "Where all of it goes; else where each line is from, else EBB_NAMESPACE, else `default`."


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
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help=INTO)] = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Store every fact of a JSONL file; after a failure, run it again to continue.

    Lifetimes start now, however old a fact is; `source_date` and `created_at` keep its age. Only `last_seen_at` sets an
    earlier start. Lines of `ebb export` are restored as they were, with history, links and relations. Facts that were
    live then and have ended since live again; facts forgotten on request stay forgotten unless --again is given. Facts
    without decay_class never expire, unless --classify is given or `ebb backfill-decay` classifies them later.
    """
    from api import archive_import  # Celery is slow to load
    from api.contrib import foreign

    errors: list[BadLine] = []
    how: dict[str, Any] = {"into": namespace, "again": again, "classify": classify}
    with contextlib.ExitStack() as stack:
        memory, source = stack.enter_context(client(home, namespace)), stack.enter_context(_open(file))
        facts = stack.enter_context(foreign.lines(source, product, datetime.now(UTC))) if product else source
        show, total = stack.enter_context(output.bar("lines")), archive_import.size_of(facts)
        try:
            done = archive_import.import_file(
                memory,
                facts,
                None if product else _checkpoint(file, home, how | {"namespace": memory.namespace}),
                lambda bad: _report(bad, errors, archive_import.ERRORS_KEPT),
                lambda now: show(now.lines, now.offset, total),
                **how,
            )
        except KeyboardInterrupt:
            output.console(stderr=True).print(
                "Interrupted. What is stored stays; for the rest, run the same command again."
            )
            raise
    counts = {name: count for name, count in asdict(done).items() if name not in PLACES}
    _print(counts, errors, as_json=as_json)


def export(
    file: Annotated[Path | None, typer.Argument(help="Where to; else, or for `-`, standard output.")] = None,
    now: Annotated[str | None, typer.Option(help="The instant at which facts are described; else now.")] = None,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Facts alone, a line each; to FILE, also print how many.")
    ] = False,
) -> None:
    """Write all facts, one per line, and then links, relations and other records; `ebb import` restores them."""
    from api import archive_import  # these are slow to load
    from workers import validation
    from workers.admin.export import export as exporting

    refuse_both(everywhere, namespace)
    context = on_database(home)
    name = (
        None
        if everywhere
        else validation.namespace_name(context.settings.namespace if namespace is None else namespace)
    )
    at = context.now() if now is None else validation.instant(now, "--now")
    file = None if file == Path("-") else file
    with contextlib.ExitStack() as stack:
        target = output.standard_output() if file is None else stack.enter_context(_new(file))
        show = stack.enter_context(output.bar("facts")) if not target.isatty() else lambda *_: None
        facts = others = 0
        lines = exporting(context, name, at)
        for line in (fact for fact in lines if "text" in fact) if as_json else archive_import.with_frame(lines):
            target.write(output.json_line(line, _plain) + "\n")
            facts += "text" in line
            others += not ("text" in line or archive_import.is_frame(line))
            if facts % SHOWN_EVERY == 0:
                show(facts, facts, None)
        target.flush()
    if file is not None:
        output.progress(f"{output.counted(facts, 'fact')} and {output.counted(others, 'other record')} in {file}")
        if as_json:
            output.print_json({"file": str(file), "facts": facts})


File = Annotated[str, typer.Argument(help="JSON or JSONL, or an export of ChatGPT or Claude; `-` is standard input.")]


def _remembered(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    file = given.pop("file")
    source = call.stack.enter_context(_open(file))
    answers: list[dict[str, Any]] = []
    for number, one in enumerate(_conversations(file, source), start=1):
        try:
            answers.append(_stored(call, given, one))
        except InvalidInputError as error:
            raise InvalidInputError(f"conversation {number} of {file}: {error}") from None
    if not any(one["turns"] for one in answers):
        raise InvalidInputError(
            f"{file} has no message to store; each needs words in `content` and a `role`: user, assistant or tool."
        )
    return {"conversations": answers}


def _stored(call: Call, given: dict[str, Any], one: "Conversation") -> dict[str, Any]:
    """Store a conversation, as many messages at a time as a request may have; return the answer for all of them."""
    whole: dict[str, Any] = {"turns": [], "added": 0, "left_out": []}
    for place in range(0, len(one.messages), MOST_MESSAGES):
        messages = one.messages[place : place + MOST_MESSAGES]
        done = call.memory.perform(REMEMBER, {"session": one.session} | given | {"messages": messages})
        whole["turns"] += [turn | {"message": place + turn["message"]} for turn in done["turns"]]
        whole["added"] += done["added"]
        whole["left_out"] += [place + message for message in done["left_out"]]
    return whole


def _with_errors(answer: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Return the turns that were not stored, each with the number of its conversation."""
    numbered = enumerate(answer["conversations"], start=1)
    return [(number, turn) for number, one in numbered for turn in one["turns"] if "error" in turn]


@command(
    REMEMBER, _remembered, left_out=("messages", "touch", "classify", "count_turns"),
    own={"file": (File, inspect.Parameter.empty)}, fails=lambda answer: bool(_with_errors(answer)),
)  # fmt: skip
def remember(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Store the messages of conversations as turns; known ones are not stored again."""
    answers, errors = answer["conversations"], _with_errors(answer)
    turns, left_out = (sum(len(one[name]) for one in answers) for name in ("turns", "left_out"))
    added = sum(one["added"] for one in answers)
    output.console().print(
        f"{output.counted(turns, 'turn')}: {added} added, {turns - added - len(errors)} known, "
        f"{len(errors)} with errors; {output.counted(left_out, 'message')} with nothing to store"
    )
    for number, turn in errors[:MOST_ERRORS]:
        said = f"conversation {number}, message {turn['message']}: {turn['error']}"
        output.console(stderr=True).print(said, style="red", markup=False)


def _conversations(file: str, source: BinaryIO) -> "Iterator[Conversation]":
    """Yield the conversations of a file, which errors name."""
    from api.contrib.conversations import conversations  # slow to load

    try:
        yield from conversations(source)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error}") from None


def _checkpoint(file: str, home: Path | None, how: dict[str, Any]) -> "Checkpoint | None":
    """Return the checkpoint of a file; reading standard input or a pipe cannot be continued."""
    from api import archive_import  # Celery is slow to load
    from api.up.home import Home

    folder = Home(configured(home).home).folder / "imports"
    return archive_import.Checkpoint(folder, Path(file), how) if file != "-" and Path(file).is_file() else None


def _report(bad: "BadLine", errors: "list[BadLine]", most: int) -> None:
    """Print what is wrong with a line, and keep the first `most` errors."""
    if len(errors) < most:
        errors.append(bad)
    output.console(stderr=True).print(f"line {bad.line}: {bad.error}", style="red", markup=False)


def _print(counts: dict[str, int], errors: "list[BadLine]", *, as_json: bool) -> None:
    """Print the counts, in text without zeros; exit with 1 if a line was rejected."""
    if as_json:
        output.print_json(counts | {"errors": [{"line": bad.line, "error": bad.error} for bad in errors]})
    else:
        said = {name: count for name, count in counts.items() if count or name == "lines"}
        output.console().print(
            ", ".join(
                f"{count} {(SAID_OF_ONE if count == 1 else SAID).get(name, name.replace('_', ' '))}"
                for name, count in said.items()
            )
        )
    if counts["rejected"]:
        raise typer.Exit(1)


@contextlib.contextmanager
def _open(file: str) -> Iterator[Any]:
    if file == "-":
        yield output.standard_input().buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{file} cannot be read: {_reason(error)}. Give a JSONL file, or - for standard input."
        ) from None
    with source:
        yield source


def _reason(error: OSError | ValueError) -> str:
    """Return why a file cannot be opened, without its name."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


@contextlib.contextmanager
def _new(file: Path) -> Iterator[TextIO]:
    """Open a file that gets its name when complete: a failed export keeps the previous one."""
    own = Path(os.path.realpath(file))  # unlike `resolve`, at a loop of links, too
    try:
        draft = own if own.exists() and not own.is_file() else own.with_name(f"{own.name}.part")
        target = own.open("w", encoding="utf-8") if draft == own else _opened(draft)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{file} cannot be written: {_reason(error)}. Give a file in a folder where you may write."
        ) from None
    with target:
        if draft == own:
            yield target
            return
        _lock(target, draft, file)
        try:
            yield target
            target.flush()
            os.fsync(target.fileno())  # reports a disk that is full only now, as on NFS, and outlives a power failure
            draft.replace(own)  # before another export can lock it
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _opened(draft: Path) -> TextIO:
    """Make the draft of an export, or open one that an export of the same user left.

    In a shared folder another user may have put a link there, to have its target overwritten, or a file, to read it.

    Raises:
        InvalidInputError: something else has its name.
    """

    def made(path: str, flags: int) -> int:
        with contextlib.suppress(FileExistsError):
            return os.open(path, flags | os.O_EXCL, 0o666)
        try:
            found = os.open(path, flags & ~os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:  # the export that wrote it has ended
            return made(path, flags)
        except OSError:
            raise taken from None
        state = os.fstat(found)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_nlink > 1:
            os.close(found)
            raise taken
        return found

    taken = InvalidInputError(f"{draft} is no file that an export of yours left: remove it, or give another file.")
    return open(draft, "a", encoding="utf-8", opener=made)


def _lock(target: TextIO, draft: Path, file: Path) -> None:
    """Lock and empty the draft of an export, which a killed one may have left; refuse that of a running one."""
    is_own = False
    with contextlib.suppress(FileNotFoundError):
        is_own = _is_locked(target) and os.path.samestat(draft.stat(), os.fstat(target.fileno()))
    if not is_own:
        raise InvalidInputError(f"{file} is being written by another export: wait for its end, or give another file.")
    target.truncate(0)


def _is_locked(target: TextIO) -> bool:
    """Lock a file and return true, also where its file system has no locks; return false if another one locked it."""
    try:
        fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _plain(value: Any) -> str:
    shown = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return shown.replace("+00:00", "Z")


PATIENCE_SECONDS = 5.0
"""Delay before a retry."""


def index(
    directory: Annotated[
        str | None, typer.Argument(help="Its *.md files, at any depth, are indexed.", metavar="DIR")
    ] = None,
    name: Annotated[str | None, typer.Option("--as", help="What paths begin with; else the folder's own name.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and follow every change until Ctrl-C.")] = False,
    register: Annotated[bool, typer.Option("--register", help="Have workers keep it indexed from now on.")] = False,
    unregister: Annotated[bool, typer.Option("--unregister", help="Have them stop; what was indexed stays.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show the registered folders.")] = False,
    empty: Annotated[bool, typer.Option("--empty", help="Even if all of its files are gone.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Store Markdown files in chunks of up to 500 tokens, and keep memory in step with the files.

    Only changes are sent. Text that is removed from the files is erased from memory as well. Workers keep only folders
    indexed that are below those in EBB_FOLDERS.
    """
    if directory == "":  # as of a variable that is not set; as a path it would be the current folder
        raise typer.BadParameter("DIR is empty; give a folder, such as . for the current one.")
    folder = None if directory is None else Path(directory)
    chosen = sum((watch, register, unregister, listed))
    ignored = (listed and name is not None) or (empty and (listed or register or unregister))
    if chosen > 1 or (folder is None) != listed or ignored:
        raise typer.BadParameter(
            "give DIR with at most one of --watch, --register and --unregister, the last two without --empty; "
            "or --list alone."
        )
    if folder is None or register or unregister:
        _registered(folder, name, register=register, namespace=namespace, home=home, as_json=as_json)
        return
    from workers.documents import folders  # slow to load

    with client(home, namespace) as memory:
        place = folders.folder(folder, name)
        indexer = folders.Indexer(memory, place, located(home).tokenizer)
        if watch:
            _watch(indexer, place, empty=empty, as_json=as_json)
            return
        done = _sync(indexer, empty=empty)
    _show_index(done, as_json=as_json)
    if done.failed:
        raise typer.Exit(1)


def _registered(
    folder: Path | None, name: str | None, *, register: bool, namespace: str | None, home: Path | None, as_json: bool
) -> None:
    """Register a folder, or stop that, or show those that are registered."""
    with client(home, namespace) as memory:
        if folder is None:
            answer = memory.perform(documents.FOLDERS, {})
        elif register:
            answer = memory.perform(documents.REGISTER_FOLDER, {"path": os.path.realpath(folder), "name": name})
        else:
            answer = memory.perform(documents.UNREGISTER_FOLDER, {"name": name or Path(os.path.realpath(folder)).name})
        if as_json:
            output.print_json(answer)
        elif folder is None:
            _print_folders(answer["folders"])
        elif register:
            output.console().print(f"registered {answer['path']} as {answer['name']}; workers read it", markup=False)
        else:
            output.console().print("no longer registered" if answer["removed"] else "was not registered")
        if not (as_json or register or answer.get("folders") or answer.get("removed")):
            say_if_unknown(memory)


def _print_folders(folders: list[dict[str, Any]]) -> None:
    if not folders:
        output.console().print("No folder is registered.")
    for one in folders:
        output.console().print(f"{one['name']:<16} {one['path']}, read {one['read_at'] or 'never'}", markup=False)
        if one["error"]:
            output.console(stderr=True).print(f"  {one['error']}", style="red", markup=False)


def _sync(indexer: "Indexer", *, empty: bool) -> "Sync":
    with output.bar("files") as show:
        return indexer.sync(lambda done, total: show(done, done, total), empty=empty)


def _watch(indexer: "Indexer", place: "Folder", *, empty: bool, as_json: bool) -> None:
    """Follow the files until Ctrl-C; failures are reported and retried."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    output.progress(f"watching {place.root}, Ctrl-C ends it")
    try:
        while True:
            try:
                _follow(indexer, place, empty=empty, as_json=as_json)
            except (EbbError, OSError) as error:
                output.console(stderr=True).print(f"{error} Trying again …", style="red", markup=False)
                time.sleep(PATIENCE_SECONDS)
    except KeyboardInterrupt:
        output.progress("stopped; what was indexed stays")


def _follow(indexer: "Indexer", place: "Folder", *, empty: bool, as_json: bool) -> None:
    from workers.documents.folders import changes

    # Watching starts before the first synchronisation, so that no change in between is missed.
    looked = False
    for changed in changes(place):
        if changed or not looked:
            done = _sync(indexer, empty=empty)
            if done.changed or not looked:
                _show_index(done, as_json=as_json)
            looked = True


def _show_index(done: "Sync", *, as_json: bool) -> None:
    answer: dict[str, Any] = {
        "files": {name: done.files[name] for name in ("indexed", "unchanged", "removed")},
        "chunks": {
            name: done.chunks[name] for name in ("added", "unchanged", "removed", "forgotten", "without_vector")
        },
        "skipped": done.skipped,
        "failed": done.failed,
    }
    if as_json:
        output.print_json(answer)
        return
    for name in ("files", "chunks"):
        counts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in answer[name].items())
        output.console().print(f"{name:<7} {counts}")
    errors = output.console(stderr=True)
    for one in done.skipped:
        errors.print(f"skipped {one['path']}: {one['error']}", style="yellow", markup=False)
    for one in done.failed:
        errors.print(f"failed  {one['path']}: {one['error']}", style="red", markup=False)
