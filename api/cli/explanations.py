"""How commands explain a recall to a person: each score taken apart, and what was left out by which rule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from api.cli import output

SHOWN_OF_A_RULE = 5
MOST_TOLD = 50
"""An answer names no more that were left out in one way."""

SHORT = 56
PARTS = {"relevance": "fit", "contiguity": "near", "graph": "links", "named": "name", "prior": "alive"}
"""What adds up to a score, with its heading."""

LEGEND = (
    "score = fit + near + links + name + alive: how well words and meaning fit, half each, or 4 to 1 with the default\n"
    "embedder; what was said just before and after; what links lead to, and entities that are named; whether it\n"
    "begins with a name in the question; how strong, fresh, sure and important it is.\n"
    "undecayed: its rank if that last part counted nothing."
)


def print_parts(facts: Sequence[dict[str, Any]]) -> None:
    """Print what the scores of facts are made of, in their order."""
    if not facts:
        return
    scaled = any(one["explain"]["factor"] != 1 for one in facts)
    rows = [[number, *_parts(one, scaled=scaled)] for number, one in enumerate(facts, start=1)]
    output.console().print("\n[bold]why, in the same order[/bold]")
    headings = ["score", *PARTS.values(), *(["times"] if scaled else [])]
    output.print_table(["", *headings, "words", "meaning", "undecayed", "by"], rows)
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
    screen = output.console()
    if not left_out:
        screen.print("\nNothing was left out.")
        return
    screen.print("\n[bold]left out[/bold]")
    for rule, count in Counter(one["rule"] for one in left_out).items():
        screen.print(f"[yellow]{rule}[/yellow]: {count}{' or more' if count >= MOST_TOLD else ''}")
        for one in [one for one in left_out if one["rule"] == rule][:SHOWN_OF_A_RULE]:
            screen.print(_line(one), markup=False)
    screen.print(
        "What a rule hides has the rank and the score that it would have. All of them with --json; more of one fact "
        "with `ebb recall … --why ID`.",
        style="dim",
    )


def _line(one: dict[str, Any]) -> str:
    rank = "" if one["rank"] is None else f"#{one['rank']}"
    score = "" if one["score"] is None else f"{one['score']:.3f}"
    return f"  {rank:>4} {score:>6}  {one['id']}  {_short(one['text'])}"


def print_why(why: dict[str, Any]) -> None:
    """Print why one fact was recalled or not."""
    screen = output.console()
    screen.print(why["text"], markup=False)
    fate = "[green]recalled[/green]" if why["recalled"] else f"[yellow]not recalled[/yellow]: {why['rule']}"
    screen.print(f"{fate}\n")
    parts = why["parts"]
    total = " + ".join(f"{heading} {parts[name]:.3f}" for name, heading in PARTS.items())
    times = "" if parts["factor"] == 1 else f", times {parts['factor']:.2f}"
    would = "" if why["recalled"] or why["rule"] == "below the limit" else "would be "
    lines = {
        "rank": f"{would}{why['rank']} of {why['seen']} that were weighed, of which {why['limit']} are recalled",
        "score": f"{why['score']:.3f} = {total}{times}",
        "by words": _by_words(why["words"]),
        "by meaning": _by_meaning(why["meaning"]),
    }
    for name, value in lines.items():
        screen.print(f"{name:<12}{value}", markup=False)


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
