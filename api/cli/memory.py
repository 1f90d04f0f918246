"""`ebb store`, `edit`, `recall`, `reinforce` and `stats`: one memory at the prompt."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from ebb.contract.recall import RECALL
from ebb.contract.reports import STATS

from api.cli import output
from api.cli.connection import NamespaceName, client
from api.cli.explanations import print_left_out, print_parts, print_why
from api.cli.operations import command

STATS_LABELS = {"expired_pending": "Expired (pending prune)"}


def store(
    text: Annotated[str, typer.Argument(help="What to remember; `-` reads it from standard input.")],
    category: Annotated[str | None, typer.Option(help="Such as preference or decision.")] = None,
    entity: Annotated[str | None, typer.Option(help="Whom or what it is about.")] = None,
    key: Annotated[str | None, typer.Option(help="Which of the entity's properties.")] = None,
    value: Annotated[str | None, typer.Option(help="That property's value.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    tags: Annotated[str | None, typer.Option(help="Topics, with commas between.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1; else 0.5.")] = None,
    salience: Annotated[float | None, typer.Option(help="How strongly to remember it, 0 to 1; else 0.5.")] = None,
    confidence: Annotated[float | None, typer.Option(help="How sure it is, 0 to 1; else 1.")] = None,
    decay_class: Annotated[
        str | None, typer.Option(help="Its lifetime, such as permanent or session; else by its words.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="semantic, episodic or chunk; else semantic.")] = None,
    durability: Annotated[str | None, typer.Option(help="Of an episode: persistent or permanent.")] = None,
    session: Annotated[str | None, typer.Option(help="The conversation it is from.")] = None,
    turn: Annotated[int | None, typer.Option(help="Its place in the conversation.")] = None,
    source_date: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with zone.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="A UUID of your own.")] = None,  # noqa: A002
    supersedes: Annotated[str | None, typer.Option(help="The id of the fact whose place it takes.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Even if it was forgotten on request.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is committed.")] = True,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Remember a fact."""
    given = {
        "category": category, "entity": entity, "key": key, "value": value, "source": source, "tags": tags,
        "importance": importance, "salience": salience, "confidence": confidence, "decay_class": decay_class,
        "kind": kind, "durability": durability, "session": session, "turn": turn, "source_date": source_date, "id": id,
        "supersedes": supersedes,
        "again": again or None,
    }  # fmt: skip
    fact: dict[str, Any] = {name: given_value for name, given_value in given.items() if given_value is not None}
    with client(home, namespace) as memory:
        answer = memory.store(sys.stdin.read() if text == "-" else text, wait=wait, **fact)
    if as_json:
        output.print_json(answer)
    else:
        action = answer.get("action", "accepted")
        if action == "forgotten":
            output.console().print(
                f"[yellow]not stored[/yellow]: it was forgotten on request as {answer['id']}; "
                "`ebb restore` brings that back unless it was purged, `ebb store --again` stores it as new."
            )
            return
        note = "" if answer.get("embedded", True) else " [yellow](without vector yet: found by its words)[/yellow]"
        changed = f": {', '.join(answer['changed'])}" if answer.get("changed") else ""
        output.console().print(f"[green]{action}[/green] {answer['id']}{changed}{note}")
        _print_life(answer)


def _print_life(answer: dict[str, Any]) -> None:
    """Print which class a fact has, why, when it ends if it is never used, and what of it was ignored."""
    if "ends_at" not in answer:
        return
    ends = f"ends {answer['ends_at']} ({answer['ends_for']}) unless used" if answer["ends_at"] else "never ends"
    given = f"{answer['decay_class'] or 'no class'} ({answer['class_reason']})" if answer["class_reason"] else ""
    ignored = f"ignored: {', '.join(answer['ignored'])}" if answer.get("ignored") else ""
    over = "[yellow]it has ended already[/yellow]" if answer.get("ended_at_once") else ends
    output.console().print(", ".join(part for part in (output.as_it_is(given), over, ignored) if part), style="dim")


