"""The arms of recall: search by words and search by vectors.

The text arm scores facts that contain words of the question by BM25, long ones by their best passage.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from workers.core import ranking, relevance, signature
from workers.core.arrays import Bools, Floats, Ints, Key, Vectors
from workers.core.names import capitalised
from workers.core.passages import CUT, best_begin, is_unspaced
from workers.core.relevance import Question, is_personal, names_unknown
from workers.embedding import word_vectors
from workers.memory.recall.stems import Stems, in_best_passage, in_passages, words_of
from workers.storage import candidates, documents, signatures, words
from workers.storage.candidates import NO_FILTERS, WITHOUT_DOCUMENTS, Matches, Scope
from workers.storage.connection import Connection
from workers.storage.namespaces import Namespace
from workers.storage.words import Term

TEXT_ARM_SIZE = 100
"""Number of candidates from the text arm, or the limit if it is higher; long ones are scored by passage."""

MATCH_BUDGET = 500
"""Number of matching texts beyond which only the rarest words select candidates; common ones only score.

Measured on conversations of 600 turns, recall does not fall even with a limit of a tenth of the texts.
"""

ENOUGH_MATCHES = 20
"""Minimum number of matches; measured on conversations of 600 turns, more did not improve recall."""

MOST_MATCHES = 5_000
"""Maximum number of matches that are read, for queries of common words only or outdated counts."""

MOST_TERMS = 64
"""Maximum number of words of a query."""

WRITTEN_WEIGHT = 0.25
"""Weight of a written form relative to its stem: additional evidence, but not an independent match."""

LONG = 90
"""Length of a long text in lexemes: stems and written forms of about 120 words, without stop words."""

USUAL_LENGTH = 10.0
"""Assumed length of facts in words where none has been counted."""

PAIR = 2
CHINESE = re.compile("[\u3400-\u9fff]")

# ts_rank of j occurrences of one word, up to the maximum of a tsvector.
RANK_OF_OCCURRENCES = np.cumsum(1 / np.arange(1, 257) ** 2) / 1.64493406685


@dataclass(frozen=True, slots=True)
class TextArm:
    """The facts that share words with a query: all BM25 scores, the best ones in order, and the query's names.

    `whole` is about the score of a fact that contains each word of the query once, `enough` that from which one counts
    fully (`ranking.enough`). `passages` has the first word of the best passage of each long fact among the best.
    """

    scores: dict[Key, float] = field(default_factory=dict)
    best: list[Key] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    whole: float = 0.0
    enough: float = 0.0
    passages: dict[Key, int] = field(default_factory=dict)
    stems: Stems = field(default_factory=Stems)


@dataclass(frozen=True, slots=True)
class _Found:
    """n facts with the number of occurrences of k terms, (n, k), and their lengths in words."""

    ids: list[Key]
    times: Ints
    lengths: Ints

    @property
    def mean_length(self) -> float:
        """Return the mean length in words; the usual one if there are no facts."""
        return float(self.lengths.mean()) if len(self.lengths) else USUAL_LENGTH

    def only(self, places: Ints) -> "_Found":
        return _Found([self.ids[place] for place in places], self.times[places], self.lengths[places])


def search_text(db: Connection, namespace: Namespace, query: str, scope: Scope) -> TextArm:
    """Return the facts that contain any word of the query, scored by BM25.

    A query of stop words only matches nothing, or with a tag all facts that have it.
    """
    return send_text(db, namespace, query, words.of_query(db, namespace.name, query), scope)()


def send_text(
    db: Connection,
    namespace: Namespace,
    query: str,
    of_query: Sequence[Term],
    scope: Scope,
    limit: int = 0,
    *,
    alone: bool = False,
) -> Callable[[], TextArm]:
    """Send the search of `search_text`; return a function that reads and scores its results.

    If words are searched `alone`, without vectors, and few facts that pass filters or were there at an earlier instant
    have one of the rarest words, the common ones find facts too.
    """
    terms = informative(of_query, MOST_TERMS)
    if not terms and scope.filters.tag is None:
        return TextArm
    chosen = affordable(terms, max(MATCH_BUDGET, limit), ENOUGH_MATCHES)
    lexemes, size = [term.lexeme for term in terms], max(TEXT_ARM_SIZE, limit)
    matches = candidates.matches(db, namespace, lexemes, chosen, scope, MOST_MATCHES)

    def read() -> TextArm:
        found, all_chosen = matches(), len(chosen) == len(terms)
        is_part = scope.selects or scope.past
        if alone and is_part and not all_chosen and len(found.ids) < ENOUGH_MATCHES:
            every = candidates.matches(db, namespace, lexemes, lexemes, scope, MOST_MATCHES)()
            found, all_chosen = (every, True) if len(every.ids) < MOST_MATCHES else (found, False)
        return _scored(db, namespace, query, terms, found, size, all_chosen=all_chosen, among=scope.selects)

    return read


def _scored(
    db: Connection,
    namespace: Namespace,
    query: str,
    terms: Sequence[Term],
    matches: Matches,
    size: int,
    *,
    all_chosen: bool,
    among: bool,
) -> TextArm:
    names = capitalised(query, {term.lexeme for term in terms})
    found = _Found(matches.ids, occurrences(matches.ranks), np.rint(matches.lengths).astype(np.int64))
    all_read = all_chosen and len(found.ids) < MOST_MATCHES
    # What the namespace knows does not depend on filters.
    asked = _question(found, query, terms, namespace, all_read=all_read and not among)
    weights = ranking.inverse_document_frequency(asked.document_frequencies, asked.facts)
    weights *= [1.0 if term.stem else WRITTEN_WEIGHT for term in terms]
    scores = ranking.scores(found.times, found.lengths, weights, asked.mean_words)
    best = _best_first(scores, found.ids, size)
    scores[best], begins, long = _by_passage(
        db, namespace, terms, found.only(best), scores[best], weights, asked.mean_words
    )
    order = best[np.argsort(-scores[best], kind="stable")]
    return TextArm(
        dict(zip(found.ids, scores.tolist(), strict=True)),
        [found.ids[place] for place in order],
        names,
        float(weights.sum()),
        ranking.enough(weights[[term.stem for term in terms]]),
        begins,
        _stems(found, query, terms, asked, long, complete=all_read),
    )


def _best_first(scores: Floats, ids: Sequence[Key], most: int) -> Ints:
    """Return the places of up to `most` of n facts, the best first; of equal ones the greatest ids, mostly the newest.

    Only those that reach the score of the last one are put in order: all of them would take several milliseconds.
    """
    least = np.partition(scores, -most)[-most] if len(scores) > most else -np.inf
    reach = np.flatnonzero(scores >= least)
    newest = np.array([ids[place] for place in reach.tolist()], "S16")
    return np.asarray(reach[np.lexsort((newest, scores[reach]))[::-1][:most]])


def informative(terms: Sequence[Term], most: int) -> list[Term]:
    """Return up to `most` terms: known ones by rarity, then unknown ones.

    In scripts without blanks, single characters that are part of a pair are left out, except Chinese ones, many of
    which are words: these count as written forms.
    """
    pairs = "".join(term.lexeme for term in terms if len(term.lexeme) == PAIR and is_unspaced(term.lexeme))
    alone = [term for term in terms if len(term.lexeme) > 1 or term.lexeme not in pairs]
    alone += [replace(term, stem=False) for term in terms if CHINESE.fullmatch(term.lexeme) and term.lexeme in pairs]
    return sorted(alone, key=lambda term: (term.facts == 0, term.facts, term.lexeme))[:most]


def affordable(terms: Sequence[Term], budget: int, enough: int) -> list[str]:
    """Return the rarest terms whose facts stay within the budget, or more of them until there are enough facts."""
    rarest_first = sorted(terms, key=lambda term: (term.facts, term.lexeme))
    totals = np.cumsum([term.facts for term in rarest_first])
    within = int(np.searchsorted(totals, budget, side="right"))
    needed = int(np.searchsorted(totals, enough)) + 1
    return [term.lexeme for term in rarest_first[: max(within, needed)]]


def occurrences(ranks: Floats) -> Ints:
    """Return the number of occurrences of a word, from its `ts_rank` with all weights 1."""
    middle = (RANK_OF_OCCURRENCES[1:] + RANK_OF_OCCURRENCES[:-1]) / 2
    return np.where(ranks > 0, np.searchsorted(middle, ranks) + 1, 0)


def _question(found: _Found, query: str, terms: Sequence[Term], namespace: Namespace, *, all_read: bool) -> Question:
    """Return the statistics of all terms, including written forms."""
    frequencies = (found.times > 0).sum(axis=0)
    if not all_read:
        frequencies = np.maximum(frequencies, [term.facts for term in terms])
    words = [term.lexeme for term in terms]
    return Question(
        frequencies,
        max(namespace.counted_facts, len(found.ids)),
        namespace.mean_words or found.mean_length,
        words,
        names_unknown(query, dict(zip(words, frequencies.tolist(), strict=True))),
        is_personal(query),
    )


def _stems(
    found: _Found, query: str, terms: Sequence[Term], asked: Question, long: dict[Key, Bools], *, complete: bool
) -> Stems:
    """Return the stems among the terms, with those that each fact contains; `long` has them for long facts."""
    stems = np.array([term.stem for term in terms], np.bool_)
    short = np.flatnonzero(found.lengths <= LONG)
    held = dict(zip([found.ids[place] for place in short], (found.times[short] > 0)[:, stems], strict=True))
    lexemes = [term.lexeme for term in terms if term.stem]
    said = words_of(query, lexemes)
    vectors = word_vectors.of_words(said)
    question = replace(
        asked,
        document_frequencies=asked.document_frequencies[stems],
        words=lexemes,
        word_weights=word_vectors.weights(said, vectors),
    )
    return Stems(question, vectors, held | long, frozenset(found.ids), complete=complete)


def _by_passage(
    db: Connection, namespace: Namespace, terms: Sequence[Term], found: _Found, scores: Floats, weights: Floats,
    mean: float,
) -> tuple[Floats, dict[Key, int], dict[Key, Bools]]:  # fmt: skip
    """Return the scores of the best facts, long ones by their best passage.

    Also returns the first word of that passage and the stems in it, for long facts. If any fact is long, no text counts
    as longer than a passage; else, or without terms, the scores are unchanged.
    """
    long = np.flatnonzero(found.lengths > LONG)
    if not len(long) or not terms:
        return scores, {}, {}
    mean = min(mean, CUT.lexemes)
    scores = ranking.scores(found.times, np.minimum(found.lengths, CUT.lexemes), weights, mean)
    ids = [found.ids[place] for place in long]
    stems = np.array([term.stem for term in terms], np.bool_)
    by_stem = in_passages(db, namespace.id, ids, [term.lexeme for term in terms if term.stem])
    # Positions of written forms are not known, so each passage counts them.
    times = np.repeat(np.minimum(found.times[long][:, None], 1), by_stem.shape[1], axis=1)
    times[:, :, stems] = by_stem
    flat = times.reshape(-1, len(terms))
    each = ranking.scores(flat, np.full(len(flat), CUT.lexemes), weights, mean).reshape(times.shape[:2])
    scores[long] = each.max(axis=1)
    begins = best_begin(each).tolist()
    return scores, dict(zip(ids, begins, strict=True)), dict(zip(ids, in_best_passage(by_stem), strict=True))


ARM_SIZE = 200
"""Number of candidates from the vector arm, or the limit if it is higher.

