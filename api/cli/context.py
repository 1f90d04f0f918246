"""`ebb context`: what an agent is shown of its memory, as it would be put before its context."""

from collections.abc import Callable
from typing import Any

import typer
from ebb.contract.recall import CONTEXT

from api.cli import output
from api.cli.explanations import print_left_out, print_parts
from api.cli.operations import command

FLAGS = {"use_importance_recency": "--importance-recency/--no-importance-recency"}


@command(CONTEXT, arguments=("query",), reads="query", left_out=("summary_threshold", "kind"), flags=FLAGS)
def context(answer: dict[str, Any], asked: dict[str, Any], _: str) -> None:
    """Print what to put before an agent's context: the facts that fit a prompt, within a budget of tokens."""
    if answer["context"]:
        typer.echo(answer["context"])
    if "tag" not in asked:
        output.say_words_alone(answer)
    if asked["explain"]:
        print_parts(answer["facts"])
        print_left_out(answer["left_out"])


COMMANDS: dict[str, Callable[..., None]] = {"context": context}
