"""Relevance: the probability that a fact answers a question, comparable across questions and namespaces.

A score only orders the results of one question; relevance is absolute. It is a logistic regression over the share of
the question's words in the fact's best passage, their similarity, and the part of the question unknown to the
namespace: its words, and above all its names. Weights belong to an embedder, since embedders differ in the similarity
of unrelated texts. They were trained on questions about their own and other conversations
(`python -m tests.benchmarks.learning relevance`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache

import numpy as np

from workers.core import names, ranking
from workers.core.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Weights:
    """Weight of each feature in the log odds; `start` is the intercept."""

    start: float
    held: float
    similarity: float
    unknown: float
    names_unknown: float
    question_words: float
    fact_words: float


HASHING = Weights(
    start=-3.596,
    held=4.175,
    similarity=4.537,
    unknown=-3.975,
    names_unknown=-2.960,
    question_words=0.833,
    fact_words=-0.126,
)
"""Trained on LoCoMo 1-5, BEAM-100K 1-10 and five personas of Memora with the hashing embedder."""


STATIC = Weights(
    start=-3.764,
    held=3.244,
    similarity=4.402,
    unknown=-3.033,
    names_unknown=-2.895,
    question_words=0.549,
    fact_words=-0.027,
)
"""The same for static vectors; also the closest for models that have no weights of their own."""


ONNX = Weights(
    start=-4.859,
    held=2.335,
    similarity=6.435,
    unknown=-3.198,
    names_unknown=-2.710,
    question_words=0.491,
    fact_words=0.103,
)
"""The same for MiniLM by onnxruntime."""


WEIGHTS = {"hashing": HASHING, "onnx": ONNX}
FLOORS = {"hashing": (0.1, 0.2), "onnx": (0.1, 0.1)}
FLOORS_OF_OTHERS = (0.15, 0.2)
"""Default floor of the best result's relevance, where facts are short and where they are long and hold words of any
question. It leaves out the answers to most questions about other conversations and costs at most one point of
recall@10."""

LITTLE_TEXT, MUCH_TEXT = 400, 10_000
FLOOR_OF_FEW = 0.03
"""Default floor up to so many words in a namespace, and number of words from which the full floor holds: the best of
fewer irrelevant facts is less relevant, and an error costs less."""

FEW_WORDS, ENOUGH_WORDS = 20, 10_000
"""Words in a namespace at which the absence of a word begins to count, and at which it counts fully.

Of 35 facts of 20 words each, the answers to most questions lack a word of the question.
"""


def of_embedder(name: str) -> Weights:
    """Return the weights for an embedder by its name, which starts with its provider."""
    return WEIGHTS.get(name.split(":", maxsplit=1)[0], STATIC)


def floor_of_embedder(name: str, mean_words: float, facts: int) -> float:
    """Return the default floor for an embedder by its name, the mean number of words per fact, and the facts."""
    many = (max(facts * mean_words, LITTLE_TEXT) - LITTLE_TEXT) / (MUCH_TEXT - LITTLE_TEXT)
    full = ranking.by_length(FLOORS.get(name.split(":", maxsplit=1)[0], FLOORS_OF_OTHERS), mean_words)
    return FLOOR_OF_FEW + (full - FLOOR_OF_FEW) * min(many, 1.0)


DATE = re.compile(
    r"(?:19|20)\d\d|[0-3]?\d(?:st|nd|rd|th)?|(?:janu|febru)ar[yi]|march|april|may|june?|jul[yi]|august"
    r"|(?:sept|nov|dec)emb(?:er)?|octob(?:er)?|jan|feb|mar|apr|jul|aug|sept?|oct|nov|dec"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
)
"""Words of dates. Facts have a date beside their text, so the absence of such a word says nothing."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as seen from a namespace.

    Attributes:
        document_frequencies: number of facts that contain each of k stems of the question.
        facts: number of facts in the namespace.
        mean_words: their mean number of words.
        words: the k stems.
        names_unknown: whether the question contains names, none of which occurs in a fact.
    """

    document_frequencies: Ints
    facts: int
    mean_words: float
    words: Sequence[str] = ()
    names_unknown: bool = False

    def among(self, facts: int) -> "Question":
        """Return the same question for a namespace of at least that many facts."""
        return replace(self, facts=max(self.facts, facts))

    @property
    def trust(self) -> float:
        """Return how much the absence of a word counts, in [0, 1]: little where there is little text."""
        words = max(self.facts * self.mean_words, FEW_WORDS)
        return min(math.log(words / FEW_WORDS) / math.log(ENOUGH_WORDS / FEW_WORDS), 1.0)

    @property
    def counted(self) -> Bools:
        """Return which of the k stems count, (k,): all but words of dates that occur in no fact."""
        dates = np.array([DATE.fullmatch(word) is not None for word in self.words], np.bool_)
        known: Bools = self.document_frequencies > 0
        return known | ~dates if len(dates) else np.ones(len(known), np.bool_)

    @property
    def unknown(self) -> float:
        """Return the share of the question's information that occurs in no fact of the namespace, in [0, 1]."""
        frequencies = self.document_frequencies[self.counted]
        information = ranking.inverse_document_frequency(frequencies, max(self.facts, 1))
        total = float(information.sum())
        return float(information[frequencies == 0].sum()) / total if total > 0 else 0.0


def names_unknown(question: str, frequencies: Mapping[str, int]) -> bool:
    """Return whether a question contains names, none of which occurs in a fact.

    Args:
        question: its text.
        frequencies: number of facts that contain each of its words, stems and written forms.
    """
    asked = [one for one in names.named(question) if not DATE.fullmatch(one)]
    found = [[facts for word, facts in frequencies.items() if one.startswith(_stem(word))] for one in asked]
    return any(found) and not any(map(any, found))


def _stem(word: str) -> str:
    """Return the common beginning of a word and its stem: all but the last letter, which some stems change."""
    return word[: max(len(word) - 1, 3)]


def relevance(question: Question, held: Bools, similarities: Floats, weights: Weights = HASHING) -> Floats:
    """Return n relevances in [0, 1].

    Args:
        question: the question as seen from the namespace.
        held: which of the k stems of the question each fact's best passage contains, (n, k).
        similarities: cosine of the question and each fact; 0 where there is none.
        weights: those of the embedder.
    """
    odds = features(question, held, similarities) @ _vector(weights)
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)


@cache
def _vector(weights: Weights) -> Floats:
    return np.array(astuple(weights))


def features(question: Question, held: Bools, similarities: Floats) -> Floats:
    """Return (n, 7) features, in the order of `Weights`."""
    counted = question.counted
    terms = max(int(counted.sum()), 1)
    share = held[:, counted].sum(axis=1) / terms
    unknown = (question.trust * question.unknown, question.trust * question.names_unknown)
    of_question = (*unknown, np.log(terms), np.log(max(question.mean_words, 1.0)))
    columns = np.empty((len(held), 3 + len(of_question)))
    columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3:] = 1.0, share, similarities, of_question
    return columns
