"""`ebb decay`, `prune`, `backfill-decay`, `reembed` and `reindex`: what is done to many facts at once."""

import time
from collections.abc import Callable
from typing import Annotated

import typer

from api.cli import output
from api.cli.connection import Everywhere, NamespaceName, client, located

WAITS_FOR_WORKERS = 20.0


def decay(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    now: Annotated[str | None, typer.Option(help="With --dry-run any instant, such as a year from now.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Forget past EBB_FORGET_LIMIT.")] = False,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Let what is due cool, shrink and be forgotten, in one namespace or with --all in every one.

    Workers do so by themselves. See `ebb branch` for what a year would do.
    """
    from workers import validation  # noqa: PLC0415

    at = None if now is None else validation.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, output.spinner("facts are fading …"):
        done = memory.decay(at, dry_run=dry_run, force=force, everywhere=everywhere)
        held = done["held"] or memory.stats()["held"]
    if as_json:
        output.print_json(done)
        return
    output.print_table(["", "pass"], [[name.replace("_", " "), value] for name, value in done.items()])
    if held:
        output.say_held(held)


def prune(
    hard: Annotated[bool, typer.Option("--hard", help="Only forget what has expired.")] = False,
    soft: Annotated[bool, typer.Option("--soft", help="Only halve or remove what nears its expiry.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    now: Annotated[str | None, typer.Option(help="With --dry-run any instant, such as a month from now.")] = None,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Forget what has expired, and let fade what nears its expiry; workers do so every hour, in every namespace."""
    from workers import validation  # noqa: PLC0415

    at = None if now is None else validation.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, output.spinner("expired facts are forgotten …"):
        done = memory.prune(at, hard=hard or not soft, soft=soft or not hard, dry_run=dry_run, everywhere=everywhere)
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
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Give facts whose decay class nobody chose the one that their words have today; explicit classes stay.

    Lifetimes begin when a fact was last confirmed.
    """
    with client(home, namespace) as memory, output.spinner("facts are classified …"):
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


def reembed(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Make all vectors of all namespaces again with the configured embedder; until then facts are found by their words.

    A database has one embedder, so this cannot be done for one namespace.
    """
    from workers.context import Context  # noqa: PLC0415
    from workers.memory import embed  # noqa: PLC0415

    context = Context(located(home))
    total = embed.reset(context)
    with client(home, None) as memory, output.bar("facts") as show:
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
    from workers.admin.search_indexes import reindex as reindexing  # noqa: PLC0415
    from workers.context import Context  # noqa: PLC0415

    settings = located(home)
    context = Context(settings)
    with output.bar("namespaces") as show:
        facts = reindexing(context, context.now(), lambda done, total: show(done, done, total))
    if as_json:
        output.print_json({"facts": facts, "language": settings.language})
    else:
        output.console().print(f"the words of {facts} facts are stemmed as {settings.language}")
        output.console().print(f"Workers go on; they start again only with EBB_LANGUAGE={settings.language}.")


COMMANDS: dict[str, Callable[..., None]] = {
    "decay": decay, "prune": prune, "backfill-decay": backfill_decay, "reembed": reembed, "reindex": reindex,
}  # fmt: skip
