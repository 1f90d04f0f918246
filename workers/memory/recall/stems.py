"""The stems of a question: their statistics, and which of them each fact contains, a long one in one passage."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from workers.core import passages
from workers.core.arrays import Bools, Floats, Ints, Key, Vectors
from workers.core.names import WORD, folded
from workers.core.relevance import Question
from workers.embedding import word_vectors
from workers.storage import candidates
from workers.storage.candidates import Candidates, Occurrences
from workers.storage.connection import Connection

LONGEST_ENDING = 6
"""Maximum number of letters that a word has more than its stem, for an estimate."""


@dataclass(frozen=True, slots=True)
class Stems:
    """The k stems of a question, with their statistics in the namespace.

    `vectors` has those of their words, (k, 128). `contained` says which stems each fact that was read contains, (k,), a
    long one in its best passage. If the search was `complete`, facts that it did not match contain none.
    """

    question: Question = field(default_factory=lambda: Question(np.zeros(0, np.int64), 0, 1.0))
    vectors: Vectors = field(default_factory=lambda: word_vectors.of_words([]))
    contained: dict[Key, Bools] = field(default_factory=dict)
    matched: frozenset[Key] = frozenset()
    complete: bool = True

    @property
    def lexemes(self) -> Sequence[str]:
        """Return the stems."""
        return self.question.words

    @property
    def unsearched(self) -> Sequence[str]:
        """Return the stems to look for in facts that the search did not match."""
        return () if self.complete else self.lexemes


def in_passages(db: Connection, namespace: int, ids: Sequence[Key], lexemes: Sequence[str]) -> Ints:
    """Return how often each passage of n facts contains each of k stems, as (n, passages, k)."""
    texts = {id_: place for place, id_ in enumerate(ids)}
    terms = {lexeme: place for place, lexeme in enumerate(lexemes)}
    read = candidates.positions_of(db, namespace, ids, lexemes)
    if unspaced := {id_ for id_, lexeme, *_ in read if passages.is_unspaced(lexeme)}:
        read = _by_text(read, candidates.texts_of(db, namespace, list(unspaced)))
    rows = [(texts[id_], terms[lexeme], before + 1, len(places)) for id_, lexeme, places, before in read]
    text, term, first, times = np.array(rows, np.int64).reshape(-1, 4).T
    text, term, first = (np.repeat(column, times) for column in (text, term, first))
    places = np.fromiter(chain.from_iterable(row[2] for row in read), np.int64)
    return passages.term_counts(text, term, places - first, (len(texts), len(terms)))


def _by_text(read: Sequence[Occurrences], texts: Mapping[Key, str]) -> list[Occurrences]:
    """Return occurrences where those of lexemes in scripts without blanks are as in these texts."""
    sought: dict[Key, set[str]] = {id_: set() for id_ in texts}
    for id_, lexeme, *_ in read:
        if id_ in texts and passages.is_unspaced(lexeme):
            sought[id_].add(lexeme)
    found = {id_: passages.places_in(texts[id_], lexemes) for id_, lexemes in sought.items()}
    return [
        (id_, lexeme, [*(-1 for one in places if one <= before), *found[id_][lexeme]], -1)
        if lexeme in sought.get(id_, ())
        else (id_, lexeme, places, before)
        for id_, lexeme, places, before in read
    ]


def words_beginning_with(texts: Sequence[str], lexemes: Sequence[str]) -> Ints:
    """Return how many words of each of n texts begin with each of k stems, (n, k).

    It estimates how often each text contains each stem, in a sixth to a tenth of the time that PostgreSQL takes. Stems
    in scripts without blanks are found anywhere.
    """
    sought = [re.compile(_beginning(one)) for one in lexemes]
    said = [folded(text) for text in texts]
    return np.array([[len(one.findall(text)) for one in sought] for text in said], np.int64).reshape(
        len(texts), len(sought)
    )


def _beginning(lexeme: str) -> str:
    """Return the pattern of words that may have this stem; that of "happy" is "happi"."""
    if passages.is_unspaced(lexeme):
        return re.escape(lexeme)
    beginning = f"{re.escape(lexeme[:-1])}[iy]" if lexeme.endswith("i") else re.escape(lexeme)
    return rf"\b{beginning}\w{{,{LONGEST_ENDING}}}\b"


def in_best_passage(times: Ints) -> Bools:
    """Return which of k stems the best passage contains, (n, k), given counts as (n, passages, k)."""
    held: Bools = times > 0
    best = held.sum(axis=2).argmax(axis=1)
    return held[np.arange(len(held)), best]


def contained(db: Connection, namespace: int, stems: Stems, found: Candidates) -> Bools:
    """Return which of k stems each of n facts contains, (n, k).

    Those that the text arm did not read are known from the candidate, or else read.
    """
    ids = found["id"].tolist()
    rows = {id_: those for id_, those in zip(ids, found["stems"].tolist(), strict=True) if those} | stems.contained
    unread = [id_ for id_ in ids if id_ not in rows and not (stems.complete and id_ not in stems.matched)]
    if unread and stems.lexemes:
        rows |= zip(unread, in_best_passage(in_passages(db, namespace, unread, stems.lexemes)), strict=True)
    none = np.zeros(len(stems.lexemes), np.bool_)
    return np.array([rows.get(id_, none) for id_ in ids], np.bool_).reshape(len(ids), len(stems.lexemes))


def words_of(query: str, lexemes: Sequence[str]) -> list[str]:
    """Return for each stem a word of the query that begins with it, the first by the alphabet; else the stem."""
    said = sorted({*WORD.findall(folded(query))})
    begins = [lexeme.removesuffix("i") for lexeme in lexemes]
    found = [next(iter(said[(place := bisect_left(said, begin)) : place + 1]), "") for begin in begins]
    return [
        word if word.startswith(begin) else lexeme for word, begin, lexeme in zip(found, begins, lexemes, strict=True)
    ]


def alike(vectors: Vectors, texts: Sequence[str | None], places: Ints) -> Floats:
    """Return the greatest cosine of each of k words, given their vectors, with a word of each of n texts, (n, k).

    Only the texts at `places` are compared; for the others, and where a text is None, it is 0.
    """
    found = np.zeros((len(texts), len(vectors)))
    compared = {place: text for place in places.tolist() if (text := texts[place]) is not None}
    if compared and len(vectors):
        found[list(compared)] = word_vectors.most_similar(vectors, list(compared.values()))
    return found
