"""Commands on facts: `ebb store`, `list`, `edit`, `used`, `forget`, `restore`, `timeline`, `stats` and others."""

from collections import Counter
from typing import Annotated, Any

import typer
from ebb.contract.facts import EDIT, EDITABLE, STORE
from ebb.contract.faults import show
from ebb.contract.reports import FACTS, STATS, TIMELINE
from ebb.contract.retention import FORGET, FORGOTTEN, HISTORY, PIN, REINFORCE, RESTORE, SUBJECT, USED

from api.cli import output
from api.cli.operations import Call, command, command_of, flag
from workers.core.lifetime import renewed_by

COLOURS = {"forgotten": "yellow", "purged": "yellow", "restored": "green", "unknown": "red"}
LONGEST = 100
"""Characters of a text in the table."""

Ids = Annotated[list[str] | None, typer.Argument(help="The facts' ids; else which ones, by the options.")]
SELECTION = ("since", "until", "reason", "run")
ASKED = "asked"
"""Reason of facts forgotten on request, which a restore by a run takes only if it is named."""
SAID_BY_ARCHIVES = ("created_at", "last_seen_at", "strength", "coactivations", "decay_class_source", "count_turns")
SALIENCE = Annotated[
    float | None, typer.Option(help="How strongly to remember it, 0 to 1; else estimated from what it says.")
]
WAIT = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is committed.")]
Clear = Annotated[list[str] | None, typer.Option(help="A field to remove; decay_class: by its words again.")]


