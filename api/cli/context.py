"""`ebb context`: what an agent is shown of its memory, as it would be put before its context."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client
from api.cli.explanations import print_left_out, print_parts


def context(
    query: Annotated[str, typer.Argument(help="The prompt, in its own words; `-` reads it from standard input.")],
    limit: Annotated[int, typer.Option(help="How many facts at most.")] = 10,
    max_tokens: Annotated[int | None, typer.Option(help="How many tokens at most; else EBB_CONTEXT_TOKENS.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="full, short or minimal; else EBB_CONTEXT_FORMAT.")
    ] = None,
    order: Annotated[str | None, typer.Option(help="rank or stable; else EBB_CONTEXT_ORDER.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only facts with this tag.")] = None,
    category: Annotated[str | None, typer.Option(help="Only facts of this category.")] = None,
    min_similarity: Annotated[
        float | None, typer.Option(help="Leave out what shares no word and is less similar, above 0 and up to 1.")
    ] = None,
    prefer_long_term: Annotated[bool | None, typer.Option(help="Favour facts that are meant to last.")] = None,
    importance_recency: Annotated[bool | None, typer.Option(help="Favour important and recent facts.")] = None,
    entity_lookup: Annotated[bool | None, typer.Option(help="Facts of entities that the prompt names.")] = None,
    entities: Annotated[str | None, typer.Option(help="Only of these, with commas between; else of all.")] = None,
    documents: Annotated[bool, typer.Option("--documents", help="Also parts of indexed files.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Take scores apart; say what was left out.")] = False,
    touch: Annotated[bool, typer.Option("--touch/--no-touch", help="Whether it strengthens what it injects.")] = True,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Print what to put before an agent's context: the facts that fit a prompt, within a budget of tokens."""
    options: dict[str, Any] = {
        "limit": limit, "max_tokens": max_tokens, "format": form, "order": order, "tag": tag, "category": category,
        "min_similarity": min_similarity, "prefer_long_term": prefer_long_term,
        "use_importance_recency": importance_recency, "entity_lookup": entity_lookup, "entities": entities,
        "documents": documents, "explain": explain, "touch": touch,
    }  # fmt: skip
    with client(home, namespace) as memory:
        answer = memory.context(sys.stdin.read() if query == "-" else query, **options)
    if as_json:
        output.print_json(answer)
        return
    if answer["context"]:
        typer.echo(answer["context"])
    if not tag:
        output.say_words_alone(answer)
    if explain:
        print_parts(answer["facts"])
        print_left_out(answer["left_out"])


COMMANDS: dict[str, Callable[..., None]] = {"context": context}
