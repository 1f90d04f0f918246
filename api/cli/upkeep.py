"""`ebb import`, `export`, `decay`, `prune`, `purge`, `backfill-decay`, `reembed`, `reindex`: what is done to many."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from api.cli import output
from api.cli.reaching import NamespaceName, client, configured, located
from workers.errors import InvalidInputError

WAITS_FOR_WORKERS = 20.0


def import_(
    file: Annotated[str, typer.Argument(help="One JSON object a line, each with a `text`; `-` for standard input.")],
    product: Annotated[
        Literal["openmemory", "mem0"] | None,
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
    """Remember every fact of a JSONL file; run it again after a failure, and it goes on from there.

    What `ebb export` wrote becomes what it was: with its past, links and relations, and what was forgotten stays so.
    Facts without decay_class never expire, unless --classify is given, or `ebb backfill-decay` classifies them later.
    """
    from api import foreign, importing  # noqa: PLC0415 - Celery would slow down every other command

    errors: list[importing.BadLine] = []

    def on_bad(bad: importing.BadLine) -> None:
        if len(errors) < importing.ERRORS_KEPT:
            errors.append(bad)
        output.console(stderr=True).print(f"line {bad.line}: {bad.error}", style="red", markup=False)

    with client(home, namespace) as memory, _open(file) as source, output.bar("lines") as show:
        checkpoint = None
        facts = foreign.lines(source, product, datetime.now(UTC)) if product else source
        if file != "-" and not product:
            folder = configured(home).home.expanduser() / "imports"
            checkpoint = importing.Checkpoint(folder, Path(file), memory.namespace)
        total = importing.size_of(facts)
        done = importing.import_file(
            memory,
            facts,
            checkpoint,
            on_bad,
            lambda now: show(now.lines, now.offset, total),
            into=namespace,
            again=again,
            classify=classify,
        )
    counts = {
        "lines": done.lines, "added": done.added, "updated": done.updated, "duplicates": done.duplicates,
        "unchanged": done.unchanged, "retracted": done.retracted, "forgotten": done.forgotten,
        "kept": done.kept, "beside": done.beside, "rejected": done.rejected, "without_vector": done.without_vector,
    }  # fmt: skip
    if as_json:
        output.print_json(counts | {"errors": [{"line": bad.line, "error": bad.error} for bad in errors]})
    else:
        output.console().print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))
    if done.rejected:
        raise typer.Exit(1)


def export(
    file: Annotated[Path | None, typer.Argument(help="Where to; else standard output.")] = None,
    now: Annotated[str | None, typer.Option(help="The instant as of which to say how facts are.")] = None,
    all_namespaces: Annotated[bool, typer.Option("--all", help="Every namespace.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Facts alone, a line each.")] = False,
) -> None:
    """Write all there is, a fact a line, then what stands beside facts; `ebb import` makes it what it was."""
    from workers import intake  # noqa: PLC0415 - scikit-learn would slow down every other command
    from workers.context import Context, utc_now  # noqa: PLC0415
    from workers.telling.export import export as exporting  # noqa: PLC0415

    settings = located(home)
    name = None if all_namespaces else intake.namespace_name(namespace or settings.namespace)
    at = utc_now() if now is None else intake.instant(now, "--now")
    with contextlib.ExitStack() as stack:
        target = sys.stdout if file is None else stack.enter_context(file.open("w", encoding="utf-8"))
        for fact in exporting(Context(settings), name, at):
            if as_json and "text" not in fact:
                continue
            target.write(json.dumps(fact, ensure_ascii=False, default=_plain) + "\n")


def decay(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    now: Annotated[str | None, typer.Option(help="Any instant, such as a year from now.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Forget past EBB_FORGET_LIMIT, in every namespace.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Let all that is due cool, shrink and be forgotten, in every namespace."""
    from workers import intake  # noqa: PLC0415

    at = None if now is None else intake.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, _spinner("facts are fading …"):
        done = memory.decay(at, dry_run=dry_run, force=force)
        held = done["held"] or memory.stats()["held"]
    if as_json:
        output.print_json(done)
        return
    output.print_table(["", "pass"], [[name.replace("_", " "), value] for name, value in done.items()])
    if held:
        output.say_held(held)


