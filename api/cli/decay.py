"""`ebb decay`, `prune`, `forecast`, `held`, `consolidate`, `janitor` and others: decay and hygiene."""

from typing import Annotated, Any

import typer
from ebb.contract.decay import BACKFILL, CONSOLIDATE, DECAY, HELD, JANITOR, JANITOR_SNAPSHOT, KEEP, LET_GO, PRUNE
from ebb.contract.reports import CONTRADICTIONS, FORECAST, RESOLVE

from api.cli import output
from api.cli.operations import Call, command, command_of, flag

ANY_INSTANT = {"now": "With --dry-run any instant, such as a year from now."}
COLUMNS = ("warm", "cold", "compressed", "fingerprinted", "stale", "forgotten", "held")

PART = {
    "hard": flag("--hard", help="Only forget what has expired."),
    "soft": flag("--soft", help="Only halve or remove what nears its expiry."),
}
DECIDING = {
    "ids": (Annotated[list[str] | None, typer.Argument(help="Held facts to decide about.")], None),
    "let_go": flag("--let-go", help="Forget them; `ebb restore` brings them back."),
    "keep": flag("--keep", help="Keep them, as if they had been stored now."),
    "everything": flag("--all", help="Decide about all that are held."),
}


@command_of(DECAY, also=("now",), words=ANY_INSTANT)
def decay(call: Call) -> None:
    """Apply decay to facts that are due: cool, compress and forget them, in one namespace or with --all in every one.

    Workers do this automatically. See `ebb branch` for what a year would do.
    """
    with output.spinner("facts are fading …"):
        done = call.perform()
        held = done["held"] or call.memory.stats()["held"]
    if call.as_json:
        output.print_json(done)
        return
    output.print_table(["", "pass"], [[name.replace("_", " "), value] for name, value in done.items()])
    if not done["processed"]:
        call.say_if_unknown()
    if held:
        where = None if call.given["everywhere"] else call.memory.namespace
        output.warn_held(held, where, dry_run=call.given["dry_run"] and bool(done["held"]))


