"""`python -m tests.benchmarks.learning NAME`: learn the weights of salience or of relevance, and print them.

The conversations are those that the benchmark `quality` takes; weights are learnt on the halves for that.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from tests.benchmarks import conversations
from tests.benchmarks.conversations import Conversation, Turn
from tests.benchmarks.quality.measures import foreign
from tests.benchmarks.quality.words import Bm25
from workers.core import ranking, relevance, salience
from workers.core.arrays import Floats
from workers.core.salience import Statement
from workers.embedding import Embedder, make_embedder
from workers.settings import Settings

RIDGE = 1e-3
STEPS = 100
BEST_OF_FOREIGN = 3
"""How many of the best facts count as irrelevant to a question of another conversation."""

CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Examples:
    """(n, features), the first of which is 1, with n answers, each 0 or 1, all of one group."""

    features: Floats
    answers: Floats
    group: str


def main() -> None:
    """Learn what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.learning", description=__doc__)
    parser.add_argument("name", choices=["salience", "relevance"])
    parser.add_argument("--conversations", type=Path, metavar="FILE")
    parser.add_argument("--beam", type=Path, metavar="FOLDER")
    parser.add_argument("--memora", type=Path, metavar="FOLDER")
    parser.add_argument("--embedder", default="hashing", help="whose weights of relevance (%(default)s)")
    given = parser.parse_args()
    sets = conversations.sets(given.conversations, given.beam, given.memora)
    del sets[conversations.OWN]  # too small to learn from
    if given.name == "salience":
        _salience(sets)
    else:
        _relevance(sets, make_embedder(Settings.from_environment({"EBB_EMBEDDER": given.embedder})))


def _salience(sets: Mapping[str, Sequence[Conversation]]) -> None:
    """Learn which turns are evidence; with the role of the speaker, and as often without it where sets give roles."""
    examples = [
        Examples(_turns(one, roles=roles), _asked_for(one), f"{name} {roles}")
        for name, every in sets.items()
        for roles in (True, False)
        if roles or any(turn.role for turn in every[0].turns)
        for one in every
    ]
    learnt = _fit(examples, balanced=False)
    # An ordinary turn has 0.5: the median of each set, and the mean of those.
    groups = {one.group for one in examples}
    odds = {
        group: np.concatenate([one.features @ learnt for one in examples if one.group == group]) for group in groups
    }
    learnt[0] -= np.mean([np.median(own) for own in odds.values()])
    _print(salience.Weights, learnt)


def _turns(conversation: Conversation, *, roles: bool) -> Floats:
    texts = [turn.fact.text for turn in conversation.turns]
    held = Counter(word for text in texts for word in salience.words(text))
    statements = [
        Statement(turn.fact.text, turn.role if roles else None, before)
        for turn, before in zip(conversation.turns, _before(conversation.turns), strict=True)
    ]
    return salience.features(statements, {word: count - 1 for word, count in held.items()}, len(texts) - 1, set())


def _before(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield what was said just before each turn in its session; nothing for the first one."""
    for i, turn in enumerate(turns):
        yield turns[i - 1].fact.text if i and turns[i - 1].fact.session == turn.fact.session else ""


def _asked_for(conversation: Conversation) -> Floats:
    evidence = frozenset[str]().union(*(one.evidence for one in conversation.asked))
    return np.array([turn.fact.text in evidence for turn in conversation.turns], np.float64)


def _relevance(sets: Mapping[str, Sequence[Conversation]], embedder: Embedder) -> None:
    """Learn what distinguishes evidence from the best that is found for questions of other conversations."""
    examples = [one for name, every in sets.items() for one in _answers(name, every, embedder)]
    _print(relevance.Weights, _fit(examples, balanced=True))


def _answers(name: str, every: Sequence[Conversation], embedder: Embedder) -> Iterator[Examples]:
    memories = {one.name: _Memory(one, embedder) for one in every}
    for asked in [question for one in every for question in one.answerable] + foreign(every):
        best, features = memories[asked.namespace].best(asked.text)
        right = np.array([text in asked.evidence for text in best])
        if asked.evidence:
            yield Examples(features[right], np.ones(int(right.sum())), name)
        else:
            yield Examples(features[:BEST_OF_FOREIGN], np.zeros(min(BEST_OF_FOREIGN, len(best))), name)


class _Memory:
    """A conversation, searched by words and by meaning."""

    def __init__(self, conversation: Conversation, embedder: Embedder) -> None:
        self._texts = list(dict.fromkeys(turn.fact.text for turn in conversation.turns))
        self._words = Bm25(80)
        self._words.add_many("", self._texts)
        self._embedder = embedder
        self._vectors = self._embedder.embed(self._texts)

    def best(self, question: str) -> tuple[list[str], Floats]:
        """Return the best texts with their features, in the order of the weights."""
        found = self._words.terms("", question)
        similarities = (self._vectors @ self._embedder.embed_queries([question])[0]).astype(np.float64)
        meaning = ranking.by_length(self._embedder.weights, found.mean_words)
        order = np.argsort(-ranking.fuse(found.scores, similarities, meaning), kind="stable")[:CANDIDATES]
        frequencies = dict(zip(found.words, found.document_frequencies.tolist(), strict=True))
        seen = relevance.Question(
            found.document_frequencies,
            len(self._texts),
            found.mean_words,
            found.words,
            relevance.names_unknown(question, frequencies),
        )
        return [self._texts[i] for i in order], relevance.features(seen, found.held[order], similarities[order])


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


def _weights(answers: Floats, names: "np.ndarray[tuple[int], np.dtype[np.str_]]", *, balanced: bool) -> Floats:
    cells = [f"{name} {answer}" if balanced else name for name, answer in zip(names, answers, strict=True)]
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    weights: Floats = len(answers) / len(counts) / counts[place]
    return weights


def _print(of: type[salience.Weights | relevance.Weights], learnt: Floats) -> None:
    names = [one.name for one in fields(of)]
    print(f"{of.__name__}(")  # noqa: T201 - what the script is for
    for name, weight in zip(names, learnt.tolist(), strict=True):
        print(f"    {name}={weight:.3f},")  # noqa: T201
    print(")")  # noqa: T201


if __name__ == "__main__":
    main()
