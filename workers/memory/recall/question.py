"""What is asked of a recall."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ebb.contract.recall import Filters

from workers.storage.candidates import NO_FILTERS


@dataclass(frozen=True, slots=True)
class Preferences:
    """Optional factors of scores: prefer facts meant to last, or important and recent ones."""

    long_term: bool = False
    importance_recency: bool = False


UNSCALED = Preferences()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the words, how many facts at most, and the filters that hold in every arm.

    Facts that share no word with the question must be at least as similar as `min_similarity`, a cosine, and all at
    least as relevant as `min_relevance`; without one the default floor decides whether there is an answer. Facts are
    looked up of the `entities` that the question names, or of all that any fact is about. `explain`, and `why`, the id
    of a fact, change nothing of the results. `deep` also finds what ended by itself. Where `namespaces` are
    named, these are asked instead of one.
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

    def looks_before(self, now: datetime) -> bool:
        """Return whether it asks what was true or known before `now`, and so also what has ended since."""
        return any(one is not None and one < now for one in (self.as_of, self.known_as_of))

    @property
    def looks_back(self) -> bool:
        """Return whether it asks what was true or known as of an instant."""
        return self.as_of is not None or self.known_as_of is not None
