"""`ebb consolidate` and `janitor`: near-duplicates are told and merged, what is due of one memory is done at once."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import Everywhere, NamespaceName, client

LABELS = {
    "lastRunAt": "last run", "lastRunTurn": "at turn", "totalRuns": "runs", "lastCulledFacts": "culled facts",
    "lastCulledEpisodes": "culled episodes", "lastMarkedStaleEpisodes": "episodes newly stale",
}  # fmt: skip


def consolidate(
    apply: Annotated[bool, typer.Option("--apply", help="Merge them; `ebb restore` takes it back.")] = False,
    force: Annotated[bool, typer.Option("--force", help="With --apply: merge past EBB_FORGET_LIMIT.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many groups to show.")] = 100,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show facts that say nearly the same of the same, and merge them only with --apply.

    Of each group the fact is kept that is pinned, or else has the longest lifetime, was confirmed most often, or is the
    oldest, in this order.
    """
    if force and not apply:
        raise typer.BadParameter("--force goes with --apply; without it nothing is merged")
    with client(home, namespace) as memory, output.console(stderr=True).status("facts are compared …"):
        done = memory.consolidate(apply=apply, force=force, limit=limit, everywhere=everywhere)
    if as_json:
        output.print_json(done)
        return
    if everywhere:
        _say_sent(done)
        return
    for group in done["groups"]:
        _show(group, merged=apply)
    _conclude(done, memory.namespace)


def _show(group: dict[str, Any], *, merged: bool) -> None:
    screen, keep = output.console(), group["keep"]
    screen.print(f"keep          {keep['id']}  {keep['text']}", markup=False)
    for one in group["merge"]:
        screen.print(
            f"{'merged' if merged else 'merge':<7} {one['similarity']:.3f} {one['id']}  {one['text']}", markup=False
        )
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


def janitor(
    show: Annotated[bool, typer.Option("--show", help="Only show what the last run told.")] = False,
    now: Annotated[str | None, typer.Option(help="An earlier instant, such as an hour ago.")] = None,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Cull what nobody believes any more and let episodes age, in one namespace; say what was since the run before."""
    from workers import validation  # noqa: PLC0415 - numpy would slow down every other command

    if show and (now is not None or everywhere):
        raise typer.BadParameter("--show tells of one namespace's last run; it goes with neither --now nor --all")
    at = None if now is None else validation.instant(now, "--now").isoformat()
    with client(home, namespace) as memory, output.console(stderr=True).status("the janitor is at work …"):
        told = memory.janitor_snapshot() if show else memory.janitor(at, everywhere=everywhere)
    if as_json:
        output.print_json(told)
    elif everywhere:
        _say_sent(told)
    elif "skipped" in told:
        output.console().print(f"{told['skipped']}; see: ebb settings")
    elif not told["totalRuns"]:
        output.console().print(f"The janitor was never in {told['namespace']!r}.")
    else:
        output.print_table(["", told["namespace"]], [[label, told[name]] for name, label in LABELS.items()])


def _say_sent(done: dict[str, Any]) -> None:
    """Print which namespaces have something to do."""
    output.console().print(f"sent to {done['total']} namespaces: {', '.join(done['namespaces']) or 'nothing is due'}")


COMMANDS: dict[str, Callable[..., None]] = {"consolidate": consolidate, "janitor": janitor}
