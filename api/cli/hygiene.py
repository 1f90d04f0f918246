"""`ebb consolidate`, `janitor`, `contradictions` and `resolve`: near-duplicates, upkeep, and facts that differ."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from ebb.contract.decay import CONSOLIDATE, JANITOR, JANITOR_SNAPSHOT
from ebb.contract.reports import CONTRADICTIONS

from api.cli import output
from api.cli.connection import NamespaceName, client
from api.cli.operations import Call, command, command_of

LABELS = {
    "lastRunAt": "last run", "lastRunTurn": "at turn", "totalRuns": "runs", "lastCulledFacts": "culled facts",
    "lastCulledEpisodes": "culled episodes", "lastMarkedStaleEpisodes": "episodes newly stale",
}  # fmt: skip
MERGING = {
    "apply": "Merge them; `ebb restore` takes it back.",
    "force": "With --apply: merge past EBB_FORGET_LIMIT.",
    "limit": "How many groups to show.",
}

Show = Annotated[bool, typer.Option("--show", help="Only show the report of the last run.")]


@command_of(CONSOLIDATE, words=MERGING)
def consolidate(call: Call) -> None:
    """Show facts that say nearly the same of the same, and merge them only with --apply.

    Of each group the fact is kept that is pinned, or else has the longest lifetime, was confirmed most often, or is the
    oldest, in this order.
    """
    if call.given["force"] and not call.given["apply"]:
        raise typer.BadParameter("--force goes with --apply; without it nothing is merged")
    with output.spinner("facts are compared …"):
        done = call.perform()
    if call.as_json:
        output.print_json(done)
    elif call.given["everywhere"]:
        _say_sent(done)
    else:
        for group in done["groups"]:
            _show(group, merged=call.given["apply"])
        _conclude(done, call.sender.namespace)


def _show(group: dict[str, Any], *, merged: bool) -> None:
    screen, keep = output.console(), group["keep"]
    screen.print(f"keep          {keep['id']}  {keep['text']}", markup=False)
    for one in group["merge"]:
        action = "merged" if merged else "merge"
        screen.print(f"{action:<7} {one['similarity']:.3f} {one['id']}  {one['text']}", markup=False)
    screen.print()


def _conclude(done: dict[str, Any], namespace: str) -> None:
    screen = output.console()
    if done["merged"] or (done["applied"] and done["facts"]):
        screen.print(f"{done['merged']} facts merged; each is restored by: ebb restore ID")
        if done["facts"]:
            screen.print(
                f"[bold red]Forget limit met:[/bold red] {done['facts']} more would be merged but are kept. "
                "Look at them, then run `ebb consolidate --apply --force`, or raise EBB_FORGET_LIMIT."
            )
    elif done["facts"]:
        screen.print(f"{done['facts']} facts in {done['total']} groups would be merged by: ebb consolidate --apply")
    else:
        screen.print(f"No two facts in {namespace!r} say nearly the same.")


@command_of(
    JANITOR, also=("now",), own={"show": (Show, False)}, words={"now": "An earlier instant, such as an hour ago."}
)
def janitor(call: Call) -> None:
    """Cull what is no longer believed and let episodes age, in one namespace; say what was since the run before."""
    show, everywhere = call.own["show"], call.given["everywhere"]
    if show and ("now" in call.given or everywhere):
        raise typer.BadParameter("--show is about one namespace's last run; it goes with neither --now nor --all")
    with output.spinner("the janitor is at work …"):
        done = call.sender.perform(JANITOR_SNAPSHOT, {}) if show else call.perform()
    if call.as_json:
        output.print_json(done)
    elif everywhere:
        _say_sent(done)
    elif "skipped" in done:
        output.console().print(f"{done['skipped']}; see: ebb settings")
    elif not done["totalRuns"]:
        output.console().print(f"The janitor was never in {done['namespace']!r}.")
    else:
        output.print_table(["", done["namespace"]], [[label, done[name]] for name, label in LABELS.items()])


def _say_sent(done: dict[str, Any]) -> None:
    """Print which namespaces have something to do."""
    output.console().print(f"sent to {done['total']} namespaces: {', '.join(done['namespaces']) or 'nothing is due'}")


@command(CONTRADICTIONS, left_out=("cursor",))
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
        output.print_table(["entity", "key", "value", "since", "id"], rows)
        output.console().print("[dim]settle one: ebb resolve OLD --keep NEW, or ebb resolve ONE TWO --both[/dim]")
    else:
        output.console().print(f"Nothing in {namespace!r} contradicts anything else.")


def resolve(
    ids: Annotated[list[str], typer.Argument(help="The facts that shall hold no longer, or with --both the two.")],
    keep: Annotated[str | None, typer.Option(help="The fact that takes their place.")] = None,
    both: Annotated[bool, typer.Option("--both", help="Two facts hold, though they differ.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Settle a contradiction: keep one fact, which supersedes the other, or accept both."""
    if both == (keep is not None):
        raise typer.BadParameter("give either the id to --keep, or --both")
    with client(home, namespace) as memory:
        answer = memory.resolve(*ids, keep=keep, both=both)
    if as_json:
        output.print_json(answer)
    elif both:
        output.console().print(f"[green]accepted[/green] {' and '.join(answer['accepted'])}")
    else:
        output.console().print(f"[green]kept[/green] {answer['kept']}, superseded {', '.join(answer['superseded'])}")


COMMANDS: dict[str, Callable[..., None]] = {
    "consolidate": consolidate, "janitor": janitor, "contradictions": contradictions, "resolve": resolve,
}  # fmt: skip
