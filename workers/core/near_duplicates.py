"""Near-duplicates: facts that state the same in nearly the same words, and which one of them is kept.

Vectors hardly reflect a figure, a name, a "not", a case-sensitive word, a word in place of another, or the order of
subject and object, so texts that differ in one of those are never near-duplicates, however similar. A word that is no
common English one may be any of these, in its language: texts in other languages are near-duplicates only if they have
the same words.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from workers.core import signature
from workers.core.arrays import Bytes, Floats, Ints, Vectors
from workers.core.fidelity import pool
from workers.core.summary import ENGLISH_STOP_WORDS, stems
from workers.core.text import CLOSING, OPENING, case_matters, with_plain_digits, words

ALIKE = 0.92
"""Least cosine of near-duplicates."""

MOST_BITS = 185
"""Most differing bits of 1,024 between signatures of near-duplicates: the expected 131 plus five deviations."""

FIRST = 10
"""Number of 64-bit words that are compared first: few other texts differ in at most `MOST_BITS` of these 640 bits."""

WORD = re.compile(r"\w+")
FIGURE = re.compile(r"\d+")
ASCII_RUN = re.compile("[!-~]+")
SIGN = re.compile(r"[\d<>=]")
SHORT_NOT = re.compile(r"n['\u2019]t\b")
SYMBOLS = ("Sc", "So", "Sm")
SENTENCE_ENDS = (".", "!", "?", ":")

NEGATIONS = {
    "not", "no", "none", "nor", "never", "neither", "nothing", "nobody", "nowhere", "without", "cannot", "hardly",
}  # fmt: skip
NUMERALS = {
    "zero", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty",
    "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "second", "third", "fourth", "fifth",
    "half", "twice",
}  # fmt: skip
OF_OTHER_LANGUAGES = {"non", "once", "fire", "due"}
"""Negations and numerals of Italian, Spanish and Danish that are common English words too."""

QUALIFIERS = {"used", "former", "formerly", "almost", "only", "if", "unless", "except", "maybe", "perhaps"}
DECISIVE = NEGATIONS | NUMERALS | OF_OTHER_LANGUAGES | QUALIFIERS
AFTER_APOSTROPHES = {"s", "m", "re", "ve"}
SAY_NOTHING = AFTER_APOSTROPHES | {"a", "an", "the", "and", "also", "that", "is", "are", "am", "has", "have"}
"""Words that may stand for each other in two near-duplicates, be missing in one, and stand in any order."""

QUESTION_MARKS = "?\uff1f"


@dataclass(frozen=True, slots=True)
class Wording:
    """A text's words, in order those that say anything, and what distinguishes it from texts with similar vectors."""

    words: frozenset[str]
    order: tuple[str, ...]
    figures: tuple[str, ...]
    names: frozenset[str]
    exact: frozenset[str]


def wording(text: str) -> Wording:
    """Return the wording of a text, in lower case except for `exact`."""
    text = with_plain_digits(unicodedata.normalize("NFC", text))
    said = words(SHORT_NOT.sub(" not", text.lower()))
    order = tuple(word for word in said if word not in SAY_NOTHING)
    return Wording(frozenset(said), order, tuple(sorted(FIGURE.findall(text))), _names(text), _exact(text))


def differ(one: Wording, two: Wording, common: Collection[str]) -> bool:
    """Return whether two texts differ in a figure, a negation, a name, a sign, the order of words, or an unknown word.

    They also differ if each has a word in place of one of the other, as "likes" and "hates", or "before" and "after",
    if one has a word in addition, as "green" in "green tea", or if only one has a verb in the past tense: what is
    merged would lose it, or what is said more generally. `common` are the English words of which another form may
    differ.
    """
    return (
        one.figures != two.figures
        or one.exact != two.exact
        or _decide(one.words ^ two.words, common)
        or not (one.names <= two.words and two.names <= one.words)
        or [word for word in one.order if word in two.words] != [word for word in two.order if word in one.words]
        or _replace(one.words - two.words - SAY_NOTHING, two.words - one.words - SAY_NOTHING)
    )


