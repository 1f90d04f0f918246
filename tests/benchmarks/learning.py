"""`python -m tests.benchmarks.learning NAME`: learn the weights of salience or of relevance, and print them.

The conversations are those of the benchmark `quality`; weights are learnt on the training halves.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from tests.benchmarks import conversations
from tests.benchmarks.conversations import Conversation, Turn
from tests.benchmarks.quality.measures import foreign
from tests.benchmarks.quality.words import Bm25
from workers.core import ranking, relevance, salience
from workers.core.arrays import Floats, Vectors
from workers.core.salience import Statement
from workers.embedding import Embedder, make_embedder, word_vectors
from workers.memory.recall import stems
from workers.settings import Settings
from workers.storage.candidates import SHORT

RIDGE = 1e-3
STEPS = 100
BEST_OF_FOREIGN = 3
"""How many of the best facts count as irrelevant to a question of another conversation."""

CANDIDATES = 10

PARTS = (5, 12, 35)
"""Numbers of facts in the parts of conversations from which is learnt what relevance is where there is little text."""

MOST_PARTS = 20
"""Most parts of one size of a conversation."""

FACTS_PER_QUESTION = 12
FEW_ANSWERS = 2
RIDGE_OF_LITTLE = 1e-2

OF_RELEVANCE = tuple(one.name for one in fields(relevance.Weights))
UNKNOWN = np.array([name == "unknown" for name in OF_RELEVANCE])


@dataclass(frozen=True, slots=True)
class Examples:
    """(n, features), the first of which is 1, with n answers, each 0 or 1, of one group."""

    features: Floats
    answers: Floats
    group: str


def main() -> None:
    """Learn the named weights."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.learning", description=__doc__)
    parser.add_argument("name", choices=["salience", "relevance"])
    parser.add_argument("--conversations", type=Path, metavar="FILE")
    parser.add_argument("--beam", type=Path, metavar="FOLDER")
    parser.add_argument("--memora", type=Path, metavar="FOLDER")
    parser.add_argument("--realtalk", type=Path, metavar="FOLDER")
    parser.add_argument("--embedder", default="hashing", help="whose weights of relevance (%(default)s)")
    given = parser.parse_args()
    sets = conversations.sets(given.conversations, given.beam, given.memora, given.realtalk)
    del sets[conversations.OWN]  # too small to learn from
    if given.name == "salience":
        _salience(sets)
    else:
        _relevance(sets, make_embedder(Settings.from_environment({"EBB_EMBEDDER": given.embedder})))


def _salience(sets: Mapping[str, Sequence[Conversation]]) -> None:
    """Learn which turns are evidence, where facts are short on all sets, and where they are long on those with such.

    With the role of the speaker, and equally often without it if sets have roles.
    """
    examples = {
        name: [
            Examples(_turns(one, roles=roles), _asked_for(one), f"{name} {roles}")
            for roles in (True, False)
            if roles or any(turn.role for turn in every[0].turns)
            for one in every
        ]
        for name, every in sets.items()
    }
    long = [name for name, every in sets.items() if _mean_words(every) >= ranking.LONG]
    _print(tuple(salience.WEIGHTS), _centred([one for each in examples.values() for one in each]))
    _print(tuple(salience.WEIGHTS), _centred([one for name in long for one in examples[name]]))


def _mean_words(every: Sequence[Conversation]) -> float:
    return float(np.mean([len(turn.fact.text.split()) for one in every for turn in one.turns]))


def _centred(examples: Sequence[Examples]) -> Floats:
    """Return the weights by which an ordinary turn has 0.5: the mean of the medians of the groups."""
    learnt = _fit(examples, balanced=False)
    groups = {one.group for one in examples}
    odds = {
        group: np.concatenate([one.features @ learnt for one in examples if one.group == group]) for group in groups
    }
    learnt[0] -= np.mean([np.median(own) for own in odds.values()])
    return learnt


def _turns(conversation: Conversation, *, roles: bool) -> Floats:
    texts = [turn.fact.text for turn in conversation.turns]
    held = Counter(word for text in texts for word in salience.words(text))
    statements = [
        Statement(turn.fact.text, turn.role if roles else None, before)
        for turn, before in zip(conversation.turns, _before(conversation.turns), strict=True)
    ]
    return salience.features(statements, {word: count - 1 for word, count in held.items()}, len(texts) - 1, set())


