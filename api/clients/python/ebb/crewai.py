"""CrewAI: a memory for `Crew(memory=…)` or `Agent(memory=…)`, without CrewAI's LLM and vector store.

>>> crew = Crew(agents=[…], tasks=[…], memory=EbbCrewMemory(ebb=memory))
"""

from typing import Any, Self

from crewai import Memory as CrewMemory
from crewai.memory.types import MemoryMatch, MemoryRecord

LONGEST = 8_000
"""Maximum characters of a task's result that are stored as one statement."""


class EbbCrewMemory(CrewMemory):
    """CrewAI's memory interface on `ebb`, a `Memory` of Ebb."""

    ebb: Any
    source: str | None = None

    def model_post_init(self, _: Any) -> None:
        """Do not open CrewAI's own stores."""

    def __deepcopy__(self, _: dict[int, Any] | None = None) -> Self:
        """Return itself, so that a copied crew has the same memory."""
        return self

    def remember(self, content: str, **options: Any) -> MemoryRecord | None:
        """Store a statement and return it as a record; None if the memory is read-only."""
        if self.read_only:
            return None
        given = {name: options[name] for name in ("metadata", "importance") if options.get(name) is not None}
        source = options.get("source") or self.source
        done = self.ebb.store(content, source=source, tags=options.get("categories"), **given)
        return MemoryRecord(id=str(done.id), content=content, source=source, importance=given.get("importance", 0.5))

    def remember_many(self, contents: list[str], **options: Any) -> list[MemoryRecord]:
        """Store statements."""
        return [record for one in contents if (record := self.remember(one, **options)) is not None]

    def extract_memories(self, content: str) -> list[str]:
        """Return the statements to store of a task's result: its text, as long facts are found by passages."""
        return [content[:LONGEST]] if content.strip() else []

    def recall(self, query: str, limit: int = 10, **options: Any) -> list[MemoryMatch]:
        """Return matching records, best first, with their relevance as score."""
        found = self.ebb.recall(query, limit=limit, source=options.get("source")).results
        records = [MemoryRecord(id=str(one.id), content=one.text, source=options.get("source")) for one in found]
        return [MemoryMatch(record=one, score=fact.relevance or 0.0) for one, fact in zip(records, found, strict=True)]

    def forget(self, record_ids: list[str] | None = None, **_: Any) -> int:
        """Forget records by their ids; return how many."""
        return sum(one.action == "forgotten" for one in self.ebb.forget(record_ids or []).results)

    def drain_writes(self) -> None:
        """Do nothing, as writes are synchronous."""

    def close(self) -> None:
        """Do nothing, as the connections belong to the caller."""
