"""How commands explain a recall to a person: each score taken apart, and what was left out by which rule."""

from collections.abc import Sequence
from typing import Any

from api.cli import output

LEFT_OUT_SHOWN = 10
SHORT = 48
EXPLAINED = {
    "text": "words", "similarity": "meaning", "contiguity": "nearby", "prior": "alive", "text_rank": "by words",
    "similarity_rank": "by meaning", "rank_without_decay": "undecayed",
}  # fmt: skip
"""The parts of a score and the ranks by some of them, with their headings."""


def print_parts(facts: Sequence[dict[str, Any]]) -> None:
    """Print what the scores of facts are made of, in their order."""
    output.console().print("\n[bold]why, in the same order[/bold]")
    rows = [[one["explain"][name] for name in EXPLAINED] for one in facts]
    output.print_table(list(EXPLAINED.values()), rows)


def print_left_out(left_out: Sequence[dict[str, Any]]) -> None:
    """Print which facts were left out, each with the rule that did it."""
    output.console().print("\n[bold]left out[/bold]")
    shown, more = left_out[:LEFT_OUT_SHOWN], left_out[LEFT_OUT_SHOWN:]
    output.print_table(["rule", "score", "text"], [[one["rule"], one["score"], _short(one["text"])] for one in shown])
    if more:
        output.console().print(f"[dim]and {len(more)} more, all with --json[/dim]")


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"
