"""`ebb store`, `recall`, `reinforce`, `import`, `export`, `decay`, `stats` and `reembed`: one memory at the prompt."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import output
from workers.errors import InvalidInputError

if TYPE_CHECKING:
    from api.client import Client
    from workers.settings import Settings

NamespaceName = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Whose memory; else EBB_NAMESPACE, else `default`.")
]
WAITS_FOR_WORKERS = 20.0
LEFT_OUT_SHOWN = 10
SHORT = 48
EXPLAINED = {
    "text": "words", "similarity": "meaning", "contiguity": "nearby", "prior": "alive", "text_rank": "by words",
    "similarity_rank": "by meaning", "rank_without_decay": "undecayed",
}  # fmt: skip
"""The parts of a score and the ranks by some of them, with their headings."""


def store(
    text: Annotated[str, typer.Argument(help="What to remember; `-` reads it from standard input.")],
    category: Annotated[str | None, typer.Option(help="Such as preference or decision.")] = None,
    entity: Annotated[str | None, typer.Option(help="Whom or what it is about.")] = None,
    key: Annotated[str | None, typer.Option(help="Which of the entity's properties.")] = None,
    value: Annotated[str | None, typer.Option(help="That property's value.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    tags: Annotated[str | None, typer.Option(help="Topics, with commas between.")] = None,
    importance: Annotated[float, typer.Option(help="0 to 1.")] = 0.5,
    salience: Annotated[float, typer.Option(help="How strongly to remember it, 0 to 1.")] = 0.5,
    confidence: Annotated[float, typer.Option(help="How sure it is, 0 to 1.")] = 1.0,
    decay_class: Annotated[str | None, typer.Option(help="Its lifetime, such as permanent or session.")] = None,
    kind: Annotated[str, typer.Option(help="semantic, episodic or chunk.")] = "semantic",
    session: Annotated[str | None, typer.Option(help="The conversation it is from.")] = None,
    turn: Annotated[int | None, typer.Option(help="Its place in the conversation.")] = None,
    source_date: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with zone.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="A UUID of your own.")] = None,  # noqa: A002
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is committed.")] = True,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Remember a fact."""
    given = {
        "category": category, "entity": entity, "key": key, "value": value, "source": source, "tags": tags,
        "importance": importance, "salience": salience, "confidence": confidence, "decay_class": decay_class,
        "kind": kind, "session": session, "turn": turn, "source_date": source_date, "id": id,
    }  # fmt: skip
    fact: dict[str, Any] = {name: given_value for name, given_value in given.items() if given_value is not None}
    with _client(home, namespace) as client:
        answer = client.store(sys.stdin.read() if text == "-" else text, wait=wait, **fact)
    if as_json:
        output.print_json(answer)
    else:
        action = answer.get("action", "accepted")
        note = "" if answer.get("embedded", True) else " [yellow](without vector yet: found by its words)[/yellow]"
        output.console().print(f"[green]{action}[/green] {answer['id']}{note}")


