"""WordPiece tokenizer of BERT's uncased models: lower case, no accents, longest matching pieces.

The rules are those of BERT's own tokenizer: punctuation and Chinese characters stand alone, and a word is split from
its start into the longest pieces in the vocabulary.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from workers.embedding.vectors import KNOWN_WORDS, LONGEST_KNOWN

VOCABULARY = Path(__file__).parent / "weights" / "vocabulary.txt"
"""The 30,522 pieces of the uncased BERT models, one per line, in the order of their numbers."""

UNKNOWN = "[UNK]"
LONGEST_WORD = 100
"""Longer words are unknown as a whole."""

LONGEST_PIECES = {"": 18, "##": 10}
"""Letters of the longest pieces that begin and that continue a word: no longer ones are looked for."""

ASCII_WORDS = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
CHINESE = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f]")


@cache
def vocabulary() -> dict[str, int]:
    """Return the number of each piece of the vocabulary; pieces that start with `##` continue a word."""
    return {piece: number for number, piece in enumerate(VOCABULARY.read_text(encoding="utf-8").splitlines())}


def encode(texts: Sequence[str]) -> list[list[int]]:
    """Return the piece numbers of each text; recent words are not split again."""
    return [[number for chunk in text.lower().split() for number in _of_chunk(chunk)] for text in texts]


def _of_chunk(chunk: str) -> list[int]:
    return _known(chunk) if len(chunk) <= LONGEST_KNOWN else _split(chunk)


def _split(chunk: str) -> list[int]:
    """Return the piece numbers of a lower-case chunk without spaces."""
    return [number for word in _words(chunk) for number in _pieces(word)]


_known = lru_cache(maxsize=KNOWN_WORDS)(_split)


def _pieces(word: str) -> list[int]:
    numbers = vocabulary()
    if word in numbers:
        return [numbers[word]]
    unknown = [numbers[UNKNOWN]]
    if len(word) > LONGEST_WORD:
        return unknown
    found, rest, prefix = [], word, ""
    while rest:
        most = min(len(rest), LONGEST_PIECES[prefix])
        end = next((end for end in range(most, 0, -1) if prefix + rest[:end] in numbers), 0)
        if not end:
            return unknown
        found.append(numbers[prefix + rest[:end]])
        rest, prefix = rest[end:], "##"
    return found


def _words(chunk: str) -> Iterator[str]:
    """Yield the words and punctuation of a lower-case chunk without spaces."""
    if chunk.isascii() and chunk.isprintable():
        yield from ASCII_WORDS.findall(chunk)
        return
    decomposed = unicodedata.normalize("NFD", CHINESE.sub(r" \g<0> ", chunk))
    spaced = (_spaced(letter) for letter in decomposed)
    yield from "".join(spaced).split()


def _spaced(letter: str) -> str:
    """Return an empty text for accents and controls, punctuation between spaces, other letters unchanged."""
    category = unicodedata.category(letter)
    if letter.isascii():
        return letter if letter.isalnum() or letter.isspace() else f" {letter} " if letter.isprintable() else ""
    if category == "Mn" or category.startswith("C") or letter == "\ufffd":
        return ""
    return f" {letter} " if category.startswith("P") else letter