def _replace(own: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether one of two texts has words that the other lacks in any form, or that are past tenses."""
    is_past = [any(word.endswith("ed") for word in words) for words in (own, others)]
    return {*stems([*own])} != {*stems([*others])} or is_past[0] != is_past[1]


def _decide(differing: frozenset[str], common: Collection[str]) -> bool:
    """Return whether any of the words, which one of two texts has, may be a figure, a negation or a name."""
    unknown = [word for word in differing if word not in common and word not in SAY_NOTHING]
    return not DECISIVE.isdisjoint(differing) or any(stem not in common for stem in stems(unknown))


def _names(text: str) -> frozenset[str]:
    """Return capitalised words, in lower case; common ones at the start of a sentence do not count."""
    names, behind = set(), 0
    for match in WORD.finditer(text):
        before, word = text[behind : match.start()].rstrip(), match.group()
        begins = before.endswith(SENTENCE_ENDS) or not (before or behind)
        behind = match.end()
        if word[0].isupper() and not (begins and word.lower() in ENGLISH_STOP_WORDS):
            names.add(word.lower())
    return frozenset(names)


def _exact(text: str) -> frozenset[str]:
    """Return the words in which case or signs matter, as passwords, options and "-5", without punctuation.

    Symbols, such as those of currencies, emoji, and a question mark are also among them.
    """
    found = [word for word in ASCII_RUN.findall(text) if SIGN.search(word) or case_matters(word)]
    signs = {one for one in set(text) if unicodedata.category(one) in SYMBOLS or one in QUESTION_MARKS}
    return frozenset(signs.union(word.rstrip(CLOSING).lstrip(OPENING) or word for word in found))


def nearest(own: Bytes, others: Bytes, most: int) -> tuple[Ints, Ints, Ints]:
    """Return pairs of n signatures and the `most` nearest of m others: the indexes of both, and the differing bits.

    They differ in at most `MOST_BITS` bits.
    """
    mine, theirs = _as_words(own), _as_words(others)
    first = np.ascontiguousarray(theirs[:, :FIRST].T)
    differing, counts, bits = np.empty_like(first), np.empty(first.shape, np.uint8), np.empty(len(others), np.uint16)
    found = []
    for row, one in enumerate(mine):
        np.bitwise_xor(first, one[:FIRST, None], out=differing)
        np.bitwise_count(differing, out=counts)
        counts.sum(axis=0, dtype=np.uint16, out=bits)
        places = np.flatnonzero(bits <= MOST_BITS)
        exact = np.bitwise_count(theirs[places] ^ one).sum(axis=1, dtype=np.int64)
        places, exact = places[exact <= MOST_BITS], exact[exact <= MOST_BITS]
        best = np.argsort(exact, kind="stable")[:most]
        found.append((np.full(len(best), row), places[best], exact[best]))
    rows, places, exact = (np.concatenate(column) for column in zip(*found, strict=True))
    return rows, places, exact


def first_of_each(rows: Ints, bits: Ints, most: int) -> Ints:
    """Return the indexes of the `most` pairs of each row that differ in the fewest bits; ties go to earlier pairs."""
    order = np.lexsort((bits, rows))
    rank = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    return order[rank < most]


def _as_words(signatures: Bytes) -> NDArray[np.uint64]:
    return np.ascontiguousarray(signatures).view(np.uint64)


def cosines(ones: Vectors, twos: Vectors) -> Floats:
    """Return the cosine of each of n pairs of rows; `ones`, which may be longer, are pooled to the dims of `twos`."""
    ones = pool(ones, ones.shape[1] // twos.shape[1])
    lengths = np.linalg.norm(ones, axis=1) * np.linalg.norm(twos, axis=1)
    products = np.einsum("ij,ij->i", ones, twos)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).astype(np.float64)


def estimated_cosines(ones: Bytes, twos: Bytes) -> Floats:
    """Return the cosine of each pair, estimated from (n, 128) signatures."""
    differing = np.unpackbits(ones ^ twos, axis=1).sum(axis=1)
    return signature.cosines(differing.astype(np.float64))


def groups(
    best_first: Sequence[UUID], alike: Iterable[tuple[UUID, UUID]], stay: frozenset[UUID]
) -> list[tuple[UUID, list[UUID]]]:
    """Return (the fact kept, those merged into it), the best facts first; facts in `stay` are never merged.

    Each is similar to the fact that it is merged into: chains of similarity would join different things.
    """
    neighbours: dict[UUID, set[UUID]] = defaultdict(set)
    for one, two in alike:
        neighbours[one].add(two)
        neighbours[two].add(one)
    rank = {fact: place for place, fact in enumerate(best_first)}
    found: list[tuple[UUID, list[UUID]]] = []
    gone: set[UUID] = set()
    for fact in best_first:
        if fact in gone:
            continue
        later = [one for one in neighbours[fact] if one not in gone and one not in stay and rank[one] > rank[fact]]
        gone.update(later)
        if later:
            found.append((fact, sorted(later, key=rank.__getitem__)))
    return found
