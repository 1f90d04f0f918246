"""CrewAI: a memory for `Crew(memory=…)` or `Agent(memory=…)`, without CrewAI's LLM and vector store.

>>> crew = Crew(agents=[…], tasks=[…], memory=EbbCrewMemory(ebb=memory))
"""

from datetime import UTC
from typing import Any, Self

from ebb.contract.recall import Result
from ebb.frameworks import SynchronousMemory, extra, question

with extra("crewai"):
    from crewai import Memory as CrewMemory
    from crewai.memory.types import MemoryMatch, MemoryRecord

LONGEST = 8_000
"""Maximum characters of a task and its result that are stored as one statement."""


class EbbCrewMemory(CrewMemory):
    """CrewAI's memory interface on `ebb`, a `Memory` of Ebb."""

    ebb: SynchronousMemory
    source: str | None = None

    def model_post_init(self, _: Any) -> None:
        """Do not open CrewAI's own stores."""

    @property
    def _storage(self) -> Any:
        """Refuse what CrewAI does with its own stores."""
        raise NotImplementedError(
            "EbbCrewMemory remembers, recalls, and forgets by ids. Do everything else with the Memory of Ebb in it."
        )

    def __deepcopy__(self, _: dict[int, Any] | None = None) -> Self:
        """Return itself, so that a copied crew has the same memory."""
        return self

    def remember(self, content: str, **options: Any) -> MemoryRecord | None:
        """Store a statement and return it as a record; None if the memory is read-only.

        Raises:
            ValueError: it is to be private, but each recall from the namespace would find it.
        """
        if self.read_only:
            return None
        if options.get("private"):
            raise ValueError("private: cannot be kept from others of this namespace; use a namespace for each source.")
        given = {name: options[name] for name in ("metadata", "importance") if options.get(name) is not None}
        source = options.get("source") or self.source
        categories = options.get("categories") or []
        done = self.ebb.store(content, source=source, tags=categories or None, **given)
        return MemoryRecord(id=str(done.id), content=content, source=source, categories=categories, **given)

    def remember_many(self, contents: list[str], **options: Any) -> list[MemoryRecord]:
        """Store statements."""
        stored = (self.remember(one, **options) for one in contents if one.strip())
        return [record for record in stored if record is not None]

    def extract_memories(self, content: str) -> list[str]:
        """Return the statements to store of a task and its result: its text, as long facts are found by passages."""
        parts = (content[start : start + LONGEST] for start in range(0, len(content), LONGEST))
        return [part for part in parts if part.strip()]

    def recall(self, query: str, limit: int = 10, **options: Any) -> list[MemoryMatch]:
        """Return matching records, best first, with their relevance as score; none for a blank query."""
        asked, source = question(query), options.get("source")
        found = self.ebb.recall(asked, limit=limit, source=source, touch=not self.read_only).results if asked else []
        return [MemoryMatch(record=_record(one), score=one.relevance or 0.0) for one in found]

    def forget(self, record_ids: list[str] | None = None, **others: Any) -> int:
        """Forget records by their ids; return how many.

        Raises:
            ValueError: something else is to choose them.
        """
        if not record_ids and any(one is not None for one in others.values()):
            raise ValueError(f"{', '.join(others)}: cannot choose what is forgotten; give record_ids.")
        return sum(one.action == "forgotten" for one in self.ebb.forget(record_ids).results) if record_ids else 0

    def drain_writes(self) -> None:
        """Do nothing, as writes are synchronous."""

    def close(self) -> None:
        """Do nothing, as the connections belong to the caller."""


def _record(fact: Result) -> MemoryRecord:
    """Return a fact as a record, with its date in UTC without zone, as CrewAI has it."""
    at = fact.source_date or fact.created_at
    dated = {"created_at": at.astimezone(UTC).replace(tzinfo=None)} if at else {}
    return MemoryRecord(
        id=str(fact.id),
        content=fact.text,
        source=fact.source,
        categories=fact.tags,
        importance=fact.importance,
        **dated,
    )