@command(
    STORE,
    lambda call, given: call.memory.store(**given),
    arguments=("text",),
    reads="text",
    left_out=(*SAID_BY_ARCHIVES, "summary", "touch", "classify"),
    own={"salience": (SALIENCE, None), "wait": (WAIT, True)},
    words={
        "text": "What to remember; `-` reads it from standard input.",
        "tags": "Topics, with commas between; else by its words.",
    },
)
def store(answer: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """Store a fact."""
    action = answer.get("action", "accepted")
    if action == "forgotten":
        where = output.of(namespace)
        output.console().print(
            f"[yellow]not stored[/yellow]: it was forgotten on request as {answer['id']}; "
            f"`ebb restore{where}` brings that back unless it was purged, `ebb store{where} --again` stores it as new."
        )
        return
    note = "" if answer.get("embedded", True) else " [yellow](without vector yet: found by its words)[/yellow]"
    changed = f": {', '.join(answer['changed'])}" if answer.get("changed") else ""
    output.console().print(f"[green]{action}[/green] {answer['id']}{changed}{note}")
    _print_life(answer)
    for other in answer.get("contradicts", ()):
        settle = f"ebb resolve{output.of(namespace)} {other} --keep {answer['id']}"
        output.console().print(f"contradicts {other}; if that is outdated: {settle}", style="yellow")


def _print_life(answer: dict[str, Any]) -> None:
    """Print a fact's decay class and its reason, when it ends without use, and ignored fields."""
    if "ends_at" not in answer:
        return
    given = f"{answer['decay_class'] or 'no class'} ({answer['class_reason']})" if answer["class_reason"] else ""
    ignored = f"ignored: {', '.join(answer['ignored'])}" if answer.get("ignored") else ""
    said = filter(None, (output.escape_markup(given), _ending(answer), ignored))
    output.console().print(", ".join(said), style="dim")


def _ending(answer: dict[str, Any]) -> str:
    if answer.get("ended_at_once"):
        return "[yellow]it has ended already[/yellow]"
    if not answer["ends_at"]:
        return "never ends"
    unless = renewed_by(answer.get("decay_class"), answer["ends_for"])
    return f"ends {answer['ends_at']} ({answer['ends_for']}) unless {unless}"


@command(FACTS, listed="facts", left_out=("before", "offset", "ids"))
def list_(page: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """List facts without a query, newest first: all, or those that match the filters."""
    if not page["facts"]:
        output.console().print("No facts match.")
        return
    rows = [[one["id"], one["tier"], output.ending(one), output.short(one["text"], LONGEST)] for one in page["facts"]]
    output.print_table(["id", "tier", "ends", "text"], rows)
    output.print_more(page)


def _edited(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    cleared = [name.replace("-", "_") for name in given.get("clear") or []]
    if wrong := [name for name in cleared if name not in EDITABLE]:
        raise typer.BadParameter(
            f"{show(wrong[0])} is no field; give any of {', '.join(EDITABLE)}.", param_hint="--clear"
        )
    if both := [name for name in cleared if name in given]:
        raise typer.BadParameter(f"{both[0]!r} is also given a value; leave out one of them.", param_hint="--clear")
    changes = given | dict.fromkeys(cleared)
    return call.memory.edit(**{name: value for name, value in changes.items() if name != "clear"})


@command(
    EDIT,
    _edited,
    arguments=("id",),
    own={"clear": (Clear, None)},
    flags={"tags": "--tags --tag"},
    words={
        "tags": "Topics, with commas between; they replace those it has.",
        "decay_class": "How long it matters; its lifetime starts again.",
    },
)
def edit(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Change fields of a fact other than its text; its history keeps the old values."""
    changed = f": {', '.join(answer['changed'])}" if answer["changed"] else ""
    output.console().print(f"[green]{answer['action']}[/green] {answer['id']}{changed}")
    _print_life(answer)


@command(REINFORCE, arguments=("id",))
def reinforce(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Strengthen a fact and confirm it."""
    output.console().print(f"[green]reinforced[/green] {answer['id']}, salience now {answer['salience']:.3f}")


@command_of(FORGET, own={"ids": (Ids, None), "yes": flag("--yes", "-y", help="Forget or erase without asking.")})
def forget(call: Call) -> None:
    """Forget facts by ids, or all that match a subject; `ebb restore` restores them until they are purged.

    Without ids it shows the matching facts and asks; without a terminal it requires --yes. It then also forgets
    superseded and ended facts. The receipt names the run, and `ebb restore --run RUN --reason asked` restores the facts
    that were forgotten.
    """
    ids, subject = call.own["ids"], [name for name in SUBJECT if call.given.get(name)]
    if bool(ids) == bool(subject) or (ids and call.given["dry_run"]):
        options = ", ".join(f"--{name}" for name in SUBJECT)
        raise typer.BadParameter(f"give either ids, or any of {options}, to which --dry-run belongs")
    if not ids:
        _forget_subject(call)
        return
    call.given["ids"] = ids
    if call.given["purge"]:
        output.confirm(output.ERASE, len(set(call.given["ids"])), yes=call.own["yes"], as_json=call.as_json)
    show_outcomes(call.perform(), as_json=call.as_json)


def _forget_subject(call: Call) -> None:
    """Show the facts that match a subject, ask, forget them, and print the receipt."""
    found = call.perform(dry_run=True)
    if not call.as_json:
        output.print_table(["id", "text"], [[one["id"], one["text"]] for one in found["results"]])
        output.console().print(f"facts that fit: {found['matching']}{_kept(found, ', ', ' of them')}")
        if not found["matching"]:
            call.say_if_unknown()
    has_receipt = found["matching"] or (call.as_json and call.own["yes"])
    if call.given["dry_run"] or not has_receipt:
        if call.as_json:
            output.print_json(found)
        return
    what, done_with = (output.ERASE, "erased") if call.given["purge"] else (output.FORGET, "forgotten")
    going = found["matching"] - (found.get("kept") or 0)
    what, going = (what, going) if going else (output.LEAVE, found["matching"])
    output.confirm(what, going, yes=call.own["yes"], as_json=call.as_json)
    with output.spinner("facts are forgotten …"):
        done = [call.perform()]
        while done[-1].get("left"):
            done.append(call.perform())
    if call.as_json:
        output.print_json({"receipts": done} if len(done) > 1 else done[0])
    else:
        for one in done:
            said = f"{output.counted(one['done'], 'fact')} {done_with}"
            output.console().print(f"[yellow]{said}[/yellow] at {one['at']}, run {one['run']}{_kept(one, '; ')}")


def _kept(answer: dict[str, Any], before: str, of: str = "") -> str:
    """Return how many facts only leave a session."""
    kept = answer.get("kept") or 0
    said = "was also said elsewhere and stays" if kept == 1 else "were also said elsewhere and stay"
    return f"{before}{kept}{of} {said}" if kept else ""


@command(USED, arguments=("ids",), fails=lambda answer: bool(answer["unknown"]))
def used(answer: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Report which recalled facts were used: they are strengthened once more and confirmed."""
    for id_ in answer["used"]:
        output.console().print(f"[green]used[/green] {id_}")
    for id_ in answer["unknown"]:
        output.console().print(f"[red]unknown[/red] {id_}")


@command(HISTORY, arguments=("id",))
def history(found: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Show the events of a fact, oldest first."""
    screen = output.console()
    screen.print(found["text"], markup=False)
    pinned = f", pinned {_until(found['pinned_until'])}" if found["pinned"] else ""
    screen.print(f"[bold]{found['state']}[/bold]{pinned}{_ends(found)}\n")
    output.print_table(["at", "what", ""], [[one["at"], one["what"], _details(one)] for one in found["events"]])
    output.print_more(found)


def _ends(found: dict[str, Any]) -> str:
    """Return when and why a fact ends, or since when the forget limit alone keeps it."""
    at, reason = found.get("ends_at"), found.get("ends_for")
    if found.get("held"):  # absent in answers of older workers
        return f", ended {at} ({reason}) but stays visible because of the forget limit"
    return f", ends {at} ({reason})" if at else ""


@command(PIN, arguments=("id",))
def pin(done: dict[str, Any], _asked: dict[str, Any], _namespace: str) -> None:
    """Pin a fact: it neither fades nor ends, permanently or until an instant."""
    how_long = f", pinned {_until(done['until'])}" if done["pinned"] else ", not pinned"
    output.console().print(f"[green]{done['action']}[/green] {done['id']}{how_long}")


@command(FORGOTTEN, listed="facts")
def forgotten(page: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """List forgotten facts that can be restored, newest first, with the reason and the run that forgot them."""
    if not page["facts"]:
        output.console().print("Nothing that can be restored matches.")
        return
    output.print_table(["forgotten", "reason", "id", "text"], [_row(one) for one in page["facts"]])
    for (run, is_asked), facts in Counter((one["run"], one["reason"] == ASKED) for one in page["facts"]).items():
        if run and (facts > 1 or not is_asked):
            how = f"ebb restore{output.of(namespace)} --run {run}" + (f" --reason {ASKED}" if is_asked else "")
            output.console().print(f"{facts} of these by one run: {how}", style="dim")
    output.print_more(page)


@command_of(RESTORE, own={"ids": (Ids, None), "yes": flag("--yes", "-y", help="Restore without asking.")})
def restore(call: Call) -> None:
    """Restore facts: by ids, including superseded ones, or those forgotten in a time, for a reason or by a run.

    Without ids it counts the matching facts and asks; without a terminal it requires --yes. Facts forgotten on request
    match only with --reason asked. A fact that ended without request and is restored again is pinned.
    After an interruption, run it again to continue.
    """
    ids, selection = call.own["ids"], {name: call.given[name] for name in SELECTION if call.given.get(name)}
    if bool(ids) == bool(selection) or (ids and call.given["dry_run"]):
        raise typer.BadParameter(
            "give either ids, or any of --since, --until, --reason and --run, to which --dry-run belongs"
        )
    if ids:
        show_outcomes(call.memory.restore(ids), as_json=call.as_json)
        return
    answer = call.memory.restore(**selection, dry_run=True)
    matching = answer["matching"]
    if not call.given["dry_run"]:
        output.confirm(output.RESTORE, matching, yes=call.own["yes"], as_json=call.as_json)
        with output.spinner("facts are restored …"):
            answer = call.memory.restore(**selection)
    if call.as_json:
        output.print_json(answer)
    else:
        if not matching:
            call.say_if_unknown()
        _show_restored(answer)
        if not matching and "reason" not in selection:
            output.console().print("Facts that were forgotten on request match only with --reason asked.")
    if answer.get("refused"):
        raise typer.Exit(1)


def show_outcomes(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print the outcome for each fact; exit with 1 if one was not found or refused."""
    if as_json:
        output.print_json(answer)
    else:
        for one in answer["results"]:
            _show_outcome(one)
    if any("error" in one or one["action"] == "unknown" for one in answer["results"]):
        raise typer.Exit(1)


def _show_outcome(one: dict[str, Any]) -> None:
    if "error" in one:
        output.console(stderr=True).print(one["error"], style="red", markup=False)
        return
    colour = COLOURS.get(one["action"], "dim")
    known = one["action"] == "unchanged" and "reason" in one
    since = f", forgotten {one['forgotten_at']}: {one['reason']}" if known else ""
    pinned = ", pinned: it had ended by itself before, and does not again" if one.get("pinned") else ""
    output.console().print(f"[{colour}]{one['action']}[/{colour}] {one['id']}{since}{pinned}")


def _show_restored(answer: dict[str, Any]) -> None:
    """Print the number of matching facts or the outcome."""
    if "restored" not in answer:
        output.console().print(f"{output.counted(answer['matching'], 'fact')} found")
    else:
        again = f", {answer['pinned']} of them for the second time and so pinned" if answer["pinned"] else ""
        output.console().print(f"[green]{output.counted(answer['restored'], 'fact')} restored[/green]{again}")
        for one in answer["errors"]:
            output.console(stderr=True).print(one["error"], style="red", markup=False)


def _row(one: dict[str, Any]) -> list[object]:
    when, until = one["forgotten_at"][:16].replace("T", " "), one["restorable_until"]
    reason = f"{one['reason']}, erased on {until[:10]}" if until else one["reason"]
    return [when, reason, one["id"], output.short(one["text"], LONGEST)]


def _details(event: dict[str, Any]) -> str:
    return ", ".join(
        "for good" if value is None else f"{name} {_detail(value)}" for name, value in event["details"].items()
    )


def _detail(value: Any) -> str:
    """Return a value in words: of an object its parts, of a list its entries."""
    match value:
        case None:
            return "none"
        case dict():
            return f"({', '.join(f'{name} {_detail(one)}' for name, one in value.items())})"
        case list():
            return " and ".join(map(_detail, value)) or "none"
    return str(value)


def _until(instant: str | None) -> str:
    return "for good" if instant is None else f"until {instant}"


STATS_LABELS = {"expired_pending": "Expired (pending prune)"}


@command(TIMELINE, listed="statements", arguments=("entity", "key"))
def timeline(found: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Show what a property of an entity was, from when to when, and who said so, the earliest first."""
    if not found["statements"]:
        about = output.escape_markup(f"{asked['key']!r} of {asked['entity']!r}")
        output.console().print(f"Nothing in {namespace!r} says anything of {about}.")
        return
    headings = ["from", "until", "value", "said by", "on", "state", "text"]
    output.print_table(headings, [_stated(one) for one in found["statements"]])
    output.print_more(found)


def _stated(one: dict[str, Any]) -> list[Any]:
    turn = "" if one["turn"] is None else f" turn {one['turn']}"
    said_by = [one["role"], one["source"], None if one["session"] is None else f"session {one['session']}{turn}"]
    days = [one[name] and one[name][:10] for name in ("valid_from", "valid_until", "said_at")]
    return [*days[:2], one["value"], ", ".join(filter(None, said_by)), days[2], one["state"], one["text"]]


@command(STATS, listed="facts")
def stats(found: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """Show what a namespace holds, and how far it has faded."""
    rows = [
        [STATS_LABELS.get(name, name.replace("_", " ")), _counts(value) if isinstance(value, dict) else value]
        for name, value in found.items()
    ]
    output.print_table(["", namespace], rows)
    if found["held"]:
        output.warn_held(found["held"], namespace)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
