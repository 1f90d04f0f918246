"""What may be drawn from a conversation: only what stands there, in the sentence where it stands.

An LLM only points at words. What becomes a fact is the sentence around them, with the name, key and value that it
pointed out, so that nothing enters the memory that was not said.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workers.core.names import mentioned
from workers.core.summary import SENTENCE_END

SPEAKER = "user"
"""What a fact is about if the speaker speaks of themselves without a name."""

KEY = re.compile(r"[^\W\d_]+([ _-][^\W\d_]+){0,2}")
"""Up to three words, so that a key has no room for a statement."""

LONGEST = 1_000
"""Characters of a sentence; a longer one states no single fact."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """What an LLM points at in a text: some words, and whose property they state.

    `single` says that there is one value at a time, as with a home, and not several, as with likes.
    """

    quote: str
    entity: str
    key: str
    value: str
    single: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """A fact drawn from a text: the sentence from `start` until before `end`, and what it is about."""

    start: int
    end: int
    quote: str
    entity: str
    key: str
    value: str | None

    @property
    def text(self) -> str:
        """Return the sentence behind its entity and key: clear by itself, and never the text of its turn."""
        return f"{self.entity}, {self.key}: {self.quote}"


def drawn(pointed: Pointed, text: str, names: Sequence[str]) -> Drawn | None:
    """Return the fact that was pointed at in a text, or nothing if its words, name or value do not stand there.

    The name may stand in one of the texts `names`, which are those of the conversation.
    """
    found, entity, key = _found(pointed.quote, text), " ".join(pointed.entity.split()), pointed.key.strip().lower()
    is_named = entity.lower() == SPEAKER or any(mentioned(one, [entity]) for one in names)
    if found is None or not entity or not is_named or not KEY.fullmatch(key):
        return None
    start, end = _sentences(text, *found)
    quote = text[start:end]
    value = _found(pointed.value, quote)
    if end - start > LONGEST or value is None:
        return None
    name = SPEAKER if entity.lower() == SPEAKER else entity
    return Drawn(start, end, quote, name, key, quote[slice(*value)] if pointed.single else None)


def _found(words: str, text: str) -> tuple[int, int] | None:
    """Return where whole words stand in a text, whatever their case and the blanks between them."""
    pattern = r"\s+".join(re.escape(word) for word in words.split())
    match = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) if pattern else None
    return match.span() if match else None


def _sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentences begin and end that a stretch is in: without them a `not` could be lost."""
    ends = [place for match in re.finditer(rf"{SENTENCE_END.pattern}|\s*\n\s*", text) for place in match.span()]
    first = max((after for after in ends[1::2] if after <= start), default=len(text) - len(text.lstrip()))
    last = min((before for before in ends[::2] if before >= end), default=len(text.rstrip()))
    return first, last
