"""The arms of recall: facts that share rare words with the query, that mean the like, and their neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np

from workers.core import ranking, signature
from workers.core.arrays import Floats, Ints, Vectors
from workers.core.names import capitalised
from workers.storage import candidates, documents, signatures, words
from workers.storage.candidates import NO_FILTERS, WITHOUT_DOCUMENTS, Matches, Scope
from workers.storage.connection import Connection
from workers.storage.namespaces import Namespace
from workers.storage.words import Term

ARM_SIZE = 200
"""How many candidates each arm brings."""

MATCH_BUDGET = 500
"""From how many matching texts on the rarest words choose, and the common ones only score.

Measured on conversations of 600 turns, recall does not fall even where a tenth of the texts is the limit.
"""

ENOUGH_MATCHES = 20
"""As few are not too few: what shares only common words with the query is found by meaning, if it fits.

Measured on conversations of 600 turns, more brought nothing.
"""

MOST_MATCHES = 5_000
"""No more are read: not for a query of nothing but common words, nor when the counts of words are outdated."""

MOST_TERMS = 64
"""No more words of a query are looked for, however long it is."""

WRITTEN_WEIGHT = 0.25
"""What a word as it is written weighs beside its stem: that all of it fits says more, but it is no second finding."""

PAIR = 2
UNSPACED = "\u0e00"
"""From here on are all scripts without blanks between words (`unspaced` in schema.sql)."""

# ts_rank of j occurrences of one word, for every j that a tsvector can hold.
RANK_OF_OCCURRENCES = np.cumsum(1 / np.arange(1, 257) ** 2) / 1.64493406685


@dataclass(frozen=True, slots=True)
class TextArm:
    """The facts that share words with a query: their BM25 scores, and the best of them; and what may be names in it.

    `whole` is about the score of a fact that holds each word of the query once.
    """

    scores: dict[UUID, float] = field(default_factory=dict)
    best: list[UUID] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    whole: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """What the arms brought: by words, by meaning with each similarity, and the share that similarity deserves."""

    text: TextArm
    near: dict[UUID, float]
    meaning: float = ranking.EVEN

    def brought(self, id_: UUID, by_graph: dict[UUID, str]) -> str:
        """Return what brought a fact: words, a link or entity, meaning, or a neighbour in the conversation."""
        if self.text.scores.get(id_, 0.0) > 0:
            return "words"
        return by_graph.get(id_) or ("meaning" if id_ in self.near else "nearby")

    def promising(self, most: int | None = None) -> dict[UUID, float]:
        """Return the candidates of both arms that are worth reading, best first, with what the arms know of each.

        What the vector arm did not bring counts as similar as the last that it brought.
        """
        ids = list(dict.fromkeys([*self.text.best, *self.near]))
        least = min(self.near.values(), default=0.0)
        by_words = np.array([self.text.scores.get(id_, 0.0) for id_ in ids])
        relevance = ranking.fuse(by_words, np.array([self.near.get(id_, least) for id_ in ids]), self.meaning)
        return {ids[i]: float(relevance[i]) for i in np.argsort(-relevance, kind="stable")[:most]}


def text_arm(db: Connection, namespace: Namespace, query: str, scope: Scope) -> TextArm:
    """Return the facts of a namespace that hold any word of the query, scored by BM25.

    A query of nothing but stop words has none to look for; within a tag it brings whatever has the tag.
    """
    terms = informative(words.of_query(db, namespace.id, query), MOST_TERMS)
    if not terms and scope.filters.tag is None:
        return TextArm()
    chosen = choose(terms, MATCH_BUDGET, ENOUGH_MATCHES)
    found = candidates.matches(db, namespace, [term.lexeme for term in terms], chosen, scope, MOST_MATCHES)
    names = capitalised(query, {term.lexeme for term in terms})
    if not found.ids:
        return TextArm(names=names)
    scores, whole = _bm25(found, terms, namespace, all_read=len(chosen) == len(terms))
    order = np.argsort(-scores, kind="stable")[:ARM_SIZE]
    return TextArm(dict(zip(found.ids, scores.tolist(), strict=True)), [found.ids[i] for i in order], names, whole)


def informative(terms: Sequence[Term], most: int) -> list[Term]:
    """Return the terms that say most: the rarest of those that are known, then others, up to `most`.

    Where words are written without blanks, characters of which pairs are made say nothing that the pairs do not.
    """
    pairs = "".join(term.lexeme for term in terms if len(term.lexeme) == PAIR and term.lexeme[0] >= UNSPACED)
    alone = [term for term in terms if len(term.lexeme) > 1 or term.lexeme < UNSPACED or term.lexeme not in pairs]
    return sorted(alone, key=lambda term: (term.facts == 0, term.facts, term.lexeme))[:most]


def choose(terms: Sequence[Term], budget: int, enough: int) -> list[str]:
    """Return the rarest terms: as many as stay within the budget of facts, and more until there are enough facts."""
    rarest_first = sorted(terms, key=lambda term: (term.facts, term.lexeme))
    totals = np.cumsum([term.facts for term in rarest_first])
    within = int(np.searchsorted(totals, budget, side="right"))
    needed = int(np.searchsorted(totals, enough)) + 1
    return [term.lexeme for term in rarest_first[: max(within, needed)]]


def occurrences(ranks: Floats) -> Ints:
    """Return how often a word occurs, from its `ts_rank` with all weights 1."""
    middle = (RANK_OF_OCCURRENCES[1:] + RANK_OF_OCCURRENCES[:-1]) / 2
    times: Ints = np.where(ranks > 0, np.searchsorted(middle, ranks) + 1, 0)
    return times


def _bm25(found: Matches, terms: Sequence[Term], namespace: Namespace, *, all_read: bool) -> tuple[Floats, float]:
    """Return the scores of those found, and that of a fact of mean length that holds each term once."""
    times = occurrences(np.array(found.ranks, dtype=np.float64).reshape(len(found.ids), len(terms)))
    lengths = np.rint(np.array(found.lengths, dtype=np.float64)).astype(np.int64)
    held = (times > 0).sum(axis=0)
    if not all_read or len(found.ids) >= MOST_MATCHES:
        held = np.maximum(held, [term.facts for term in terms])
    documents = max(namespace.counted_facts, len(found.ids))
    mean = namespace.counted_words / namespace.counted_facts if namespace.counted_facts else float(lengths.mean())
    weights = ranking.inverse_document_frequency(held, documents)
    weights = weights * np.array([1.0 if term.stem else WRITTEN_WEIGHT for term in terms])
    return ranking.scores(times, lengths, weights, mean), float(weights.sum())


def vector_arm(db: Connection, namespace: Namespace, query: Vectors, scope: Scope) -> dict[UUID, float]:
    """Return the facts of a namespace whose signatures are nearest to the (dims,) query's, each with its similarity."""
    own = signature.encode(query[None, :])[0]
    if scope.filters.filters() == WITHOUT_DOCUMENTS.filters() and not documents.any_chunk(db, namespace.id):
        scope = replace(scope, filters=NO_FILTERS)
    differing = signatures.nearest(db, namespace.id, own, ARM_SIZE, scope)
    cosines = signature.cosines(np.fromiter(differing.values(), np.float64, len(differing)))
    return dict(zip(differing, cosines.tolist(), strict=True))
