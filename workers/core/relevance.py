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
from functools import cache, cached_property

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


FEW_WORDS, ENOUGH_WORDS = 20, 10_000
"""Words in a namespace at which the absence of a word begins to count, and at which it counts fully.

Of 35 facts of 20 words each, the answers to most questions lack a word of the question.
"""


@dataclass(frozen=True, slots=True)
class Model:
    """What an embedder's similarities and the words of a question say: weights where there is much text, and little.

    In between, weights follow `Question.trust`.

    Attributes:
        much: weights in a namespace of at least `ENOUGH_WORDS`.
        little: weights in one of `FEW_WORDS`.
        floors: default floor of the best result's relevance, where facts are short, where they are long and hold words
            of any question, and where there are `MANY` of these. It leaves out the answers to most questions about
            other conversations and costs about one point of recall@10.
    """

    much: Weights
    little: Weights
    floors: tuple[float, float, float]

    def weights(self, trust: float) -> Floats:
        """Return the (7,) weights in a namespace with so much `Question.trust`."""
        much, little = _vector(self.much), _vector(self.little)
        return little + trust * (much - little)

    def floor(self, question: "Question") -> float:
        """Return the default floor: by the length and number of facts; where they are few, by the question.

        The more facts there are, the more relevant is the best irrelevant one; of some sentences, one is always a
        little similar to any question. A single fact answers only a small part of a long prompt. A question about its
        speaker is likely to have an answer.
        """
        short, long, many = self.floors
        full = ranking.by_length((short, long + question.crowd * (many - long)), question.mean_words)
        brief = min(ranking.BRIEF / max(len(question.document_frequencies), 1), 1.0)
        tiny = max(1 - question.text / TINY, 0.0)
        low = FLOOR_OF_PERSONAL if question.personal else FLOOR_OF_SENTENCES
        sentences = low + tiny * (FLOOR_OF_SENTENCES - low + TINY_MORE)
        few = ranking.by_length((FLOOR_OF_FEW + brief * (sentences - FLOOR_OF_FEW), FLOOR_OF_FEW), question.mean_words)
        return full + question.few * (few - full)

    def certain(self, question: "Question") -> float:
        """Return the relevance from which an answer counts as used: more than the floor where there is little text."""
        return max(self.floor(question), question.few * CERTAIN)


NOT_MANY, MANY = 250, 1_000
"""Numbers of long facts between which the default floor rises.

They are those of the chats that were measured, of about 250 and 1,100 messages (BEAM-100K and -500K 1-10). In the
latter, the floor of the former leaves 31 % of the questions of other chats without answer, and this one 47 %.
"""

FLOOR_OF_FEW, FLOOR_OF_SENTENCES = 0.1, 0.15
"""Default floor where facts are few; the higher one is for short questions where facts are short.

Where a namespace has 2, 4 or 8 turns of a conversation, among them the answer, 0.16 rejects 42, 75 and 90 % of the
questions about other conversations on LoCoMo 1-5 (18, 49 and 82 with 0.1), and loses the answers to 0, 0 and 1 % (none
with 0.1); of long messages, 0.1 loses 1 to 3 % already. What answers a prompt of 65 stems has 0.17 to 0.23.
"""

FLOOR_OF_PERSONAL = 0.07
"""The higher one for questions about the speaker, which a memory of the speaker is likely to answer unless it is tiny.

Of questions about 15 to 100 statements (`quality`), 44 % of which paraphrase them, 32 % find no right one with 0.17 for
all, and 17 % with these floors. The price is paid where a question about the speaker reaches the memory of another:
26 % of them find nothing, instead of 60 %.
"""

PERSONAL = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours|user)\b", re.IGNORECASE)

TINY, TINY_MORE = 100, 0.03
"""Number of words below which the floor of sentences rises, and by how much it is higher in an empty namespace.

There a question about the speaker has the same floor as others.
"""

CERTAIN = 0.3
"""Relevance from which an answer counts as used in a namespace of a few facts."""

ODDS_OF_BEST = 0.3
"""Share of the best result's odds that further results need in a namespace of a few facts, unless `KEPT` is enough.

Chosen among 0.1 to 0.4 on thirty facts of which one or two fit (`quality --beliefs`), as the greatest that keeps a
recall of 0.95 with both embedders. Windows of 35 turns of a conversation, whose neighbours are shown as well, lose 0.4
points of recall by it.
"""

KEPT = 0.39
"""Relevance from which a result is kept however relevant the best one is, since it may update that one."""

TOP = 10
"""Number of the best candidates that decide whether anything answers a question, whatever the limit."""

OUTSTANDING = 4.0
"""Times the greatest odds of the first ten that a candidate behind them needs to stand above them.

A text of many words has a vector that says little and a low salience, though one of its passages may contain all that
is asked. Evidence recall@10 stays the same on LoCoMo 1-5, BEAM-100K and -500K 1-10, and loses 0.06 points on Memora.
"""

LIFT = 1e-6
"""Distance by which it stands above them."""

HASHING = Model(
    much=Weights(
        start=-3.596, held=4.175, similarity=4.537, unknown=-3.975, names_unknown=-2.960,
        question_words=0.833, fact_words=-0.126,
    ),
    little=Weights(
        start=-2.635, held=5.366, similarity=2.521, unknown=0.0, names_unknown=-8.335,
        question_words=0.554, fact_words=0.350,
    ),
    floors=(0.1, 0.2, 0.4),
)  # fmt: skip
"""Trained on LoCoMo 1-5, BEAM-100K 1-10 and five personas of Memora with the hashing embedder."""

