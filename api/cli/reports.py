"""`ebb timeline` and `stats`: a property over time, and statistics of a namespace."""

from collections.abc import Callable
from typing import Any

from ebb.contract.reports import STATS, TIMELINE

from api.cli import output
from api.cli.operations import command

STATS_LABELS = {"expired_pending": "Expired (pending prune)"}


@command(TIMELINE, arguments=("entity", "key"), left_out=("cursor",))
def timeline(found: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Show what a property of an entity was, from when to when, and who said so, the earliest first."""
    if not found["statements"]:
        about = output.escape_markup(f"{asked['key']!r} of {asked['entity']!r}")
        output.console().print(f"Nothing in {namespace!r} says anything of {about}.")
        return
    headings = ["from", "until", "value", "said by", "on", "state", "text"]
    output.print_table(headings, [_stated(one) for one in found["statements"]])
    if found["next"]:
        output.console().print("There are more: raise --limit.", style="dim")


def _stated(one: dict[str, Any]) -> list[Any]:
    turn = "" if one["turn"] is None else f" turn {one['turn']}"
    said_by = [one["role"], one["source"], None if one["session"] is None else f"session {one['session']}{turn}"]
    days = [one[name] and one[name][:10] for name in ("valid_from", "valid_until", "said_at")]
    return [*days[:2], one["value"], ", ".join(filter(None, said_by)), days[2], one["state"], one["text"]]


@command(STATS)
def stats(found: dict[str, Any], _asked: dict[str, Any], namespace: str) -> None:
    """Show what a namespace holds, and how far it has faded."""
    rows = [
        [STATS_LABELS.get(name, name.replace("_", " ")), _counts(value) if isinstance(value, dict) else value]
        for name, value in found.items()
    ]
    output.print_table(["", namespace], rows)
    if found["held"]:
        output.warn_held(found["held"])


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


COMMANDS: dict[str, Callable[..., None]] = {"timeline": timeline, "stats": stats}
