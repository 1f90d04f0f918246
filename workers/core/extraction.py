"""Facts extracted from a conversation: only quotes, each with the whole sentence around it.

An LLM only points at words. The stored fact is the sentence around them with the entity, key and value it named, so
nothing enters memory that was not stated.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from workers.core.names import as_words
from workers.core.summary import SENTENCE_END
from workers.core.text import combining

SPEAKER = "user"
"""Entity of statements that speakers make about themselves: another conversation may not tell their name."""

BREAK = re.compile(rf"{SENTENCE_END.pattern}|(?<!\s)\s*\n\s*")
"""The end of a sentence or line.

A run of blanks is read once, not again from each of its characters.
"""

KEY = re.compile(r"[^\W\d_]+([ _-][^\W\d_]+){0,2}")
"""Up to three words, so that a key cannot hold a statement."""

LONGEST = 1_000
"""Characters of a sentence; longer ones state no single fact."""

LONGEST_NAME = 200
"""Maximum characters of an entity or a key; one that is too long for a fact would fail the whole answer."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that an LLM points at in a text, and the property that they state.

    `single` means one value at a time, as for a home, not several, as for likes.
    """

    quote: str
    entity: str
    key: str
    value: str
    single: bool


@dataclass(frozen=True, slots=True)
class Extracted:
    """An extracted fact: the sentence from `start` (inclusive) to `end` (exclusive), and what it is about."""

    start: int
    end: int
    quote: str
    entity: str
    key: str
    value: str | None

    @property
    def text(self) -> str:
        """Return the sentence prefixed with entity and key: clear on its own, and never equal to its turn's text."""
        return f"{self.entity}, {self.key}: {self.quote}"


def extracted(pointed: Quote, text: str, named: Collection[str]) -> Extracted | None:
    """Return the fact that was pointed at in a text; None if its words or value are not there, or its name is unknown.

    `named` are the names that `mentioned_names` found in the texts of the conversation.
    """
    found, entity, key = _found(pointed.quote, text), _entity(pointed.entity, named), pointed.key.strip().lower()
    if found is None or not entity or not KEY.fullmatch(key) or max(len(entity), len(key)) > LONGEST_NAME:
        return None
    start, end = _sentences(text, *found)
    quote = text[start:end]
    value = _found(pointed.value, quote)
    if end - start > LONGEST or value is None:
        return None
    return Extracted(start, end, quote, entity, key, quote[slice(*value)] if pointed.single else None)


def _entity(name: str, named: Collection[str]) -> str | None:
    """Return an entity's name, without extra blanks, if it is one of those; speakers need not be named."""
    entity = " ".join(name.split())
    if entity.lower() == SPEAKER:
        return SPEAKER
    return entity if entity in named else None


def _found(words: str, text: str) -> tuple[int, int] | None:
    """Return where whole words, at most those of a sentence, occur in a text, ignoring case and blanks."""
    phrase = " ".join(words.split())
    if not 0 < len(phrase) <= LONGEST:  # the pattern of a long one takes minutes
        return None
    match = re.search(as_words(phrase, combining(text)), text, re.IGNORECASE)
    return match.span() if match else None


def _sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the sentences around a stretch: cutting them could lose a `not`."""
    ends = [place for match in BREAK.finditer(text) for place in match.span()]
    first = max((after for after in ends[1::2] if after <= start), default=len(text) - len(text.lstrip()))
    last = min((before for before in ends[::2] if before >= end), default=len(text.rstrip()))
    return first, last