def edit(
    id: Annotated[str, typer.Argument(help="The fact's id.")],  # noqa: A002 - the contract's name
    category: Annotated[str | None, typer.Option(help="Such as preference or decision.")] = None,
    entity: Annotated[str | None, typer.Option(help="Whom or what it is about.")] = None,
    key: Annotated[str | None, typer.Option(help="Which of the entity's properties.")] = None,
    value: Annotated[str | None, typer.Option(help="That property's value.")] = None,
    summary: Annotated[str | None, typer.Option(help="What is shown in place of a long text.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="A tag; all given ones replace those it has.")] = None,
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    confidence: Annotated[float | None, typer.Option(help="How sure it is, 0 to 1.")] = None,
    decay_class: Annotated[str | None, typer.Option(help="Its lifetime, which starts again.")] = None,
    metadata: Annotated[str | None, typer.Option(help="An object as JSON.")] = None,
    clear: Annotated[list[str] | None, typer.Option(help="A field to remove; decay_class: by its words again.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Change what a fact says beside its text; its history keeps what it was before."""
    given = {
        "category": category, "entity": entity, "key": key, "value": value, "summary": summary, "source": source,
        "tags": tags or None, "importance": importance, "confidence": confidence, "decay_class": decay_class,
        "metadata": metadata,
    }  # fmt: skip
    changes: Any = {name: one for name, one in given.items() if one is not None} | dict.fromkeys(clear or [])
    with client(home, namespace) as memory:
        answer = memory.edit(id, **changes)
    if as_json:
        output.print_json(answer)
        return
    changed = f": {', '.join(answer['changed'])}" if answer["changed"] else ""
    output.console().print(f"[green]{answer['action']}[/green] {answer['id']}{changed}")
    _print_life(answer)


@command(RECALL, arguments=("query",))
def recall(answer: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Recall the facts that fit a question."""
    if "why" in asked:
        print_why(answer["why"])
        return
    if answer["results"]:
        rows = [
            [f"{one['score']:.3f}", one["tier"], one["fidelity"], output.ending(one), _text(one)]
            for one in answer["results"]
        ]
        output.print_table(["score", "tier", "fidelity", "ends", "text"], rows)
    else:
        output.console().print(f"Nothing in {namespace!r} fits. Store facts with `ebb store` or `ebb import`.")
    if "tag" not in asked:
        output.say_words_alone(answer)
    if asked["explain"]:
        print_parts(answer["results"])
        print_left_out(answer["left_out"])


def _text(one: dict[str, Any]) -> str:
    """Return what a fact says, and of a document's part where it stands."""
    if one["kind"] != "chunk" or not one["path"]:
        return str(one["text"])
    return f"{one['path']}: {one['section']}\n{one['text']}" if one["section"] else f"{one['path']}\n{one['text']}"


def reinforce(
    id: Annotated[str, typer.Argument(help="The fact's id.")],  # noqa: A002 - the contract's name
    boost: Annotated[float, typer.Option(help="How much stronger, above 0 and up to 1.")] = 0.2,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Strengthen a fact and confirm it."""
    with client(home, namespace) as memory:
        answer = memory.reinforce(id, boost)
    if as_json:
        output.print_json(answer)
    else:
        output.console().print(f"[green]reinforced[/green] {answer['id']}, salience now {answer['salience']:.3f}")


@command(STATS)
def stats(found: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """Show what a namespace holds, and how far it has faded."""
    rows = [
        [STATS_LABELS.get(name, name.replace("_", " ")), _counts(value) if isinstance(value, dict) else value]
        for name, value in found.items()
    ]
    output.print_table(["", namespace], rows)
    if found["held"]:
        output.say_held(found["held"])


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


COMMANDS: dict[str, Callable[..., None]] = {
    "store": store,
    "edit": edit,
    "recall": recall,
    "reinforce": reinforce,
    "stats": stats,
}
