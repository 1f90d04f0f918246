"""Relevance: the probability that a fact answers a question, comparable across questions and namespaces.

A score only orders the results of one question; relevance is absolute. It is a logistic regression over the share of
the question that the fact says, their similarity, and the part of the question unknown to the namespace: its words, and
above all its names. A word of the question that the fact's best passage holds counts fully, another as far as a word of
a short fact is similar. Weights belong to an embedder, since embedders differ in the similarity of unrelated texts.
They were trained on questions about their own and other conversations
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
    said: float
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
        """Return the default floor: by the length and number of facts; lower where there is little text.

        The more facts there are, the more relevant is the best irrelevant one.
        """
        short, long, many = self.floors
        asker = SHARE_OF_PERSONAL if question.personal else 1.0
        full = ranking.by_length((asker * short, long + question.crowd * (many - long)), question.mean_words)
        few = ranking.by_length((asker * FLOOR_OF_FEW, FLOOR_OF_FEW), question.mean_words)
        return few + math.sqrt(1 - question.few) * (full - few)

    def certain(self, question: "Question") -> float:
        """Return the relevance from which an answer counts as used: more than the floor where there is little text."""
        return max(self.floor(question), question.few * CERTAIN)


NOT_MANY, MANY = 250, 1_000
"""Numbers of long facts between which the default floor rises.

They are those of the chats that were measured, of about 250 and 1,100 messages (BEAM-100K and -500K 1-10). In the
latter, the floor of the former leaves 35 % of the questions of other chats without answer, and this one 52 %.
"""

FLOOR_OF_FEW = 0.035
"""Default floor where there is no text; it rises with the square root of the text, up to `ENOUGH_WORDS`.

In namespaces of 15 to 100 statements (`quality`), 3 % of the questions find nothing although the right statement is
there, and 33 % of the questions about other people's statements find nothing.
"""

SHARE_OF_PERSONAL = 0.7
"""Share of the floor of short facts for a question about the speaker, which a memory of the speaker may well answer."""

PERSONAL = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours|user)\b", re.IGNORECASE)

CERTAIN = 0.3
"""Relevance from which an answer counts as used in a namespace of a few facts."""

EPSILON = 1e-9

ODDS_OF_BEST = 0.2
"""Share of the best result's odds that further results need in a namespace of a few facts, unless `KEPT` is enough.

Chosen among 0.1 to 0.3 on thirty facts of which one or two fit (`quality --beliefs`), where the answers' precision and
recall are 0.68 and 0.98 with static vectors, and 0.66 and 0.96 with hashing.
"""

KEPT = 0.6
"""Relevance from which a result is kept however relevant the best one is, since it may update that one."""

TOP = 10
"""Number of the best candidates that decide whether anything answers a question, whatever the limit."""

OUTSTANDING = 4.0
"""Times the greatest odds of the first ten that a candidate behind them needs to stand above them.

A text of many words has a vector that says little and a low salience, though one of its passages may contain all that
is asked. Evidence recall@10 stays the same on LoCoMo 1-5, BEAM-100K and -500K 1-10, and loses 0.06 points on Memora.
"""

LIKELY = 0.5
"""Minimum relevance of an outstanding fact; a long text that alone has the only word of a question has hardly more."""

LIFT = 1e-6
"""Distance by which it stands above them."""

HASHING = Model(
    much=Weights(
        start=-6.924, said=7.077, similarity=2.974, unknown=-2.469,
        names_unknown=-2.809, question_words=1.226, fact_words=0.022,
    ),
    little=Weights(
        start=-5.583, said=9.806, similarity=-0.112, unknown=0.0,
        names_unknown=-7.999, question_words=0.853, fact_words=0.436,
    ),
    floors=(0.15, 0.27, 0.47),
)  # fmt: skip
"""Trained on LoCoMo 1-5, BEAM-100K 1-10 and five personas of Memora with the hashing embedder."""

STATIC = Model(
    much=Weights(
        start=-6.794, said=6.835, similarity=1.515, unknown=-1.907,
        names_unknown=-2.786, question_words=1.209, fact_words=0.049,
    ),
    little=Weights(
        start=-5.564, said=8.089, similarity=5.496, unknown=0.0,
        names_unknown=-7.640, question_words=0.383, fact_words=0.345,
    ),
    floors=(0.11, 0.36, 0.5),
)  # fmt: skip
"""The same for static vectors; also the closest for models that have no weights of their own."""

ONNX = Model(
    much=Weights(
        start=-6.999, said=4.800, similarity=5.069, unknown=-2.550,
        names_unknown=-2.701, question_words=0.879, fact_words=0.149,
    ),
    little=Weights(
        start=-5.613, said=6.825, similarity=6.357, unknown=0.0,
        names_unknown=-7.594, question_words=0.235, fact_words=0.537,
    ),
    floors=(0.2, 0.35, 0.45),
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
        word_weights: how much each of the k stems says; None if all say as much.
    """

    document_frequencies: Ints
    facts: int
    mean_words: float
    words: Sequence[str] = ()
    names_unknown: bool = False
    personal: bool = False
    word_weights: Floats | None = None

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

    @cached_property
    def shares(self) -> Floats:
        """Return the share of each of the k stems in what those that count say, (k,)."""
        counted = self.counted.astype(np.float64)
        weights = counted if self.word_weights is None else counted * self.word_weights
        return weights / max(float(weights.sum()), EPSILON)

    @property
    def unknown(self) -> float:
        """Return the share of the question's information that occurs in no fact of the namespace, in [0, 1]."""
        frequencies = self.document_frequencies[self.counted]
        information = ranking.inverse_document_frequency(frequencies, max(self.facts, 1))
        total = float(information.sum())
        return float(information[frequencies == 0].sum()) / total if total > 0 else 0.0


