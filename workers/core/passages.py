"""Passages: stretches of a long text, each scored against a question on its own.

In a long text scored as one document, a few relevant words hardly count (Callan, "Passage-level evidence in document
retrieval", 1994). The text index stores the positions of words, so the best passage is found without storing passages.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import itemgetter

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.text import combining

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""The characters of scripts without blanks between words, as `unspaced` in schema.sql has them."""

UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
RUN = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
SILENT = re.compile("[\u0e47-\u0e4c\u0e4e\u0eba\u0ec8-\u0ecc\u1037\u1039\u103a\u17b4\u17b5\u17c9-\u17dd\u3099\u309a]")
"""Marks of these scripts that the text index does not take for letters."""

MARKS = ("Mn", "Mc", "Me", "Cf")
COMPOSED = frozenset(map(chr, range(0x1160, 0x1200))) | {"\uff9e", "\uff9f"}
"""Letters that NFKC joins to the one before them: later parts of Korean syllables, and voicing of half-width kana."""

MARK, SILENT_MARK, LETTER = "\0", "\u30fb", "\u3042"
"""Stand for a character without width, which belongs to the word before it; in scripts without blanks, for a mark that
is no word, and for one that is."""

ENTITY = "(?i:&#?[a-z0-9]+;)"
SPACED = rf"[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|{MARK})*"
WORD = re.compile(rf"{ENTITY}|((?!\W)[{UNSPACED}]|{SPACED})")
"""Approximately a word as the text index counts them.

Entities of HTML and what has no letter or digit have no position.
Only entities ignore case: with it, the many characters of `UNSPACED` would take half of a worker's start of patterns.
"""

SPACED_WORD = re.compile(rf"{ENTITY}|({SPACED})")
UNSPACED_LETTER = re.compile(rf"(?!\W)[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Cut:
    """Passages of two steps, one starting every `step` words, in texts of more than `longest` words.

    Measured on long chats with 60 to 160 words: 80 are best, by up to 1.6 points of recall@10; 60 are as good.
    """

    step: int = 40
    longest: int = 120
    lexemes: int = 60
    """Length of a passage for BM25; shorter texts count with their own length."""

    @property
    def words(self) -> int:
        """Return the length of a passage."""
        return 2 * self.step


CUT = Cut()


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text, in characters: `start` inclusive, `end` exclusive."""

    start: int
    end: int
    text: str


def term_counts(texts: Ints, terms: Ints, places: Ints, shape: tuple[int, int], cut: Cut = CUT) -> Ints:
    """Return how often each of k terms occurs in each passage of n texts, as (n, passages, k).

    Each occurrence has the index of its text and of its term, and its word position from 0; a negative position stands
    for words outside the text, such as its entity, which count in every passage. `shape` is (n, k).
    """
    steps = np.where(places < 0, 0, places // cut.step + 1)
    size = int(steps.max(initial=1)) + 1
    flat = np.bincount((texts * (size + 1) + steps) * shape[1] + terms, minlength=shape[0] * (size + 1) * shape[1])
    by_step = flat.reshape(shape[0], size + 1, shape[1])
    return by_step[:, 1:-1] + by_step[:, 2:] + by_step[:, :1]


def best_begin(scores: Floats, cut: Cut = CUT) -> Ints:
    """Return the first word of the best passage of n texts, (n,), given scores as (n, passages).

    If the next passage is as good, what was found is in both, and the passage between them has words on both sides.
    """
    best = scores.argmax(axis=1)
    rows, following = np.arange(len(scores)), np.minimum(best + 1, scores.shape[1] - 1)
    both = (following > best) & (scores[rows, following] == scores[rows, best])
    return best * cut.step + both * (cut.step // 2)


def passage_at(text: str, place: int, cut: Cut = CUT) -> Passage | None:
    """Return the passage that starts at word `place` of a long text; None where the text is not long.

    In scripts without blanks each character is a word.
    """
    plain, begins, ends = _plain(text)
    words = list(islice(_words(plain), max(place + cut.words, cut.longest) + 1))
    if len(words) <= cut.longest:
        return None
    first = min(max(place, 0), len(words) - cut.words)
    last = first + cut.words - 1
    start = begins[words[first].start()]
    end = len(text) if last == len(words) - 1 else ends[words[last].end() - 1]
    return Passage(start, end, text[start:end])


def places_in(text: str, lexemes: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of the words of a text at which lexemes of scripts without blanks begin.

    In the text index, pairs of characters are behind the text, and all those behind 16,383 words have one position.
    """
    normal = unicodedata.normalize("NFKC", text)
    starts = word_starts(_without_marks(normal))
    return {one: np.searchsorted(starts, list(_found(normal, one))).tolist() for one in lexemes}


def word_starts(plain: str) -> Ints:
    """Return the first character of each word of a text whose marks are replaced, as `WORD` finds them.

    A match for each character of a long text would take ten times as long.
    """
    begins = np.isin(_codes(plain), _codes("".join(filter(UNSPACED_LETTER.match, set(plain)))))
    for found in SPACED_WORD.finditer(plain):
        start, end = found.span()
        begins[start:end] = False
        begins[start] = bool(found[1])
    return np.flatnonzero(begins)


def _codes(text: str) -> Ints:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _found(text: str, sought: str) -> Iterator[int]:
    place = text.find(sought)
    while place >= 0:
        yield place
        place = text.find(sought, place + 1)


def is_unspaced(lexeme: str) -> bool:
    """Return whether a lexeme begins with a character of a script without blanks between words."""
    return UNSPACED_RUN.match(lexeme) is not None


def in_pairs(words: Iterable[str], step: int = 1) -> Iterator[str]:
    """Yield words, and instead of a run in a script without blanks its pairs of characters, as the text index has them.

    No pair begins with a vowel sign. With a `step` of 2, pairs do not overlap: they are about as many as the words.
    """
    for word in words:
        if word.isascii():
            yield word
            continue
        for run in RUN.findall(word):
            if len(run) == 1 or not is_unspaced(run):
                yield run
            else:
                signs = combining(run)
                yield from (a + b for a, b in islice(pairwise(run), 0, None, step) if a not in signs)


def _words(plain: str) -> Iterator[re.Match[str]]:
    """Return the words of a text, without tags."""
    return filter(itemgetter(1), WORD.finditer(plain))


def _plain(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return a text as the index reads it, marks replaced, and where each character begins and ends in the original."""
    if text.isascii():
        return text, range(len(text)), range(1, len(text) + 1)
    joined = {one for one in set(text) if one in COMPOSED or unicodedata.category(one) in MARKS}
    begins = [place for place, one in enumerate(text) if not place or one not in joined]
    spans = list(pairwise([*begins, len(text)]))
    parts = [unicodedata.normalize("NFKC", text[start:end]) for start, end in spans]
    owners = [span for span, part in zip(spans, parts, strict=True) for _ in part]
    return _without_marks("".join(parts)), [start for start, _ in owners], [end for _, end in owners]


def _without_marks(text: str) -> str:
    marks = {ord(one): _shown(one) for one in set(text) if unicodedata.category(one) in MARKS}
    return text.translate(marks) if marks else text


def _shown(mark: str) -> str:
    """Return what stands for a mark."""
    if not UNSPACED_RUN.match(mark):
        return MARK
    return SILENT_MARK if SILENT.match(mark) else LETTER
