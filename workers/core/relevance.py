"""Relevance: the probability that a fact answers a question, comparable across questions and namespaces.

A score only orders the results of one question; relevance is absolute. It is a logistic regression over the share of
the question's words in the fact's best passage, their similarity, and the part of the question unknown to the
namespace. Weights belong to an embedder, since embedders differ in the similarity of unrelated texts. They were trained
on questions about their own and other conversations (`python -m tests.benchmarks.learning relevance`).
"""

import math
from dataclasses import astuple, dataclass, replace

import numpy as np

from workers.core import ranking
from workers.core.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Weights:
    """Weight of each feature in the log odds; `start` is the intercept."""

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
"""Trained on LoCoMo 1-5, BEAM-100K 1-10 and five personas of Memora with the hashing embedder."""


STATIC = Weights(
    start=-2.789,
    held=3.587,
    similarity=3.194,
    unknown=-2.663,
    question_words=0.566,
    fact_words=-0.100,
)
"""The same for static vectors; also the closest for models."""


FLOORS_OF_HASHING, FLOORS = (0.1, 0.2), (0.2, 0.3)
"""Default floor of the best result's relevance, where facts are short and where they are long and hold words of any
question. It leaves out the answers to most questions about other conversations and costs at most one point of
recall@10."""

FEW_WORDS, ENOUGH_WORDS = 20, 10_000
"""Words in a namespace at which the absence of a word begins to count, and at which it counts fully.

Of 35 facts of 20 words each, the answers to most questions lack a word of the question.
"""


def of_embedder(name: str) -> Weights:
    """Return the weights for an embedder by its name, which starts with its provider."""
    return HASHING if name.startswith("hashing:") else STATIC


def floor_of_embedder(name: str, mean_words: float) -> float:
    """Return the default floor for an embedder by its name and the mean number of words per fact."""
    return ranking.by_length(FLOORS_OF_HASHING if name.startswith("hashing:") else FLOORS, mean_words)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as seen from a namespace.

    Attributes:
        document_frequencies: number of facts that contain each stem of the question.
        facts: number of facts in the namespace.
        mean_words: their mean number of words.
    """

    document_frequencies: Ints
    facts: int
    mean_words: float

    def among(self, facts: int) -> "Question":
        """Return the same question for a namespace of at least that many facts."""
        return replace(self, facts=max(self.facts, facts))

    @property
    def trust(self) -> float:
        """Return how much the absence of a word counts, in [0, 1]: little where there is little text."""
        words = max(self.facts * self.mean_words, FEW_WORDS)
        return min(math.log(words / FEW_WORDS) / math.log(ENOUGH_WORDS / FEW_WORDS), 1.0)

    @property
    def unknown(self) -> float:
        """Return the share of the question's information that occurs in no fact of the namespace, in [0, 1]."""
        information = ranking.inverse_document_frequency(self.document_frequencies, max(self.facts, 1))
        total = float(information.sum())
        return float(information[self.document_frequencies == 0].sum()) / total if total > 0 else 0.0


def relevance(question: Question, held: Ints, similarities: Floats, weights: Weights = HASHING) -> Floats:
    """Return n relevances in [0, 1].

    Args:
        question: the question as seen from the namespace.
        held: number of the question's stems in each fact's best passage.
        similarities: cosine of the question and each fact; 0 where there is none.
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
