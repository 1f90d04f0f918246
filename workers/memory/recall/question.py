"""The question of a recall."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ebb.contract.recall import Filters

from workers.context import Context
from workers.core.arrays import Vectors
from workers.memory.namespace_settings import hygiene
from workers.storage.candidates import NO_FILTERS, Scope
from workers.storage.connection import Connection, on_shard_of
from workers.storage.namespaces import Namespace


@dataclass(frozen=True, slots=True)
class Preferences:
    """Optional factors of scores: prefer facts meant to last, or important and recent ones."""

    long_term: bool = False
    importance_recency: bool = False


UNSCALED = Preferences()


@dataclass(frozen=True, slots=True)
class Question:
    """The text, limit, filters and options of a recall.

    Attributes:
        min_similarity: minimum cosine of facts that share no word with the question.
        min_relevance: minimum relevance of each result; by default a floor decides whether there is an answer.
        entities: the names to look for in the question; by default those of all facts.
        explain: also return what was left out.
        why: also explain the fact with this id.
        deep: include deep memory.
        namespaces: search these namespaces instead of the given one.
        measures: it is asked to measure or explain, not to use the answer.
    """

    text: str
    limit: int = 10
    filters: Filters = NO_FILTERS
    as_of: datetime | None = None
    explain: bool = False
    known_as_of: datetime | None = None
    min_similarity: float = -1.0
    min_relevance: float | None = None
    preferences: Preferences = UNSCALED
    why: UUID | None = None
    entities: tuple[str, ...] | None = None
    deep: bool = False
    namespaces: tuple[str, ...] = ()
    measures: bool = False

    def looks_before(self, now: datetime) -> bool:
        """Return whether it is as of an instant before `now`, and so includes facts that have ended since."""
        return any(one is not None and one < now for one in (self.as_of, self.known_as_of))

    @property
    def is_filtered(self) -> bool:
        """Return whether it is restricted to some facts, other than by leaving out documents."""
        given = self.filters.filters()
        return any(value is not None for name, value in given.items() if name != "documents")

    @property
    def looks_back(self) -> bool:
        """Return whether it is as of an instant."""
        return self.as_of is not None or self.known_as_of is not None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in one namespace, the facts that are searched, and its vector, or None if vectors are not searched."""

    context: Context
    db: Connection
    tenant: Namespace
    question: Question
    scope: Scope
    query: Vectors | None

    @property
    def half_life(self) -> float:
        """Return the days until confidence halves in the namespace."""
        return hygiene(self.context, self.tenant.settings).half_life

    def on_its_shard(self) -> AbstractContextManager[None]:
        """Route statements to the shard of its namespace, if there are several namespaces."""
        return on_shard_of(self.db, self.tenant.name) if self.question.namespaces else nullcontext()