With 100, recall@10 on five sets of conversations is the same within the noise, alone and all in one namespace, and a
recall takes hardly less time.
"""


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

    def relevances(self, embedder: str | None, held: Bools, alike: Floats, cosines: Floats) -> Floats:
        """Return the relevance of n candidates in [0, 1], see `relevance.relevance`."""
        return relevance.relevance(self.question, held, alike, cosines, relevance.of_embedder(embedder or ""))

    def how_found(self, id_: Key, by_graph: dict[Key, str]) -> str:
        """Return how a fact was found: by words or tag, a link or entity, meaning, or a neighbour in conversation."""
        if id_ in self.text.scores:
            return "words"
        return by_graph.get(id_) or ("meaning" if id_ in self.near else "nearby")

    def fused(self, most: int | None = None) -> dict[Key, float]:
        """Return the candidates of both arms with their fused scores, best first.

        A candidate that the vector arm did not find gets the lowest similarity found.
        """
        ids = list(dict.fromkeys([*self.text.best, *self.near]))
        least = min(self.near.values(), default=0.0)
        by_words = np.array([self.text.scores.get(id_, 0.0) for id_ in ids])
        similar = np.array([self.near.get(id_, least) for id_ in ids])
        fit = ranking.fuse(by_words, similar, self.meaning, self.text.enough)
        order = _best_first(fit, ids, len(ids) if most is None else most)
        return {ids[i]: score for i, score in zip(order.tolist(), fit[order].tolist(), strict=True)}


def vector_arm(
    db: Connection,
    namespace: Namespace,
    query: Vectors,
    scope: Scope,
    limit: int = 0,
    *,
    indexed: bool = True,
    visible: bool = False,
    later: Connection | None = None,
) -> Callable[[], dict[Key, float]]:
    """Send the search for the nearest signatures to the (dims,) query; return its reader, which gives similarities.

    The namespace may be `indexed` by HNSW. With `visible`, facts that are not valid at the instant are left out. The
    reader uses the connection `later`, by default the same, if an index did not find enough facts that pass filters.
    """
    own, most = signature.encode(query[None, :])[0], max(ARM_SIZE, limit)
    if scope.filters.filters() == WITHOUT_DOCUMENTS.filters() and not documents.any_chunk(db, namespace.id):
        scope = replace(scope, filters=NO_FILTERS)
    found = signatures.ask_nearest(db, namespace.id, own, most, scope, indexed=indexed, visible=visible, later=later)
    return lambda: _with_cosines(*found())


def _with_cosines(ids: list[Key], differing: Floats) -> dict[Key, float]:
    return dict(zip(ids, signature.cosines(differing).tolist(), strict=True))
