"""What forgetting keeps and what it costs: chosen shares of conversations, and a year of lifetimes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.conversations import Conversation
from tests.benchmarks.figures import Answers
from tests.benchmarks.forgetting import curve, years
from tests.benchmarks.machine import Machine


def measure(machine: Machine, answers: Answers, sets: Mapping[str, Sequence[Conversation]], path: Path | None) -> None:
    """Draw the forgetting curve of each set; live a year with lifetimes on the conversations of the file."""
    for name, conversations in sets.items():
        curve.measure(machine, answers, name, conversations)
    years.measure(machine, answers, path)
