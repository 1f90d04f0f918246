"""`ebb recall`, `lookup` and `context`: search."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL

from api.cli import output
from api.cli.operations import command

COLUMNS = ["key", "value", "confidence", "ends", "tags", "text"]
FLAGS = {"use_importance_recency": "--importance-recency/--no-importance-recency"}
SHOWN_OF_A_RULE = 5
MOST_LISTED = 50
"""Facts that an answer lists per rule."""

SHORT = 56
PARTS = {"fit": "fit", "contiguity": "near", "graph": "links", "named": "name"}
"""Summands of a score, before the factors, with their headings."""

LIFTS = {"outstanding": "stands out", "newer": "newer", "reranked": "reranked"}
"""Summands of a score after the factors that most results do not have, with their headings."""

LEGEND = (
    "score = (fit + near + links + name) * said + alive + stands out + newer + reranked\n"
    "fit: words and meaning together; meaning counts 0.2 with hashing, 0.4 to 0.5 with static, half with others\n"
    "near: facts stored just before and after. links: linked facts, and facts about entities in the question\n"
    "name: the fact begins with a name in the question. said: its role and the salience of its content\n"
    "alive: how strong, recent, certain and important it is. undecayed: its rank without that part\n"
    "stands out: it is far more relevant than the others\n"
    "newer: it stands above an older statement that it makes outdated\n"
    "reranked: for its place in the order of the reranker"
)

WORDS_ONLY = (
    "[yellow]Only words were matched[/yellow]: the embedder does not answer, or none of its vectors are here yet; "
    "`ebb doctor` says more."
)
NOT_RERANKED = "[yellow]The reranker does not answer[/yellow], so the order is Ebb's own; `ebb doctor` says more."


@command(RECALL, listed="results", arguments=("query",), reads="query")
def recall(answer: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Recall the facts that fit a question."""
    if "why" in asked:
        _print_why(answer["why"])
        return
    if answer["results"]:
        several = ["namespace"] if "namespaces" in asked else []
        rows = [
            [
                f"{one['score']:.3f}",
                one["tier"],
                one["fidelity"],
                output.ending(one),
                *map(one.get, several),
                _marked(one),
            ]
            for one in answer["results"]
        ]
        output.print_table(["score", "tier", "fidelity", "ends", *several, "text"], rows)
    else:
        output.console().print(f"Nothing in {_place(asked, namespace)} fits.{_hint(asked)}", markup=False)
    _conclude(answer, answer["results"], asked)


def _place(asked: dict[str, Any], namespace: str) -> str:
    """Return the namespaces that were searched, for a message."""
    return repr(asked["namespaces"]) if "namespaces" in asked else repr(namespace)


def _hint(asked: dict[str, Any]) -> str:
    """Return which options would find more; what is past is searched in deep memory as well."""
    nearest = [] if asked.get("min_relevance") == 0 else ["`--min-relevance 0` shows what is nearest"]
    searched = asked["deep"] or "as_of" in asked or "known_as_of" in asked
    hints = [*nearest, *([] if searched else ["`--deep` also finds what has ended"])]
    return f" {', '.join(hints)}." if hints else ""


def _conclude(answer: dict[str, Any], facts: Sequence[dict[str, Any]], asked: dict[str, Any]) -> None:
    """Report what deep memory has, whether words alone decided, and on request why facts are in the answer or not."""
    if count := answer.get("deep"):
        fit = "1 fact that fits ended by itself" if count == 1 else f"{count} facts that fit ended by themselves"
        output.console(stderr=True).print(f"{fit}: ask again with --deep.", style="yellow")
    if "tag" not in asked and answer.get("by_meaning") is False:  # older workers do not say
        output.console(stderr=True).print(WORDS_ONLY)
    if answer.get("reranked") is False:
        output.console(stderr=True).print(NOT_RERANKED)
    if asked["explain"]:
        _print_parts(facts)
        _print_left_out(answer["left_out"])


def _marked(one: dict[str, Any]) -> str:
    """Return a fact's text, and before it whether a newer fact may make it outdated."""
    return f"(perhaps outdated) {_text(one)}" if one.get("outdated_by") else _text(one)


def _text(one: dict[str, Any]) -> str:
    """Return a fact's text, of a long one the matching passage, and of a chunk its place too."""
    if one.get("passage"):
        return f"… {one['passage']['text']} …"
    if one["kind"] != "chunk" or not one["path"]:
        return str(one["text"])
    return f"{one['path']}: {one['section']}\n{one['text']}" if one["section"] else f"{one['path']}\n{one['text']}"