def purge(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much would be erased.")] = False,
    now: Annotated[str | None, typer.Option(help="Any instant, such as a year from now.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Erase for good what was forgotten more than EBB_RETENTION_DAYS ago, in every namespace."""
    from workers import intake  # noqa: PLC0415

    at = None if now is None else intake.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, _spinner("what was forgotten long ago is erased …"):
        done = memory.purge(at, dry_run=dry_run)
        while done["left"] and not dry_run and (more := memory.purge(at))["purged"]:
            done = more | {"purged": done["purged"] + more["purged"]}
    if as_json:
        output.print_json(done)
    else:
        count, would = (done["left"], "would be ") if dry_run else (done["purged"], "")
        output.console().print(f"{count} facts {would}erased that were forgotten before {done['forgotten_before']}")


def prune(
    hard: Annotated[bool, typer.Option("--hard", help="Only forget what has expired.")] = False,
    soft: Annotated[bool, typer.Option("--soft", help="Only halve or remove what nears its expiry.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    now: Annotated[str | None, typer.Option(help="Any instant, such as a month from now.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Forget what has expired, and let fade what nears its expiry, in every namespace; workers do so every hour."""
    from workers import intake  # noqa: PLC0415

    at = None if now is None else intake.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, _spinner("expired facts are forgotten …"):
        done = memory.prune(at, hard=hard or not soft, soft=soft or not hard, dry_run=dry_run)
    if as_json:
        output.print_json(done)
        return
    label = "dry run" if dry_run else "periodic prune"
    output.console().print(f"{label} - {done['expired']} expired, {done['decayed']} decayed")
    if done["deleted"]:
        output.console().print(f"{done['deleted']} of those that decayed {'would be' if dry_run else 'are'} forgotten")
    if done["held"]:
        output.say_held(done["held"])


def backfill_decay(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Also classify, and so forget, what would be over by its new lifetime.")
    ] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Every namespace.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Give facts whose decay class nobody chose the one that their words have today; explicit classes stay.

    Lifetimes begin when a fact was last confirmed.
    """
    with client(home, namespace) as memory, _spinner("facts are classified …"):
        done = memory.backfill(everywhere=everywhere, dry_run=dry_run, prune=prune)
    if as_json:
        output.print_json(done)
        return
    output.print_table(["from", "to", "facts"], [[one["from"], one["to"], one["facts"]] for one in done["changes"]])
    output.console().print(f"{done['examined']} facts looked at{', nothing changed' if dry_run else ''}")
    if done["overdue"]:
        fate = (
            "are over by that; the next pass forgets them" if prune else "would be over by that and stay: see --prune"
        )
        output.console().print(f"{done['overdue']} {fate}")


def reembed(namespace: NamespaceName = None, home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Make all vectors anew with the configured embedder; until then facts are found by their words."""
    from workers.context import Context  # noqa: PLC0415
    from workers.remembering import embed  # noqa: PLC0415

    context = Context(located(home))
    total = embed.reset(context)
    with client(home, namespace) as memory, output.bar("facts") as show:
        memory.send("memory.embed_pending", {})
        waiting, changed = total, time.monotonic()
        while waiting and time.monotonic() - changed < WAITS_FOR_WORKERS:
            time.sleep(0.2)
            left = embed.waiting(context)
            waiting, changed = (left, time.monotonic()) if left != waiting else (waiting, changed)
            show(total - waiting, total - waiting, total)
    answer = {
        "facts": total,
        "embedded": total - waiting,
        "waiting": waiting,
        "embedder": context.embedder.name,
    }
    if as_json:
        output.print_json(answer)
    else:
        output.console().print(f"{total - waiting} of {total} facts embedded with {answer['embedder']}")
    if waiting and not as_json:
        output.console().print("The rest is embedded as soon as workers run with this embedder: restart them now.")


def reindex(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Make the text index of all namespaces anew in the language EBB_LANGUAGE; workers wait meanwhile."""
    from workers.context import Context, utc_now  # noqa: PLC0415
    from workers.language import reindex as reindexing  # noqa: PLC0415

    settings = located(home)
    with output.bar("namespaces") as show:
        facts = reindexing(Context(settings), utc_now(), lambda done, total: show(done, done, total))
    if as_json:
        output.print_json({"facts": facts, "language": settings.language})
    else:
        output.console().print(f"the words of {facts} facts are stemmed as {settings.language}")
        output.console().print(f"Workers go on; they start again only with EBB_LANGUAGE={settings.language}.")


@contextlib.contextmanager
def _open(file: str) -> Iterator[Any]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115 - closed below, apart from the errors of opening
    except OSError as error:
        raise InvalidInputError(
            f"{file} cannot be read: {error.strerror}. Give a JSONL file, or - for standard input."
        ) from None
    with source:
        yield source


def _spinner(text: str) -> Any:
    return output.console(stderr=True).status(text)


def _plain(value: Any) -> str:
    shown = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return shown.replace("+00:00", "Z")


COMMANDS: dict[str, Callable[..., None]] = {
    "import": import_, "export": export, "decay": decay, "prune": prune, "purge": purge,
    "backfill-decay": backfill_decay, "reembed": reembed, "reindex": reindex,
}  # fmt: skip