def _pruned(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    hard, soft = given["hard"], given["soft"]
    return call.memory.perform(PRUNE, given | {"hard": hard or not soft, "soft": soft or not hard})


@command(
    PRUNE, _pruned, also=("now",), own=PART, words=ANY_INSTANT, work="expired facts are forgotten …",
    is_empty=lambda done: not any(done[name] for name in ("expired", "decayed", "deleted")),
)  # fmt: skip
def prune(done: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Forget expired facts, and weaken those near their expiry; workers do so every hour, in every namespace."""
    dry_run = asked["dry_run"]
    label = "dry run" if dry_run else "periodic prune"
    output.console().print(f"{label} - {done['expired']} expired, {done['decayed']} decayed")
    if done["deleted"]:
        faded = output.counted(done["deleted"], "fact")
        output.console().print(f"{faded} that had faded {'would be' if dry_run else 'are'} forgotten")
    if done["held"]:
        output.warn_held(done["held"], None if asked["everywhere"] else namespace, dry_run=dry_run)


@command(BACKFILL, work="facts are classified …", listed="examined")
def backfill_decay(done: dict[str, Any], asked: dict[str, Any], _namespace: str) -> None:
    """Give facts whose decay class was not chosen the one that their words have today; explicit classes stay.

    Lifetimes begin when a fact was last confirmed.
    """
    output.print_table(["from", "to", "facts"], [[one["from"], one["to"], one["facts"]] for one in done["changes"]])
    unchanged = ", nothing changed" if asked["dry_run"] else ""
    output.console().print(f"{output.counted(done['examined'], 'fact')} examined{unchanged}")
    if done["overdue"]:
        is_one = done["overdue"] == 1
        ended = f"{'is' if is_one else 'are'} over by that; the next pass forgets {'it' if is_one else 'them'}"
        kept = f"would be over by that and stay{'s' if is_one else ''}: see --prune"
        output.console().print(f"{done['overdue']} {ended if asked['prune'] else kept}")


ENDING = {"ending": "Instead of the days, list the facts that end within this many days, such as 7 or `7d`."}


@command(FORECAST, words=ENDING, is_empty=lambda found: not (found.get("totals") or {}).get("facts"))
def forecast(found: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Show what decay will do on each of the coming days if no fact is used until then.

    With --set, also show what it would do with other settings; nothing is changed.
    """
    if found.get("ending") is not None:
        if not found["ending"]:
            output.console().print("Nothing ends until then.")
            return
        rows = [[one["ends_at"][:16], f"{one['value']:.2f}", one["id"], one["text"]] for one in found["ending"]]
        output.print_table(["ends", "value", "id", "text"], rows)
        return
    _print_days(found["days"])
    for day in found["days"]:
        for fact in day["facts"]:
            line = f"{day['at'][:10]}  {fact['change']:<13}  {fact['id']}  {fact['text']}"
            output.console().print(line, markup=False)
    _print_totals(found.get("unchanged"), found.get("totals"))


def _print_days(days: list[dict[str, Any]]) -> None:
    """Print the days on which something changes, and the number of the others."""
    rows = [[day["at"][:10], *(day[name] or None for name in COLUMNS)] for day in days]
    busy = [row for row in rows if any(row[1:])]
    if busy:
        output.print_table(["day", *COLUMNS], busy)
    if idle := len(rows) - len(busy):
        output.console().print(f"Nothing changes on {'the other ' if busy else ''}{output.counted(idle, 'day')}.")


def _print_totals(unchanged: dict[str, Any] | None, totals: dict[str, Any] | None) -> None:
    """Print the totals; with other settings, below those of the settings as they are."""
    named = {"now": unchanged, "with --set" if unchanged else "": totals}
    columns = ["facts", "forgotten", "held", "recalled_lately", "bytes_freed"]
    rows = [[name, *(one[column] for column in columns)] for name, one in named.items() if one]
    output.print_table(["", *(column.replace("_", " ") for column in columns)], rows)


@command_of(HELD, own=DECIDING)
def held(call: Call) -> None:
    """Show facts that have ended but are held back by the forget limit, or let them go, or keep them."""
    decision = _decision(**call.own)
    answer = _decide(call, decision, call.own["ids"]) if decision else call.perform()
    if call.as_json:
        output.print_json(answer)
    elif decision:
        done = "let go" if decision is LET_GO else "kept"
        decided = output.counted(answer["decided"], "fact")
        output.console().print(f"[green]{done}[/green] {decided}; still held: {answer['left']}")
    else:
        _show_held(answer, call.memory.namespace)
        if not answer["held"]:
            call.say_if_unknown()


def _decision(*, ids: list[str] | None, let_go: bool, keep: bool, everything: bool) -> Any:
    """Return the operation that the options ask for; None: facts are only shown."""
    if let_go and keep:
        raise typer.BadParameter("give either --let-go or --keep")
    if (let_go or keep) == (not ids and not everything) or (ids and everything):
        raise typer.BadParameter("give --let-go or --keep together with either ids or --all")
    return LET_GO if let_go else KEEP if keep else None


def _decide(call: Call, operation: Any, ids: list[str] | None) -> dict[str, Any]:
    """Decide about held facts, with repeated calls until none is left."""
    if ids:
        return call.memory.perform(operation, {"ids": ids})
    with output.spinner("held facts are decided about …"):
        answer = call.memory.perform(operation, {"everything": True})
        decided = answer["decided"]
        while answer["left"] and answer["decided"]:
            answer = call.memory.perform(operation, {"everything": True})
            decided += answer["decided"]
    return answer | {"decided": decided}


def _show_held(answer: dict[str, Any], namespace: str) -> None:
    screen = output.console()
    if not answer["held"]:
        screen.print(f"Nothing is held in {namespace!r}.")
        return
    rows = [[one["ended_at"][:10], one["reason"], one["id"], one["text"][:80]] for one in answer["held"]]
    output.print_table(["over since", "reason", "id", "text"], rows)
    screen.print(f"{output.over(answer['total'])}. {output.decide(namespace)}")
    output.print_more(answer)


LABELS = {
    "lastRunAt": "last run", "lastRunTurn": "at turn", "totalRuns": "runs", "lastCulledFacts": "culled facts",
    "lastCulledEpisodes": "culled episodes", "lastMarkedStaleEpisodes": "episodes newly stale",
}  # fmt: skip
MERGING = {
    "apply": "Merge them; `ebb restore` takes it back.",
    "force": "With --apply: merge past EBB_FORGET_LIMIT.",
    "limit": "How many groups to show.",
}
NAMED = 20
"""Maximum number of namespaces that are named where a task was sent to each."""

SHOW = {"show": flag("--show", help="Only show the report of the last run.")}


def _merged(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    if "force" in given and "apply" not in given:
        raise typer.BadParameter("--force goes with --apply; without it nothing is merged")
    return call.memory.perform(CONSOLIDATE, given)


@command(CONSOLIDATE, _merged, words=MERGING, work="facts are compared …", listed="facts")
def consolidate(done: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Show near-duplicates about the same subject, and merge them only with --apply.

    Of each group one fact is kept: the pinned one, else that with the longest lifetime, most confirmations, or the
    oldest.
    """
    if asked["everywhere"]:
        _say_sent(done)
        return
    for group in done["groups"]:
        _show(group, merged=asked["apply"])
    _conclude(done, namespace)


def _show(group: dict[str, Any], *, merged: bool) -> None:
    screen, keep = output.console(), group["keep"]
    screen.print(f"keep          {keep['id']}  {keep['text']}", markup=False)
    for one in group["merge"]:
        action = "merged" if merged else "merge"
        screen.print(f"{action:<7} {one['similarity']:.3f} {one['id']}  {one['text']}", markup=False)
    screen.print()


def _conclude(done: dict[str, Any], namespace: str) -> None:
    screen, where = output.console(), output.of(namespace)
    if done["merged"] or (done["applied"] and done["facts"]):
        screen.print(f"{output.counted(done['merged'], 'fact')} merged; each is restored by: ebb restore{where} ID")
        if done["facts"]:
            screen.print(
                f"[bold red]Forget limit met:[/bold red] {done['facts']} more would be merged but are kept. "
                f"Look at them, then run `ebb consolidate{where} --apply --force`, or raise EBB_FORGET_LIMIT."
            )
    elif done["facts"]:
        facts, groups = output.counted(done["facts"], "fact"), output.counted(done["total"], "group")
        screen.print(f"{facts} in {groups} would be merged by: ebb consolidate{where} --apply")
    else:
        screen.print(f"No two facts in {namespace!r} say nearly the same.")


def _cleaned(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    show = given.pop("show")
    if show and given:
        raise typer.BadParameter("--show is about one namespace's last run; it goes with neither --now nor --all")
    return call.memory.perform(JANITOR_SNAPSHOT if show else JANITOR, given)


@command(
    JANITOR, _cleaned, also=("now",), own=SHOW, words={"now": "An earlier instant, such as an hour ago."},
    work="the janitor is at work …", is_empty=lambda done: "skipped" not in done and done.get("totalRuns") == 0,
)  # fmt: skip
def janitor(done: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Cull facts that are no longer believed and age out episodes, in one namespace; report since the previous run."""
    if asked["everywhere"]:
        _say_sent(done)
    elif "skipped" in done:
        output.console().print(f"{done['skipped']}; see: ebb settings{output.of(namespace)}")
    elif not done["totalRuns"]:
        output.console().print(f"The janitor has not run in {done['namespace']!r} yet.")
    else:
        output.print_table(["", done["namespace"]], [[label, done[name]] for name, label in LABELS.items()])


def _say_sent(done: dict[str, Any]) -> None:
    names = done["namespaces"][:NAMED]
    more = f" and {done['total'] - len(names):,} more" if done["total"] > len(names) else ""
    shown = ", ".join(names) or "nothing is due"
    output.console().print(f"sent to {output.counted(done['total'], 'namespace')}: {shown}{more}")


@command(CONTRADICTIONS, listed="contradictions")
def contradictions(found: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """Show facts that have different values for the same key of the same entity."""
    rows = [
        [
            *([pair["entity"], pair["key"]] if place == 0 else ["", ""]),
            fact["value"],
            fact["created_at"][:10],
            fact["id"],
        ]
        for pair in found["contradictions"]
        for place, fact in enumerate(pair["facts"])
    ]
    if rows:
        output.print_table(["entity", "key", "value", "stored", "id"], rows)
        resolve = f"ebb resolve{output.of(namespace)}"
        output.console().print(f"settle one: {resolve} OLD --keep NEW, or {resolve} ONE TWO --both", style="dim")
        output.print_more(found)
    else:
        output.console().print(f"Nothing in {namespace!r} contradicts anything else.")


def _resolved(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    if given.get("both", False) == ("keep" in given):
        raise typer.BadParameter("give either the id to --keep, or --both")
    return call.memory.perform(RESOLVE, given)


@command(
    RESOLVE, _resolved, arguments=("ids",),
    words={"ids": "The facts that are no longer true; with --both, the two that are."},
)  # fmt: skip
def resolve(answer: dict[str, Any], asked: dict[str, Any], _namespace: str) -> None:
    """Settle a contradiction: keep one fact, which supersedes the other, or accept both."""
    if asked["both"]:
        output.console().print(f"[green]accepted[/green] {' and '.join(answer['accepted'])}")
    else:
        output.console().print(f"[green]kept[/green] {answer['kept']}, superseded {', '.join(answer['superseded'])}")
