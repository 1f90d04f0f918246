"""`ebb forgotten` and `restore`: what was forgotten and can be brought back, and bringing it back."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client
from api.cli.retention import show_fates

LONGEST = 100
"""Characters of a text in the table."""

Since = Annotated[str | None, typer.Option(help="Forgotten at this instant or later, ISO 8601 with zone or a date.")]
Until = Annotated[str | None, typer.Option(help="Forgotten before this instant.")]
ForReason = Annotated[
    str | None, typer.Option(help="Forgotten for this reason: expired, faded, culled, aged, asked, merged, pruned …")
]
Run = Annotated[str | None, typer.Option(help="Forgotten by this run, as `ebb forgotten` shows it.")]


def forgotten(
    since: Since = None,
    until: Until = None,
    reason: ForReason = None,
    run: Run = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="To continue: the `next` of the page before.")] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """List what was forgotten and can still be restored, newest first, with its reason and the run that forgot it."""
    with client(home, namespace) as memory:
        page = memory.forgotten(limit, since=since, until=until, reason=reason, run=run, cursor=cursor)
    if as_json:
        output.print_json(page)
        return
    if not page["facts"]:
        output.console().print("Nothing that can be restored matches.")
        return
    columns = ["forgotten", "reason", "restorable until", "run", "id", "text"]
    output.print_table(columns, [_row(one) for one in page["facts"]])
    if page["next"]:
        output.console().print(f"There are more: --cursor {page['next']}", markup=False)


def restore(
    ids: Annotated[list[str] | None, typer.Argument(help="The facts' ids; else which ones, by the options.")] = None,
    since: Since = None,
    until: Until = None,
    reason: ForReason = None,
    run: Run = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many match.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Restore without asking.")] = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Bring facts back: by ids, also superseded ones, or what was forgotten in a time, for a reason or by a run.

    Without ids it counts the matching facts and asks; without a terminal it wants --yes. What was forgotten on request
    matches only with --reason asked or retracted. What ended by itself and is restored again is pinned. Interrupted, it
    continues when it is run again.
    """
    chosen: dict[str, Any] = {"since": since, "until": until, "reason": reason, "run": run}
    if bool(ids) == any(chosen.values()):
        raise typer.BadParameter("give either ids, or any of --since, --until, --reason and --run")
    with client(home, namespace) as memory:
        if ids:
            show_fates(memory.restore(ids), as_json=as_json)
            return
        answer = memory.restore(**chosen, dry_run=True)
        if not dry_run:
            output.confirm_restore(answer["matching"], yes=yes, as_json=as_json)
            with output.spinner("facts are restored …"):
                answer |= memory.restore(**chosen)
    _show(answer, as_json=as_json)


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print how many matched and what became of them; exit with 1 if any was refused."""
    if as_json:
        output.print_json(answer)
    elif "restored" not in answer:
        output.console().print(f"{answer['matching']} facts match")
    else:
        again = f", {answer['pinned']} of them for the second time and so pinned" if answer["pinned"] else ""
        output.console().print(f"[green]{answer['restored']} facts restored[/green]{again}")
        for one in answer["errors"]:
            output.console(stderr=True).print(one["error"], style="red", markup=False)
    if answer.get("refused"):
        raise typer.Exit(1)


def _row(one: dict[str, Any]) -> list[object]:
    text = one["text"] if len(one["text"]) <= LONGEST else f"{one['text'][: LONGEST - 1]}…"
    when, until = one["forgotten_at"][:16].replace("T", " "), one["restorable_until"][:10]
    return [when, one["reason"], until, one["run"], one["id"], text]


COMMANDS: dict[str, Callable[..., None]] = {"forgotten": forgotten, "restore": restore}
