"""`ebb index`: index a folder's Markdown files, and keep the index in step with them."""

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ebb.contract import documents

from api.cli import output
from api.cli.operations import NamespaceName, client, located, sender
from workers.errors import EbbError

if TYPE_CHECKING:
    from workers.documents.folders import Folder, Indexer, Sync

PATIENCE_SECONDS = 5.0
"""Delay before a retry."""


def index(
    folder: Annotated[
        Path | None, typer.Argument(help="Its *.md files, at any depth, are indexed.", metavar="DIR")
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
    chosen = sum((watch, register, unregister, listed))
    if chosen > 1 or (folder is None) != listed:
        raise typer.BadParameter("give DIR with at most one of --watch, --register and --unregister; or --list alone.")
    if folder is None or register or unregister:
        _registered(folder, name, register=register, namespace=namespace, home=home, as_json=as_json)
        return
    from workers.documents import folders  # noqa: PLC0415 - slow to load

    with client(home, namespace) as memory:
        place = folders.folder(folder, name)
        indexer = folders.Indexer(memory, place, located(home).tokenizer)
        if watch:
            _watch(indexer, place, empty=empty, as_json=as_json)
            return
        done = _sync(indexer, empty=empty)
    _show(done, as_json=as_json)
    if done.failed:
        raise typer.Exit(1)


def _registered(
    folder: Path | None, name: str | None, *, register: bool, namespace: str | None, home: Path | None, as_json: bool
) -> None:
    """Register a folder, or stop that, or show those that are registered."""
    with sender(home, namespace) as memory:
        if folder is None:
            answer = memory.perform(documents.FOLDERS, {})
        elif register:
            answer = memory.perform(documents.REGISTER_FOLDER, {"path": str(folder.resolve()), "name": name})
        else:
            answer = memory.perform(documents.UNREGISTER_FOLDER, {"name": name or folder.resolve().name})
    if as_json:
        output.print_json(answer)
    elif folder is None:
        if not answer["folders"]:
            output.console().print("No folder is registered.")
        for one in answer["folders"]:
            output.console().print(f"{one['name']:<16} {one['path']}, read {one['read_at'] or 'never'}", markup=False)
            if one["error"]:
                output.console(stderr=True).print(f"  {one['error']}", style="red", markup=False)
    elif register:
        output.console().print(f"registered {answer['path']} as {answer['name']}; workers read it", markup=False)
    else:
        output.console().print("no longer registered" if answer["removed"] else "was not registered")


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
    from workers.documents.folders import changes  # noqa: PLC0415

    # Watching starts before the first synchronisation, so that no change in between is missed.
    looked = False
    for changed in changes(place):
        if changed or not looked:
            done = _sync(indexer, empty=empty)
            if done.changed or not looked:
                _show(done, as_json=as_json)
            looked = True


def _show(done: "Sync", *, as_json: bool) -> None:
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
