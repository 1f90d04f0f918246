"""`ebb held`: facts that are over but stay visible, because too many would have ended; let them go or keep them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client

if TYPE_CHECKING:
    from api.client import Client
    from api.transport import Answer


def held(
    ids: Annotated[list[str] | None, typer.Argument(help="Held facts to decide about.")] = None,
    let_go: Annotated[bool, typer.Option("--let-go", help="Forget them; `ebb restore` brings them back.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep them, as if they had been stored now.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Decide about all that are held.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many to show at most.")] = 100,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Show facts that are over but held back by the forget limit, or let them go, or keep them."""
    if let_go and keep:
        raise typer.BadParameter("give either --let-go or --keep")
    if (let_go or keep) == (not ids and not everything) or (ids and everything):
        raise typer.BadParameter("give --let-go or --keep together with either ids or --all")
    with client(home, namespace) as memory:
        answer = _decide(memory, ids, let_go=let_go) if let_go or keep else memory.held(limit)
    if as_json:
        output.print_json(answer)
    elif let_go or keep:
        done = "let go" if let_go else "kept"
        output.console().print(f"[green]{done}[/green] {answer['decided']} facts, {answer['left']} are still held")
    else:
        _show(answer, memory.namespace)


def _decide(memory: "Client", ids: Sequence[str] | None, *, let_go: bool) -> "Answer":
    """Decide about held facts, call by call until none of them is left."""
    decide = memory.let_go if let_go else memory.keep
    if ids:
        return decide(ids)
    answer = decide(everything=True)
    decided = answer["decided"]
    while answer["left"] and answer["decided"]:
        answer = decide(everything=True)
        decided += answer["decided"]
    return answer | {"decided": decided}


def _show(answer: "Answer", namespace: str) -> None:
    screen = output.console()
    if not answer["held"]:
        screen.print(f"Nothing is held in {namespace!r}.")
        return
    rows = [[one["ended_at"][:10], one["reason"], one["id"], one["text"][:80]] for one in answer["held"]]
    output.print_table(["over since", "reason", "id", "text"], rows)
    screen.print(
        f"{answer['total']} facts are over but stay visible. Decide: ebb held --let-go ID… | --keep ID… | --all"
    )


COMMANDS: dict[str, Callable[..., None]] = {"held": held}