def _before(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the text of the preceding turn of each turn in its session; empty for the first one."""
    for i, turn in enumerate(turns):
        yield turns[i - 1].fact.text if i and turns[i - 1].fact.session == turn.fact.session else ""


def _asked_for(conversation: Conversation) -> Floats:
    evidence = frozenset[str]().union(*(one.evidence for one in conversation.asked))
    return np.array([turn.fact.text in evidence for turn in conversation.turns], np.float64)


def _relevance(sets: Mapping[str, Sequence[Conversation]], embedder: Embedder) -> None:
    """Learn what distinguishes evidence from the best results for questions of other conversations.

    First in whole conversations, then the difference for little text, in parts of them.
    """
    known = _Known(embedder)
    whole = [one for name, every in sets.items() for one in _answers(name, every, known)]
    much = _fit([one.examples for one in whole], balanced=True)
    _print(OF_RELEVANCE, much)
    parts = [
        one
        for name, every in sets.items()
        for size in PARTS
        for one in _answers(f"{name} {size}", list(_parts(every, size)), known)
    ]
    _print(OF_RELEVANCE, _fit_little(parts, much))


def _parts(every: Sequence[Conversation], size: int) -> Iterator[Conversation]:
    """Yield disjoint parts of that many facts with questions about them, two consecutive ones of one conversation.

    So a question of another part is equally often of the same conversation as of another.
    """
    cut = [list(_cut(one, size, random.Random(0))) for one in every]
    for first in range(0, max(map(len, cut), default=0), 2):
        for parts in cut:
            yield from parts[first : first + 2]


def _cut(one: Conversation, size: int, chance: random.Random) -> Iterator[Conversation]:
    turns = {turn.fact.text: turn for turn in one.turns}
    asked = [each for each in one.answerable if len(each.evidence) <= FEW_ANSWERS and each.evidence <= turns.keys()]
    chance.shuffle(asked)
    evidence = frozenset[str]().union(*(each.evidence for each in asked))
    others = [text for text in turns if text not in evidence]
    chance.shuffle(others)
    questions = max(size // FACTS_PER_QUESTION, 1)
    for place in range(MOST_PARTS):
        own = asked[place * questions : (place + 1) * questions]
        texts = frozenset[str]().union(*(each.evidence for each in own))
        rest = others[place * size : (place + 1) * size - len(texts)]
        if not own or len(rest) + len(texts) < size:
            return
        name = f"{one.name}, part {place}"
        mine = [replace(each, namespace=name) for each in own]
        yield replace(one, name=name, turns=[turns[text] for text in (*texts, *rest)], asked=mine)


def _answers(name: str, every: Sequence[Conversation], known: "_Known") -> "Iterator[_Answers]":
    memories = {one.name: _Memory(one, known) for one in every}
    for asked in [question for one in every for question in one.answerable] + foreign(every):
        best, features, trust = memories[asked.namespace].best(asked.text)
        right = np.array([text in asked.evidence for text in best])
        if asked.evidence:
            yield _Answers(Examples(features[right], np.ones(int(right.sum())), name), trust)
        else:
            most = min(BEST_OF_FOREIGN, len(best))
            yield _Answers(Examples(features[:most], np.zeros(most), name), trust)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Examples of one question, and its `trust`."""

    examples: Examples
    trust: float


class _Known:
    """An embedder that keeps the vectors of texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._vectors: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dims) vectors."""
        new = [text for text in texts if text not in self._vectors]
        self._vectors |= dict(zip(new, self.embedder.embed(new), strict=True)) if new else {}
        return np.stack([self._vectors[text] for text in texts])


class _Memory:
    """A conversation, searched by words and by meaning."""

    def __init__(self, conversation: Conversation, known: _Known) -> None:
        self._texts = list(dict.fromkeys(turn.fact.text for turn in conversation.turns))
        self._words = Bm25(80)
        self._words.add_many("", self._texts)
        self._embedder = known.embedder
        self._vectors = known.embed(self._texts)

    def best(self, question: str) -> tuple[list[str], Floats, float]:
        """Return the best texts with their features, in the order of the weights, and the question's trust."""
        found = self._words.terms("", question)
        similarities = (self._vectors @ self._embedder.embed_queries([question])[0]).astype(np.float64)
        meaning = ranking.by_length(self._embedder.weights, found.mean_words)
        weights = ranking.inverse_document_frequency(found.document_frequencies, len(self._texts))
        fit = ranking.fuse(found.scores, similarities, meaning, ranking.enough(weights))
        order = np.argsort(-fit, kind="stable")[:CANDIDATES]
        said = stems.words_of(question, found.words)
        vectors = word_vectors.of_words(said)
        frequencies = dict(zip(found.words, found.document_frequencies.tolist(), strict=True))
        seen = relevance.Question(
            found.document_frequencies,
            len(self._texts),
            found.mean_words,
            found.words,
            relevance.names_unknown(question, frequencies),
            word_weights=word_vectors.weights(said, vectors),
        )
        best = [self._texts[i] for i in order]
        short = [text if len(text.encode()) <= SHORT else None for text in best]
        alike = stems.alike(vectors, short, np.arange(len(best)))
        return best, relevance.features(seen, found.held[order], alike, similarities[order]), seen.trust


def _fit(examples: Sequence[Examples], *, balanced: bool) -> Floats:
    """Return the weights of a logistic regression, the first that of a constant, by Newton's method with a ridge.

    Each group has the same weight, and where it is `balanced` both answers in it. Where it is not, groups differ in how
    often the answer is 1: each has a constant of its own, and the mean of these is returned.
    """
    features = np.concatenate([one.features for one in examples])[:, 1:]
    answers = np.concatenate([one.answers for one in examples])
    names = np.concatenate([np.full(len(one.answers), one.group) for one in examples])
    groups = sorted(set(names.tolist()))
    weights = _weights(answers, names, balanced=balanced)
    mean = np.average(features, axis=0, weights=weights)
    deviation = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weights)) + 1e-9
    constants = np.ones((len(answers), 1)) if balanced else np.stack([names == one for one in groups], axis=1)
    columns = np.hstack([(features - mean) / deviation, constants.astype(np.float64)])
    found = np.zeros(columns.shape[1])
    penalty = np.where(np.arange(len(found)) < len(mean), RIDGE, 1e-9) * len(answers)
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-columns @ found))
        slope = columns.T @ (weights * (likely - answers)) + penalty * found
        curvature = (columns * (weights * likely * (1 - likely))[:, None]).T @ columns + np.diag(penalty)
        found -= np.linalg.solve(curvature, slope)
    slopes = found[: len(mean)] / deviation
    return np.concatenate([[found[len(mean) :].mean() - slopes @ mean], slopes])


