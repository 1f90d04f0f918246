"""How large a benchmark is: a full run's million, a quick one's tens of thousands, or as many as the disk holds."""

from dataclasses import dataclass

FACTS = 1_000_000
"""A full run; a larger one compares with the same small table, and has as many facts due and in a namespace."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many facts are stored, how many are due, and how often everything is measured."""

    facts: int
    rounds: int
    queries: int

    @property
    def due(self) -> int:
        """Return how many facts are due at every size of the table."""
        return min(self.facts, FACTS) // 100

    @property
    def small(self) -> int:
        """Return how many facts the smaller table has."""
        return min(self.facts, FACTS) // 10

    @property
    def each(self) -> int:
        """Return how many facts a namespace has where there are many of them."""
        return min(self.facts, FACTS) // 100

    @property
    def steps(self) -> list[int]:
        """Return how many facts the tables have that a curve leads through."""
        return sorted({self.small, self.small * 3, self.small * 10, self.facts})

    @property
    def times(self) -> str:
        """Return in words how many times the small table's facts the largest one has."""
        return {10: "ten"}.get(self.facts // self.small, str(self.facts // self.small))


QUICK = Size(facts=20_000, rounds=3, queries=20)
