"""`ebb store`, `edit`, `recall`, `reinforce` and `stats`: one memory at the prompt."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ebb.contract.facts import EDIT, STORE
from ebb.contract.recall import RECALL
from ebb.contract.reports import STATS
from ebb.contract.retention import REINFORCE

from api.cli import output
from api.cli.explanations import print_left_out, print_parts, print_why
from api.cli.operations import command

if TYPE_CHECKING:
    from api.client import Client

STATS_LABELS = {"expired_pending": "Expired (pending prune)"}


WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is committed.")]
SAID_BY_ARCHIVES = ("created_at", "last_seen_at", "strength", "coactivations", "decay_class_source", "count_turns")


@command(
    STORE,
    lambda memory, given: memory.store(**given),
    arguments=("text",),
    reads="text",
    left_out=(*SAID_BY_ARCHIVES, "summary", "metadata", "touch", "classify"),
    own={"wait": (WAIT, True)},
    words={
        "text": "What to remember; `-` reads it from standard input.",
        "tags": "Topics, with commas between; else by its words.",
    },
)
def store(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Remember a fact."""
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


Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; all given ones replace those it has.")]
Clear = Annotated[list[str] | None, typer.Option(help="A field to remove; decay_class: by its words again.")]


def _edited(memory: "Client", given: dict[str, Any]) -> dict[str, Any]:
    changes = given | dict.fromkeys(given.get("clear") or [])
    return memory.edit(**{name: value for name, value in changes.items() if name != "clear" and value != []})


@command(
    EDIT,
    _edited,
    arguments=("id",),
    own={"tags": (Tags, None), "clear": (Clear, None)},
    words={"decay_class": "How long it matters; its lifetime starts again."},
)
def edit(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Change what a fact says beside its text; its history keeps what it was before."""
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


@command(REINFORCE, arguments=("id",))
def reinforce(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Strengthen a fact and confirm it."""
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