STATIC = Model(
    much=Weights(
        start=-3.530, held=3.158, similarity=4.054, unknown=-3.026, names_unknown=-2.835,
        question_words=0.527, fact_words=-0.040,
    ),
    little=Weights(
        start=-3.001, held=4.072, similarity=9.483, unknown=0.0, names_unknown=-8.788,
        question_words=-0.100, fact_words=0.174,
    ),
    floors=(0.13, 0.24, 0.4),
)  # fmt: skip
"""The same for static vectors; also the closest for models that have no weights of their own."""

ONNX = Model(
    much=Weights(
        start=-4.859, held=2.335, similarity=6.435, unknown=-3.198, names_unknown=-2.710,
        question_words=0.491, fact_words=0.103,
    ),
    little=Weights(
        start=-3.609, held=1.987, similarity=8.288, unknown=0.0, names_unknown=-6.650,
        question_words=-0.098, fact_words=0.519,
    ),
    floors=(0.12, 0.15, 0.28),
)  # fmt: skip
"""The same for MiniLM by onnxruntime."""


def of_embedder(name: str) -> Model:
    """Return what belongs to an embedder by its name, which starts with its provider."""
    return {"hashing": HASHING, "onnx": ONNX}.get(name.split(":", maxsplit=1)[0], STATIC)


DATE = re.compile(
    r"(?:19|20)\d\d|[0-3]?\d(?:st|nd|rd|th)?|(?:janu|febru)ar[yi]|march|april|may|june?|jul[yi]|august"
    r"|(?:sept|nov|dec)emb(?:er)?|octob(?:er)?|jan|feb|mar|apr|jul|aug|sept?|oct|nov|dec"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
)
"""Words of dates. Facts have a date beside their text, so the absence of such a word says nothing."""


@dataclass(frozen=True)
class Question:
    """A question as seen from a namespace.

    Attributes:
        document_frequencies: number of facts that contain each of k stems of the question.
        facts: number of facts in the namespace.
        mean_words: their mean number of words.
        words: the k stems.
        names_unknown: whether the question contains names, none of which occurs in a fact.
        personal: whether it is about its speaker.
    """

    document_frequencies: Ints
    facts: int
    mean_words: float
    words: Sequence[str] = ()
    names_unknown: bool = False
    personal: bool = False

    def among(self, facts: int) -> "Question":
        """Return the same question for a namespace of at least that many facts."""
        return replace(self, facts=max(self.facts, facts))

    @property
    def trust(self) -> float:
        """Return how much the absence of a word counts, in [0, 1]: little where there is little text."""
        words = max(self.text, FEW_WORDS)
        return min(math.log(words / FEW_WORDS) / math.log(ENOUGH_WORDS / FEW_WORDS), 1.0)

    @property
    def text(self) -> float:
        """Return the number of words in the namespace."""
        return self.facts * self.mean_words

    @property
    def few(self) -> float:
        """Return how much text is missing to know the namespace, in [0, 1]."""
        return max(1 - self.text / ENOUGH_WORDS, 0.0)

    @property
    def crowd(self) -> float:
        """Return 0 up to `NOT_MANY` facts, 1 from `MANY` on; in between it follows the logarithm of their number."""
        return min(max(math.log(max(self.facts, 1) / NOT_MANY) / math.log(MANY / NOT_MANY), 0.0), 1.0)

    @cached_property
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
    asked = [one for one in names.names_in_question(question) if not DATE.fullmatch(one)]
    found = [[facts for word, facts in frequencies.items() if one.startswith(_stem(word))] for one in asked]
    return any(found) and not any(map(any, found))


def is_personal(question: str) -> bool:
    """Return whether a question is about its speaker, or about the user of an agent that asks."""
    return PERSONAL.search(question) is not None


def _stem(word: str) -> str:
    """Return the common beginning of a word and its stem: all but the last letter, which some stems change."""
    return word[: max(len(word) - 1, 3)]


def relevance(question: Question, held: Bools, similarities: Floats, model: Model = HASHING) -> Floats:
    """Return n relevances in [0, 1].

    Args:
        question: the question as seen from the namespace.
        held: which of the k stems of the question each fact's best passage contains, (n, k).
        similarities: cosine of the question and each fact; 0 where there is none.
        model: that of the embedder.
    """
    odds = features(question, held, similarities) @ model.weights(question.trust)
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)


def outstanding(scores: Floats, relevances: Floats) -> Floats:
    """Return what n scores gain: candidates far more relevant than each of the first ten stand above them."""
    first = np.argsort(-scores, kind="stable")[:TOP]
    if len(first) == len(scores):
        return np.zeros(len(scores))
    odds = relevances / np.maximum(1 - relevances, LIFT)
    lifted = (relevances >= KEPT) & (odds >= OUTSTANDING * odds[first].max())
    lifted[first] = False
    return np.where(lifted, scores[first[0]] - scores + LIFT * (1 + relevances), 0.0)


def times_odds(relevance: float, factor: float) -> float:
    """Return the relevance whose odds are so many times those of another."""
    return factor * relevance / (1 + (factor - 1) * relevance)


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
