"""How commands explain a recall to a person: each score taken apart, and what was left out by which rule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from api.cli import output

SHOWN_OF_A_RULE = 5
SHORT = 56
PARTS = {"relevance": "relevance", "contiguity": "nearby", "prior": "alive"}
"""What adds up to a score, with its heading."""

LEGEND = (
    "score = relevance + nearby + alive: how well words and meaning fit, half each; what was told just before and\n"
    "after; how strong, fresh, sure and important it is. undecayed: its rank if that last part counted nothing."
)


def print_parts(facts: Sequence[dict[str, Any]]) -> None:
    """Print what the scores of facts are made of, in their order."""
    if not facts:
        return
    scaled = any(one["explain"]["factor"] != 1 for one in facts)
    rows = [[number, *_parts(one, scaled=scaled)] for number, one in enumerate(facts, start=1)]
    output.console().print("\n[bold]why, in the same order[/bold]")
    headings = ["score", *PARTS.values(), *(["times"] if scaled else [])]
    output.print_table(["", *headings, "words", "meaning", "undecayed", "found by"], rows)
    output.console().print(LEGEND, style="dim")


def _parts(one: dict[str, Any], *, scaled: bool) -> Iterator[object]:
    why = one["explain"]
    yield f"{one['score']:.3f}"
    yield from (f"{why[name]:.3f}" for name in PARTS)
    if scaled:
        yield f"{why['factor']:.2f}"
    yield f"{why['text']:.2f} (#{why['text_rank']})" if why["text"] else None
    yield f"{why['similarity']:.3f} (#{why['similarity_rank']})"
    yield f"#{why['rank_without_decay']}"
    yield one["found_by"]


def print_left_out(left_out: Sequence[dict[str, Any]]) -> None:
    """Print which facts were left out, the first few of each rule that did it."""
    if not left_out:
        output.console().print("\nNothing was left out.")
        return
    counts = Counter(one["rule"] for one in left_out)
    output.console().print(f"\n[bold]left out[/bold]: {', '.join(f'{count} {rule}' for rule, count in counts.items())}")
    shown = [one for rule in counts for one in _of_rule(left_out, rule)[:SHOWN_OF_A_RULE]]
    rows = [[one["rule"], one.get("rank"), one["score"], _short(one["text"]), one["id"]] for one in shown]
    output.print_table(["rule", "rank", "score", "text", "id"], rows)
    more = " All of them with --json." if len(shown) < len(left_out) else ""
    output.console().print(
        f"What a rule hides has the rank and score that it would have. `--why ID` tells more of one fact.{more}",
        style="dim",
    )


def _of_rule(left_out: Sequence[dict[str, Any]], rule: str) -> list[dict[str, Any]]:
    return [one for one in left_out if one["rule"] == rule]


def print_why(why: dict[str, Any]) -> None:
    """Print why one fact was recalled or not."""
    screen = output.console()
    screen.print(why["text"], markup=False)
    fate = "[green]recalled[/green]" if why["recalled"] else f"[yellow]not recalled[/yellow]: {why['rule']}"
    screen.print(f"{fate}\n")
    parts = why["parts"]
    total = " + ".join(f"{heading} {parts[name]:.3f}" for name, heading in PARTS.items())
    times = "" if parts["factor"] == 1 else f", times {parts['factor']:.2f}"
    rows = [
        ["rank", f"{why['rank']}, {'' if why['recalled'] else 'or would be, '}{_among(why)}"],
        ["score", f"{why['score']:.3f} = {total}{times}"],
        ["by words", _by_words(why["words"])],
        ["by meaning", _by_meaning(why["meaning"])],
    ]
    output.print_table(["", ""], rows)


def _among(why: dict[str, Any]) -> str:
    return f"of {why['seen']} facts that were weighed; the first {why['limit']} are recalled"


def _by_words(words: dict[str, Any]) -> str:
    if not words["shared"]:
        return f"holds none of the question's words: {', '.join(words['asked']) or 'it has none that are searched'}"
    shared = f"holds {', '.join(words['shared'])} of {', '.join(words['asked'])}"
    if words["score"] is None:
        return f"{shared}: too common to be found by"
    rank = "beyond the best" if words["rank"] is None else f"rank {words['rank']}"
    return f"{rank} of {words['of']} with such words, {words['score']:.2f}: {shared}"


def _by_meaning(meaning: dict[str, Any] | None) -> str:
    if meaning is None:
        return "not compared: a tag was asked for, or there is no vector"
    brought = "" if meaning["brought"] else ", too far for that to bring it"
    return f"rank {meaning['rank']} of {meaning['of']}, similarity {meaning['similarity']:.3f}{brought}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"
