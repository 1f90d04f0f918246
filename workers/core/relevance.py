"""Relevance: how likely it is that a fact answers a question, comparable across questions and namespaces.

A score only orders the results of one question. Relevance is absolute: a logistic curve over the share of the
question's words that the best passage of the fact holds, their similarity, and what the namespace does not know of the
question. Its weights belong to an embedder, since embedders differ in how similar unrelated texts are; they were learnt
on questions asked of their own conversations and of others (`python -m tests.benchmarks.learning relevance`).
"""

import math
from dataclasses import astuple, dataclass, replace

import numpy as np

from workers.core import ranking
from workers.core.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Weights:
    """What each feature adds to the log odds; `start` is where all else is nothing."""

    start: float
    held: float
    similarity: float
    unknown: float
    question_words: float
    fact_words: float


HASHING = Weights(
    start=-3.854,
    held=4.505,
    similarity=4.689,
    unknown=-3.445,
    question_words=0.944,
    fact_words=-0.174,
)
"""Learnt on LoCoMo 1-5, BEAM-100K 1-10 and five personas of Memora with the hashing embedder."""


STATIC = Weights(
    start=-2.789,
    held=3.587,
    similarity=3.194,
    unknown=-2.663,
    question_words=0.566,
    fact_words=-0.100,
)
"""The same for static vectors; the nearest to those of models, too."""


FLOORS_OF_HASHING, FLOORS = (0.1, 0.2), (0.2, 0.3)
"""What the best result must reach by default, where facts are short and where they are long, which hold words of any
question. It leaves out the answers to most questions of other conversations, and costs a point of recall@10 at most."""

FEW_WORDS, ENOUGH_WORDS = 20, 10_000
"""How many words all facts of a namespace need so that a word that none has says anything, and so that it says all.

Of 35 facts of 20 words each the answers to most questions lack a word of the question."""


def of_embedder(name: str) -> Weights:
    """Return the weights for an embedder by its name, which begins with its provider."""
    return HASHING if name.startswith("hashing:") else STATIC


def floor_of_embedder(name: str, mean_words: float) -> float:
    """Return the default floor for an embedder by its name, where facts have so many words on average."""
    return ranking.by_length(FLOORS_OF_HASHING if name.startswith("hashing:") else FLOORS, mean_words)


@dataclass(frozen=True, slots=True)
class Question:
    """What a question asks for, seen from a namespace.

    Attributes:
        document_frequencies: in how many facts each stem of the question stands; 0 where none has it.
        facts: how many facts the namespace has.
        mean_words: how many words those have on average.
    """

    document_frequencies: Ints
    facts: int
    mean_words: float

    def among(self, facts: int) -> "Question":
        """Return the same question of a namespace that has so many facts at least."""
        return replace(self, facts=max(self.facts, facts))

    @property
    def trust(self) -> float:
        """Return how much it says that no fact has a word, in [0, 1]: little where there is little text."""
        words = max(self.facts * self.mean_words, FEW_WORDS)
        return min(math.log(words / FEW_WORDS) / math.log(ENOUGH_WORDS / FEW_WORDS), 1.0)

    @property
    def unknown(self) -> float:
        """Return the share of the question's information that stands in no fact of the namespace, in [0, 1]."""
        information = ranking.inverse_document_frequency(self.document_frequencies, max(self.facts, 1))
        total = float(information.sum())
        return float(information[self.document_frequencies == 0].sum()) / total if total > 0 else 0.0


def relevance(question: Question, held: Ints, similarities: Floats, weights: Weights = HASHING) -> Floats:
    """Return n relevances in [0, 1].

    Args:
        question: what is asked.
        held: how many stems of the question the best passage of each fact holds.
        similarities: the cosine of the question and each fact; 0 where there is none.
        weights: those of the embedder.
    """
    odds = features(question, held, similarities) @ np.array(astuple(weights))
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)


def features(question: Question, held: Ints, similarities: Floats) -> Floats:
    """Return (n, 6) features, in the order of `Weights`."""
    terms = max(len(question.document_frequencies), 1)
    of_question = (question.trust * question.unknown, np.log(terms), np.log(max(question.mean_words, 1.0)))
    columns = [np.ones(len(held)), held / terms, similarities, *(np.full(len(held), one) for one in of_question)]
    return np.stack(columns, axis=1)
