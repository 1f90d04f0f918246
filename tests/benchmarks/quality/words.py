"""Plain BM25 on stems, over whole texts or passages: the baseline."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import snowballstemmer
from scipy.sparse import csr_array

from workers.core import ranking
from workers.core.arrays import Bools, Floats, Ints
from workers.core.summary import ENGLISH_STOP_WORDS

WORD = re.compile(r"\w+")
OVERLAP = 2
"""A passage begins where half of the one before it has gone by."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Scores of n texts, the query's k words in the best passage of each, (n, k), and their document frequencies."""

    scores: Floats
    held: Bools
    words: list[str]
    document_frequencies: Ints
    mean_words: float


class Bm25:
    """Texts by namespace, whole or in overlapping passages of a number of words, the best of which counts."""

    def __init__(self, passage: int | None = None) -> None:
        self._passage = passage
        self._texts: dict[str, list[str]] = {}
        self._indexes: dict[str, _Index] = {}
        self._stem = snowballstemmer.stemmer("english")

    def add_many(self, namespace: str, texts: Sequence[str]) -> None:
        """Store texts; the namespace is indexed again."""
        kept = self._texts.setdefault(namespace, [])
        kept.extend(texts)
        pieces = [(place, piece) for place, text in enumerate(kept) for piece in self._pieces(text)]
        self._indexes[namespace] = _Index([words for _, words in pieces], np.array([place for place, _ in pieces]))

    def add(self, namespace: str, text: str) -> None:
        """Store one text."""
        self.add_many(namespace, [text])

    def terms(self, namespace: str, query: str) -> "Terms":
        """Return the matches of the query's words in each text of a namespace."""
        texts, index = self._texts[namespace], self._indexes[namespace]
        words = list(dict.fromkeys(self._words(query)))
        counts, lengths = index.counts(words), np.bincount(index.places, weights=index.lengths, minlength=len(texts))
        by_text = np.zeros((len(texts), len(words)), np.bool_)
        np.logical_or.at(by_text, index.places, counts > 0)
        scores = np.zeros(len(texts))
        np.maximum.at(scores, index.places, index.scores(words))
        most_first = np.lexsort((-(counts > 0).sum(axis=1), index.places))
        best = most_first[np.unique(index.places[most_first], return_index=True)[1]]
        return Terms(scores, counts[best] > 0, words, by_text.sum(axis=0), float(lengths.mean()))

    def search(self, namespace: str, query: str, limit: int) -> list[str]:
        """Return the texts with the best scores that share a word with the query."""
        texts, index = self._texts[namespace], self._indexes[namespace]
        best = np.zeros(len(texts))
        np.maximum.at(best, index.places, index.scores(self._words(query)))
        order = np.argsort(-best, kind="stable")[:limit]
        return [texts[place] for place in order.tolist() if best[place] > 0]

    def _words(self, text: str) -> list[str]:
        words = [word for word in WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]
        stems: list[str] = self._stem.stemWords(words)
        return stems

    def _pieces(self, text: str) -> list[list[str]]:
        words = WORD.findall(text)
        size = self._passage or len(words)
        starts = range(0, max(len(words) - size, 0) + 1, max(size // OVERLAP, 1)) if words else range(1)
        ends = [start + size for start in starts]
        ends[-1] = len(words)
        return [self._words(" ".join(words[start:end])) for start, end in zip(starts, ends, strict=True)]


class _Index:
    """The words of n pieces as a sparse (n, words) matrix of counts; `places` has the text of each piece."""

    def __init__(self, pieces: Sequence[Sequence[str]], places: Ints) -> None:
        self.places = places
        self._vocabulary = {word: i for i, word in enumerate(dict.fromkeys(word for one in pieces for word in one))}
        columns = [self._vocabulary[word] for one in pieces for word in one]
        self.lengths = np.array([len(one) for one in pieces])
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        shape = (len(pieces), len(self._vocabulary))
        self._counts = csr_array((np.ones(len(columns), np.int64), columns, ends), shape=shape).tocsc()

    def scores(self, words: Sequence[str]) -> Floats:
        counts = self.counts(list(dict.fromkeys(words)))
        weights = ranking.inverse_document_frequency((counts > 0).sum(axis=0), len(self.lengths))
        return ranking.scores(counts, self.lengths, weights, float(self.lengths.mean()))

    def counts(self, words: Sequence[str]) -> Ints:
        """Return the number of each word in each piece, (n, words)."""
        found = np.zeros((len(self.lengths), len(words)), np.int64)
        known = [i for i, word in enumerate(words) if word in self._vocabulary]
        found[:, known] = self._counts[:, [self._vocabulary[words[i]] for i in known]].toarray()
        return found