def _fit_little(every: Sequence[_Answers], much: Floats) -> Floats:
    """Return the weights for no text, given those for much text, so that interpolated weights fit.

    The weight of unknown words is 0, since nothing is known of an empty namespace.
    """
    examples = [one.examples for one in every]
    answers = np.concatenate([one.answers for one in examples])
    groups = np.concatenate([np.full(len(one.answers), one.group) for one in examples])
    weights = _weights(answers, groups, balanced=True)
    start = np.where(UNKNOWN, 0.0, much)
    known = np.concatenate([one.examples.features @ (start + one.trust * (much - start)) for one in every])
    columns = np.concatenate([(1 - one.trust) * one.examples.features[:, ~UNKNOWN] for one in every])
    scale = np.sqrt(np.average(columns**2, axis=0, weights=weights)) + 1e-9

    def loss(change: Floats) -> tuple[float, Floats]:
        odds = known + columns / scale @ change
        own = weights @ (np.logaddexp(0, odds) - answers * odds) / len(answers) + RIDGE_OF_LITTLE / 2 * change @ change
        slope = (weights * (1 / (1 + np.exp(-odds)) - answers)) @ (columns / scale) / len(answers)
        return float(own), slope + RIDGE_OF_LITTLE * change

    found = minimize(loss, np.zeros(columns.shape[1]), jac=True)
    start[~UNKNOWN] += found.x / scale
    return start


def _weights(answers: Floats, names: "np.ndarray[tuple[int], np.dtype[np.str_]]", *, balanced: bool) -> Floats:
    cells = [f"{name} {answer}" if balanced else name for name, answer in zip(names, answers, strict=True)]
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    weights: Floats = len(answers) / len(counts) / counts[place]
    return weights


def _print(names: Sequence[str], learnt: Floats) -> None:
    for name, weight in zip(names, learnt.tolist(), strict=True):
        print(f"{name}: {weight:.3f}")  # noqa: T201 - what the script is for


if __name__ == "__main__":
    main()