@command(LOOKUP, listed="results", arguments=("entity", "key"), left_out=("limit", "cursor"))
def lookup(found: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Show all facts about an entity, or one of its properties, the most confident first; no vectors are needed."""
    if not found["results"]:
        about = f"{asked['key']!r} of {asked['entity']!r}" if "key" in asked else asked["entity"]
        output.console().print(
            f"Nothing in {namespace!r} is about {output.escape_markup(about)}. Ask in words with "
            f"`ebb recall{output.of(namespace)}`."
        )
        return
    output.print_table(COLUMNS, [_row(one) for one in found["results"]])


def _row(one: dict[str, Any]) -> list[Any]:
    tags = ",".join(one["tags"]) or None
    return [one["key"], one["value"], f"{one['confidence']:.2f}", output.ending(one), tags, _marked(one)]


@command(
    CONTEXT, listed="facts", arguments=("query",), reads="query", left_out=("summary_threshold", "kind"), flags=FLAGS
)
def context(answer: dict[str, Any], asked: dict[str, Any], namespace: str) -> None:
    """Print the text to put before an agent's prompt: the facts that fit a prompt, within a budget of tokens."""
    if answer["context"]:
        typer.echo(answer["context"])
    elif answer.get("over_budget"):
        said = "The budget has no room for what fits; give a higher --max-tokens."
        output.console(stderr=True).print(said, style="yellow", markup=False)
    else:
        hint = "" if asked.get("documents") else " `--documents` also looks into indexed files."
        where = _place(asked, namespace)
        output.console(stderr=True).print(f"Nothing in {where} fits.{hint}", style="yellow", markup=False)
    _conclude(answer, answer["facts"], asked)


def _print_parts(facts: Sequence[dict[str, Any]]) -> None:
    if not facts:
        return
    scaled = any(one["explain"]["factor"] != 1 for one in facts)
    lifts = [name for name in LIFTS if any(one["explain"].get(name) for one in facts)]
    rows = [[number, *_parts(one, lifts, scaled=scaled)] for number, one in enumerate(facts, start=1)]
    output.console().print("\n[bold]why, in the same order[/bold]")
    headings = [
        "score",
        *PARTS.values(),
        "said",
        "alive",
        *(["times"] if scaled else []),
        *(LIFTS[name] for name in lifts),
    ]
    output.print_table(["", *headings, "words", "meaning", "undecayed", "by"], rows)
    output.console().print(LEGEND, style="dim")


def _parts(one: dict[str, Any], lifts: Sequence[str], *, scaled: bool) -> Iterator[object]:
    why = one["explain"]
    yield f"{one['score']:.3f}"
    yield from (f"{_part(why, name):.3f}" for name in PARTS)
    yield f"{_said(why):.2f}"
    yield f"{why['prior']:.3f}"
    if scaled:
        yield f"{why['factor']:.2f}"
    yield from (f"{why.get(name, 0.0):.3f}" for name in lifts)
    yield f"{why['text']:.2f} (#{why['text_rank']})" if why["text"] else None
    yield f"{why['similarity']:.3f} (#{why['similarity_rank']})"
    yield f"#{why['rank_without_decay']}"
    yield one["found_by"]


def _part(parts: dict[str, float], name: str) -> float:
    """Return a part of a score; older workers call the fit relevance."""
    return parts["relevance"] if name == "fit" and name not in parts else parts[name]


def _said(parts: dict[str, float]) -> float:
    """Return the factor for a fact's speaker and content; older workers do not report it."""
    return parts.get("role", 1) * (1 + parts.get("salience", 0))


def _print_left_out(left_out: Sequence[dict[str, Any]]) -> None:
    """Print the first few facts that each rule left out."""
    screen = output.console()
    if not left_out:
        screen.print("\nNothing was left out.")
        return
    screen.print("\n[bold]left out[/bold]")
    for rule, count in Counter(one["rule"] for one in left_out).items():
        screen.print(f"[yellow]{rule}[/yellow]: {count}{' or more' if count >= MOST_LISTED else ''}")
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
    return f"  {rank:>4} {score:>6}  {one['id']}  {output.short(' '.join(one['text'].split()), SHORT)}"


def _print_why(why: dict[str, Any]) -> None:
    screen = output.console()
    screen.print(why["text"], markup=False)
    outcome = "[green]recalled[/green]" if why["recalled"] else f"[yellow]not recalled[/yellow]: {why['rule']}"
    screen.print(f"{outcome}\n")
    parts = why["parts"]
    total = " + ".join(f"{heading} {_part(parts, name):.3f}" for name, heading in PARTS.items())
    lifts = "".join(f", + {said} {parts[name]:.3f}" for name, said in LIFTS.items() if parts.get(name))
    would = "" if why["recalled"] or why["rule"] == "below the limit" else "would be "
    lines = {
        "rank": f"{would}{why['rank']} of {why['seen']} that were scored; at most {why['limit']} are recalled",
        "score": f"{why['score']:.3f} = ({total}), times said {_said(parts):.2f}, + alive {parts['prior']:.3f}{lifts}",
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
