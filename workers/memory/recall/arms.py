"""The arms of recall: search by words and search by vectors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from workers.core import ranking, signature
from workers.core.arrays import Floats, Key, Vectors
from workers.core.relevance import Question
from workers.memory.recall.text_arm import TextArm
from workers.storage import documents, signatures
from workers.storage.candidates import NO_FILTERS, WITHOUT_DOCUMENTS, Scope
from workers.storage.connection import Connection
from workers.storage.namespaces import Namespace

ARM_SIZE = 200
"""Number of candidates from the vector arm."""


@dataclass(frozen=True)
class Found:
    """The results of both arms, and the weight of similarity."""

    text: TextArm
    near: dict[Key, float]
    meaning: float = ranking.EVEN

    @cached_property
    def question(self) -> Question:
        """Return the question as seen from the namespace, which has at least the facts that were found."""
        return self.text.stems.question.among(len(self.near))

    def how_found(self, id_: Key, by_graph: dict[Key, str]) -> str:
        """Return how a fact was found: by words, a link or entity, meaning, or a neighbour in the conversation."""
        if self.text.scores.get(id_, 0.0) > 0:
            return "words"
        return by_graph.get(id_) or ("meaning" if id_ in self.near else "nearby")

    def fused(self, most: int | None = None) -> dict[Key, float]:
        """Return the candidates of both arms with their fused scores, best first.

        A candidate that the vector arm did not find gets the lowest similarity found.
        """
        ids = list(dict.fromkeys([*self.text.best, *self.near]))
        least = min(self.near.values(), default=0.0)
        by_words = np.array([self.text.scores.get(id_, 0.0) for id_ in ids])
        relevance = ranking.fuse(by_words, np.array([self.near.get(id_, least) for id_ in ids]), self.meaning)
        order = np.argsort(-relevance, kind="stable")[:most]
        return {ids[i]: score for i, score in zip(order.tolist(), relevance[order].tolist(), strict=True)}


def vector_arm(db: Connection, namespace: Namespace, query: Vectors, scope: Scope) -> Callable[[], dict[Key, float]]:
    """Send the search for the nearest signatures to the (dims,) query; return its reader, which gives similarities."""
    own = signature.encode(query[None, :])[0]
    if scope.filters.filters() == WITHOUT_DOCUMENTS.filters() and not documents.any_chunk(db, namespace.id):
        scope = replace(scope, filters=NO_FILTERS)
    found = signatures.ask_nearest(db, namespace.id, own, ARM_SIZE, scope)
    return lambda: _with_cosines(*found())


def _with_cosines(ids: list[Key], differing: Floats) -> dict[Key, float]:
    return dict(zip(ids, signature.cosines(differing).tolist(), strict=True))
