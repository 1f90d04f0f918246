"""`ebb decay`, `prune`, `backfill-decay`, `forecast` and `held`: how facts fade and end, and what is held back."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from ebb.contract.decay import BACKFILL, DECAY, HELD, KEEP, LET_GO, PRUNE
from ebb.contract.reports import FORECAST

from api.cli import output
from api.cli.operations import Call, command, command_of

ANY_INSTANT = {"now": "With --dry-run any instant, such as a year from now."}
COLUMNS = ("warm", "cold", "compressed", "fingerprinted", "stale", "forgotten", "held")

Hard = Annotated[bool, typer.Option("--hard", help="Only forget what has expired.")]
Soft = Annotated[bool, typer.Option("--soft", help="Only halve or remove what nears its expiry.")]
LetGo = Annotated[bool, typer.Option("--let-go", help="Forget them; `ebb restore` brings them back.")]
KeepThem = Annotated[bool, typer.Option("--keep", help="Keep them, as if they had been stored now.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Held facts to decide about.")]
AllHeld = Annotated[bool, typer.Option("--all", help="Decide about all that are held.")]
DECIDING = {"ids": (Ids, None), "let_go": (LetGo, False), "keep": (KeepThem, False), "everything": (AllHeld, False)}


@command_of(DECAY, also=("now",), words=ANY_INSTANT)
def decay(call: Call) -> None:
    """Let what is due cool, shrink and be forgotten, in one namespace or with --all in every one.

    Workers do so by themselves. See `ebb branch` for what a year would do.
    """
    with output.spinner("facts are fading …"):
        done = call.perform()
        held = done["held"] or call.memory.stats()["held"]
    if call.as_json:
        output.print_json(done)
        return
    output.print_table(["", "pass"], [[name.replace("_", " "), value] for name, value in done.items()])
    if held:
        output.say_held(held)


@command_of(PRUNE, also=("now",), own={"hard": (Hard, False), "soft": (Soft, False)}, words=ANY_INSTANT)
def prune(call: Call) -> None:
    """Forget what has expired, and let fade what nears its expiry; workers do so every hour, in every namespace."""
    hard, soft, dry_run = call.own["hard"], call.own["soft"], call.given["dry_run"]
    with output.spinner("expired facts are forgotten …"):
        done = call.perform(hard=hard or not soft, soft=soft or not hard)
    if call.as_json:
        output.print_json(done)
        return
    label = "dry run" if dry_run else "periodic prune"
    output.console().print(f"{label} - {done['expired']} expired, {done['decayed']} decayed")
    if done["deleted"]:
        output.console().print(f"{done['deleted']} of those that decayed {'would be' if dry_run else 'are'} forgotten")
    if done["held"]:
        output.say_held(done["held"])


@command_of(BACKFILL)
def backfill_decay(call: Call) -> None:
    """Give facts whose decay class was not chosen the one that their words have today; explicit classes stay.

    Lifetimes begin when a fact was last confirmed.
    """
    with output.spinner("facts are classified …"):
        done = call.perform()
    if call.as_json:
        output.print_json(done)
        return
    output.print_table(["from", "to", "facts"], [[one["from"], one["to"], one["facts"]] for one in done["changes"]])
    unchanged = ", nothing changed" if call.given["dry_run"] else ""
    output.console().print(f"{done['examined']} facts examined{unchanged}")
    if done["overdue"]:
        ended = "are over by that; the next pass forgets them"
        kept = "would be over by that and stay: see --prune"
        output.console().print(f"{done['overdue']} {ended if call.given['prune'] else kept}")


@command(FORECAST)
def forecast(found: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Show what passes will do on each of the coming days, if nothing is used until then."""
    output.print_table(
        ["day", *COLUMNS], [[day["at"][:10], *(day[name] or None for name in COLUMNS)] for day in found["days"]]
    )
    for day in found["days"]:
        for fact in day["facts"]:
            line = f"{day['at'][:10]}  {fact['change']:<13}  {fact['id']}  {fact['text']}"
            output.console().print(line, markup=False)


@command_of(HELD, left_out=("cursor",), own=DECIDING)
def held(call: Call) -> None:
    """Show facts that are over but held back by the forget limit, or let them go, or keep them."""
    ids, let_go, keep, everything = (call.own[name] for name in ("ids", "let_go", "keep", "everything"))
    if let_go and keep:
        raise typer.BadParameter("give either --let-go or --keep")
    if (let_go or keep) == (not ids and not everything) or (ids and everything):
        raise typer.BadParameter("give --let-go or --keep together with either ids or --all")
    answer = _decide(call, LET_GO if let_go else KEEP, ids) if let_go or keep else call.perform()
    if call.as_json:
        output.print_json(answer)
    elif let_go or keep:
        done = "let go" if let_go else "kept"
        output.console().print(f"[green]{done}[/green] {answer['decided']} facts, {answer['left']} are still held")
    else:
        _show_held(answer, call.sender.namespace)


def _decide(call: Call, operation: Any, ids: list[str] | None) -> dict[str, Any]:
    """Decide about held facts, call by call until none of them is left."""
    if ids:
        return call.sender.perform(operation, {"ids": ids})
    answer = call.sender.perform(operation, {"everything": True})
    decided = answer["decided"]
    while answer["left"] and answer["decided"]:
        answer = call.sender.perform(operation, {"everything": True})
        decided += answer["decided"]
    return answer | {"decided": decided}


def _show_held(answer: dict[str, Any], namespace: str) -> None:
    screen = output.console()
    if not answer["held"]:
        screen.print(f"Nothing is held in {namespace!r}.")
        return
    rows = [[one["ended_at"][:10], one["reason"], one["id"], one["text"][:80]] for one in answer["held"]]
    output.print_table(["over since", "reason", "id", "text"], rows)
    screen.print(
        f"{answer['total']} facts are over but stay visible. Decide: ebb held --let-go ID… | --keep ID… | --all"
    )


COMMANDS: dict[str, Callable[..., None]] = {
    "decay": decay, "prune": prune, "backfill-decay": backfill_decay, "forecast": forecast, "held": held,
}  # fmt: skip
