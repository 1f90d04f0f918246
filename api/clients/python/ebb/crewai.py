"""CrewAI: a memory for `Crew(memory=…)` or `Agent(memory=…)`; no LLM and no vector store of CrewAI's is used.

>>> crew = Crew(agents=[…], tasks=[…], memory=EbbCrewMemory(ebb=memory))
"""

from typing import Any, Self

from crewai import Memory as CrewMemory
from crewai.memory.types import MemoryMatch, MemoryRecord

LONGEST = 8_000
"""Characters of a task's result that are remembered as one statement."""


class EbbCrewMemory(CrewMemory):
    """What crews ask of a memory: to remember statements, and to recall them best first; `ebb` is a `Memory` of Ebb."""

    ebb: Any
    source: str | None = None

    def model_post_init(self, _: Any) -> None:
        """Open none of CrewAI's own stores."""

    def __deepcopy__(self, _: dict[int, Any] | None = None) -> Self:
        """Return itself: a copied crew has the same memory."""
        return self

    def remember(self, content: str, **options: Any) -> MemoryRecord | None:
        """Remember a statement; return it as a record, nothing if the memory is for reading alone."""
        if self.read_only:
            return None
        given = {name: options[name] for name in ("metadata", "importance") if options.get(name) is not None}
        source = options.get("source") or self.source
        done = self.ebb.store(content, source=source, tags=options.get("categories"), **given)
        return MemoryRecord(id=str(done.id), content=content, source=source, importance=given.get("importance", 0.5))

    def remember_many(self, contents: list[str], **options: Any) -> list[MemoryRecord]:
        """Remember statements, each as `remember` does."""
        return [record for one in contents if (record := self.remember(one, **options)) is not None]

    def extract_memories(self, content: str) -> list[str]:
        """Return what is to be remembered of a task's result: the whole of it, for it is found by its passages."""
        return [content[:LONGEST]] if content.strip() else []

    def recall(self, query: str, limit: int = 10, **options: Any) -> list[MemoryMatch]:
        """Return records that fit a question, best first, with their relevance as score."""
        found = self.ebb.recall(query, limit=limit, source=options.get("source")).results
        records = [MemoryRecord(id=str(one.id), content=one.text, source=options.get("source")) for one in found]
        return [MemoryMatch(record=one, score=fact.relevance or 0.0) for one, fact in zip(records, found, strict=True)]

    def forget(self, record_ids: list[str] | None = None, **_: Any) -> int:
        """Forget records by their ids; return how many."""
        return sum(one["action"] == "forgotten" for one in self.ebb.forget(record_ids or []).results)

    def drain_writes(self) -> None:
        """Do nothing: what was remembered is stored."""

    def close(self) -> None:
        """Do nothing: the connections are the caller's."""