def names_unknown(question: str, frequencies: Mapping[str, int]) -> bool:
    """Return whether a question contains names, none of which occurs in a fact.

    `frequencies` has the number of facts that contain each of its words, stems and written forms.
    """
    asked = [one for one in names.names_in_question(question) if not DATE.fullmatch(one)]
    every = tuple(map(_stem, frequencies))
    known = tuple(stem for stem, facts in zip(every, frequencies.values(), strict=True) if facts)
    return any(one.startswith(every) for one in asked) and not any(one.startswith(known) for one in asked)


def is_personal(question: str) -> bool:
    """Return whether a question is about its speaker, or about the user of an agent that asks."""
    return PERSONAL.search(question) is not None


def _stem(word: str) -> str:
    """Return the common beginning of a word and its stem: all but the last letter, which some stems change."""
    return word[: max(len(word) - 1, 3)]


def relevance(question: Question, held: Bools, alike: Floats, similarities: Floats, model: Model = HASHING) -> Floats:
    """Return n relevances in [0, 1].

    Args:
        question: the question as seen from the namespace.
        held: which of the k stems of the question each fact's best passage contains, (n, k).
        alike: cosine of each stem's word and the most similar word of each fact, (n, k); 0 where they are not compared.
        similarities: cosine of the question and each fact; 0 where there is none.
        model: that of the embedder.
    """
    odds = features(question, held, alike, similarities) @ model.weights(question.trust)
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)


def outstanding(scores: Floats, relevances: Floats) -> Floats:
    """Return what n scores gain: candidates far more relevant than each of the first ten stand above them."""
    first = np.argsort(-scores, kind="stable")[:TOP]
    if len(first) == len(scores):
        return np.zeros(len(scores))
    odds = relevances / np.maximum(1 - relevances, LIFT)
    lifted = (relevances >= LIKELY) & (odds >= OUTSTANDING * odds[first].max())
    lifted[first] = False
    return np.where(lifted, scores[first[0]] - scores + LIFT * (1 + relevances), 0.0)


def times_odds(relevance: float, factor: float) -> float:
    """Return the relevance whose odds are so many times those of another."""
    return factor * relevance / (1 + (factor - 1) * relevance)


@cache
def _vector(weights: Weights) -> Floats:
    return np.array(astuple(weights))


def features(question: Question, held: Bools, alike: Floats, similarities: Floats) -> Floats:
    """Return (n, 7) features, in the order of `Weights`."""
    terms = int(question.counted.sum())
    # One similar word is weaker evidence if the question has no other word.
    said = np.where(held, 1.0, alike * terms / (terms + 1)) @ question.shares
    columns = np.empty((len(held), 7))
    columns[:, 0], columns[:, 1], columns[:, 2] = 1.0, said, similarities
    columns[:, 3:5] = question.trust * question.unknown, question.trust * question.names_unknown
    columns[:, 5:] = math.log(max(terms, 1)), math.log(max(question.mean_words, 1.0))
    return columns
