"""What forgetting keeps and costs: selected shares of conversations, and a year of lifetimes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.conversations import Conversation
from tests.benchmarks.figures import Answers
from tests.benchmarks.forgetting import curve, deep, years
from tests.benchmarks.machine import Machine


def measure(machine: Machine, answers: Answers, sets: Mapping[str, Sequence[Conversation]], path: Path | None) -> None:
    """Measure the forgetting curve of each set, its deep memory, and a year with lifetimes."""
    for name, conversations in sets.items():
        curve.measure(machine, answers, name, conversations)
        deep.measure(machine, answers, name, conversations)
    years.measure(machine, answers, path)
