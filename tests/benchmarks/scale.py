"""The size of a benchmark: a million facts, tens of thousands for a quick run, or another number."""

from dataclasses import dataclass

FACTS = 1_000_000
"""A full run; a larger one compares with the same small table, and has as many facts due and in a namespace."""


@dataclass(frozen=True, slots=True)
class Size:
    """The number of stored facts, of due facts, and of repetitions."""

    facts: int
    rounds: int
    queries: int

    @property
    def due(self) -> int:
        """Return the number of due facts, equal for every size of the table."""
        return min(self.facts, FACTS) // 100

    @property
    def small(self) -> int:
        """Return the number of facts of the smaller table."""
        return min(self.facts, FACTS) // 10

    @property
    def queued(self) -> int:
        """Return the number of facts of a namespace that is asked through the queue."""
        return min(self.facts // 10, 10_000)

    @property
    def each(self) -> int:
        """Return the number of facts of a namespace in databases with many."""
        return min(self.facts, FACTS) // 100

    @property
    def steps(self) -> list[int]:
        """Return the sizes of the tables of a curve."""
        return sorted({self.small, self.small * 3, self.small * 10, self.facts})

    @property
    def times(self) -> str:
        """Return in words the ratio of the sizes of the largest and the small table."""
        return {10: "ten"}.get(self.facts // self.small, str(self.facts // self.small))


QUICK = Size(facts=20_000, rounds=3, queries=20)
