"""How large a benchmark is: a full run's million, or a quick one's tens of thousands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """How many facts are stored, how many are due, and how often everything is measured."""

    facts: int
    rounds: int
    queries: int

    @property
    def due(self) -> int:
        """Return how many facts are due at every size of the table."""
        return self.facts // 100

    @property
    def small(self) -> int:
        """Return how many facts the smaller table has."""
        return self.facts // 10


QUICK = Size(facts=20_000, rounds=3, queries=20)