def recall(
    query: Annotated[str, typer.Argument(help="A question, in your own words.")],
    limit: Annotated[int, typer.Option(help="How many facts at most.")] = 10,
    tag: Annotated[str | None, typer.Option(help="Only facts with this tag.")] = None,
    category: Annotated[str | None, typer.Option(help="Only facts of this category.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only facts of this kind.")] = None,
    as_of: Annotated[str | None, typer.Option(help="What was true at that instant or date.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Take scores apart; say what was left out.")] = False,
    touch: Annotated[bool, typer.Option("--touch/--no-touch", help="Whether recalling strengthens.")] = True,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Recall the facts that fit a question."""
    options = {
        "limit": limit, "tag": tag, "category": category, "kind": kind, "as_of": as_of, "explain": explain,
        "touch": touch,
    }  # fmt: skip
    with _client(home, namespace) as client:
        answer = client.recall(query, **options)
    if as_json:
        output.print_json(answer)
        return
    if not answer["results"]:
        output.console().print(f"Nothing in {client.namespace!r} fits. Store facts with `ebb store` or `ebb import`.")
    rows = [[f"{one['score']:.3f}", one["tier"], one["fidelity"], one["text"]] for one in answer["results"]]
    output.print_table(["score", "tier", "fidelity", "text"], rows)
    if explain:
        _print_explanation(answer)


def _print_explanation(answer: dict[str, Any]) -> None:
    screen = output.console()
    screen.print("\n[bold]why, in the same order[/bold]")
    rows = [[one["explain"][name] for name in EXPLAINED] for one in answer["results"]]
    output.print_table(list(EXPLAINED.values()), rows)
    screen.print("\n[bold]left out[/bold]")
    shown, more = answer["left_out"][:LEFT_OUT_SHOWN], answer["left_out"][LEFT_OUT_SHOWN:]
    output.print_table(["rule", "score", "text"], [[one["rule"], one["score"], _short(one["text"])] for one in shown])
    if more:
        screen.print(f"[dim]and {len(more)} more, all with --json[/dim]")


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def reinforce(
    id: Annotated[str, typer.Argument(help="The fact's id.")],  # noqa: A002 - the contract's name
    boost: Annotated[float, typer.Option(help="How much stronger, above 0 and up to 1.")] = 0.2,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Strengthen a fact and confirm it."""
    with _client(home, namespace) as client:
        answer = client.reinforce(id, boost)
    if as_json:
        output.print_json(answer)
    else:
        output.console().print(f"[green]reinforced[/green] {answer['id']}, salience now {answer['salience']:.3f}")


def import_(
    file: Annotated[str, typer.Argument(help="One JSON object a line, each with a `text`; `-` for standard input.")],
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Remember every fact of a JSONL file; run it again after a failure, and it goes on from there."""
    from api import importing  # noqa: PLC0415 - Celery would slow down every other command

    errors: list[importing.BadLine] = []

    def on_bad(bad: importing.BadLine) -> None:
        if len(errors) < importing.ERRORS_KEPT:
            errors.append(bad)
        output.console(stderr=True).print(f"line {bad.line}: {bad.error}", style="red", markup=False)

    settings = _settings(home)
    with _client(home, namespace) as client, _open(file) as source, _progress("lines") as show:
        checkpoint = None
        if file != "-":
            folder = settings.home.expanduser() / "imports"
            checkpoint = importing.Checkpoint(folder, Path(file), client.namespace)
        total = importing.size_of(source)
        done = importing.import_file(
            client, source, checkpoint, on_bad, lambda now: show(now.lines, now.offset, total), into=namespace
        )
    counts = {
        "lines": done.lines, "added": done.added, "duplicates": done.duplicates, "unchanged": done.unchanged,
        "rejected": done.rejected, "without_vector": done.without_vector,
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
    as_json: output.Json = False,  # noqa: ARG001 - a fact a line is JSON in any case
) -> None:
    """Write every fact, one JSON object a line, forgotten ones included."""
    from workers import intake  # noqa: PLC0415 - scikit-learn would slow down every other command
    from workers.context import Context, utc_now  # noqa: PLC0415
    from workers.export import export as exporting  # noqa: PLC0415

    settings = _located(home)
    name = None if all_namespaces else intake.namespace_name(namespace or settings.namespace)
    at = utc_now() if now is None else intake.instant(now, "--now")
    with contextlib.ExitStack() as stack:
        target = sys.stdout if file is None else stack.enter_context(file.open("w", encoding="utf-8"))
        for fact in exporting(Context(settings), name, at):
            target.write(json.dumps(fact, ensure_ascii=False, default=_plain) + "\n")


def decay(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    now: Annotated[str | None, typer.Option(help="Any instant, such as a year from now.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Forget past EBB_FORGET_LIMIT.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Let all that is due cool, shrink and be forgotten, in every namespace."""
    from workers import intake  # noqa: PLC0415

    at = None if now is None else intake.instant(now, "--now").isoformat()
    with _client(home, namespace) as client, _spinner("facts are fading …"):
        done = client.decay(at, dry_run=dry_run, force=force)
    if as_json:
        output.print_json(done)
        return
    output.print_table(["", "pass"], [[name.replace("_", " "), value] for name, value in done.items()])
    if done["held"]:
        output.console().print(
            f"[bold red]Forget limit met:[/bold red] {done['held']} facts would be forgotten but are kept. "
            "Look at them, then run `ebb decay --force`, or raise EBB_FORGET_LIMIT."
        )


def stats(namespace: NamespaceName = None, home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Show what a namespace holds, and how far it has faded."""
    with _client(home, namespace) as client:
        found = client.stats()
    if as_json:
        output.print_json(found)
        return
    rows = [
        [name.replace("_", " "), _counts(value) if isinstance(value, dict) else value] for name, value in found.items()
    ]
    output.print_table(["", client.namespace], rows)


def reembed(namespace: NamespaceName = None, home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Make all vectors anew with the configured embedder; until then facts are found by their words."""
    from workers import embed  # noqa: PLC0415
    from workers.context import Context  # noqa: PLC0415

    context = Context(_located(home))
    total = embed.reset(context)
    with _client(home, namespace) as client, _progress("facts") as show:
        client.send("memory.embed_pending", {})
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


COMMANDS: dict[str, Callable[..., None]] = {
    "store": store, "recall": recall, "reinforce": reinforce, "import": import_, "export": export, "decay": decay,
    "stats": stats, "reembed": reembed,
}  # fmt: skip


def _settings(home: Path | None) -> "Settings":
    from workers.settings import Settings  # noqa: PLC0415

    settings = Settings.from_environment()
    return settings.model_copy(update={"home": home}) if home else settings


def _located(home: Path | None) -> "Settings":
    from api.system.home import locate  # noqa: PLC0415

    return locate(_settings(home))


@contextlib.contextmanager
def _client(home: Path | None, namespace: str | None) -> "Iterator[Client]":
    from api.client import Client  # noqa: PLC0415 - Celery takes a while to load
    from workers.intake import namespace_name  # noqa: PLC0415

    settings = _located(home)
    client = Client(settings.redis_url, namespace_name(namespace or settings.namespace))
    try:
        yield client
    finally:
        client.close()


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


@contextlib.contextmanager
def _progress(unit: str) -> Iterator[Any]:
    """Give a function that shows how much is done, as a bar on stderr where that is a terminal."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.fields[count]} " + unit),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output.console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, count=0)
        yield lambda count, done, total: bar.update(task, completed=done, total=total, count=count)


def _spinner(text: str) -> Any:
    return output.console(stderr=True).status(text)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _plain(value: Any) -> str:
    shown = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return shown.replace("+00:00", "Z")
