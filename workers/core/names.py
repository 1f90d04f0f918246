"""Names and topics in a text: known names as whole words, and built-in tags found by patterns."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice, product

from workers.core.passages import UNSPACED, UNSPACED_RUN, is_unspaced
from workers.core.summary import ENGLISH_STOP_WORDS
from workers.core.text import combining, words

LONGEST = 8
"""Words of the longest name that is recognised."""

MOST_PHRASES = 600
"""Phrases of a text that are looked up, at some four microseconds each."""

MOST_STRETCHES = 10_000
MOST_WORDS = 1_000
MOST_ENDS = 8
"""Boundaries of names within one run without blanks, such as an address."""

LENGTHS_WITHIN = range(2, 13)
"""Characters of names that are recognised within a run in scripts without blanks."""

CHUNK = re.compile(r"\S+")
WORD = re.compile(r"\w+")
ACCENTS = re.compile(
    "[\u0300-\u036f\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u200d-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
"""Accents, and what `unseen` in schema.sql has."""

ARABIC_DIGITS = {chr(zero + digit): str(digit) for zero in (0x0660, 0x06F0) for digit in range(10)}
LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "ð": "d", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
    | {"\u03c2": "\u03c3", "\u0649": "\u064a", "\u0629": "\u0647"}
    | ARABIC_DIGITS
)
APOSTROPHES = "'\u2019\u02bc"
APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
WITHIN = re.compile(r"(?<![.?!:])\s[^\w\s]*([^\W\d_]{2,})")
"""A word that does not start a sentence."""

ENGLISH_QUESTION = re.compile(
    r"\W*(?:what|when|where|which|who|whose|how|why|is|are|were|do|does|did|has|have|had|can|could|would|should)\b",
    re.IGNORECASE,
)


def word_phrases(text: str, most: int = MOST_PHRASES) -> list[str]:
    """Return the phrases of a text that begin and end at word boundaries, short ones first, without duplicates.

    They include every name of up to eight words in the text, and in scripts without blanks of two to twelve characters.
    If there are more than `most`, stop words are dropped and phrases that begin with a capital or a digit come first.
    """
    found = list(dict.fromkeys(islice(chain(_stretches(text), _within_runs(text)), MOST_STRETCHES)))
    if len(found) > most:
        found = [one for one in found if one.lower() not in ENGLISH_STOP_WORDS]
        found.sort(key=lambda one: not (one[0].isupper() or one[0].isdigit()))
    return found[:most]


def mentioned_names(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that a text has as whole words, in the form of `folded`, with any blanks and apostrophes."""
    said = _plain(text)
    marks = combining(said)
    return [name for name in (" ".join(name.split()) for name in names) if _stands(said, _plain(name), marks)]


def with_any_apostrophe(names: Iterable[str]) -> list[str]:
    """Return names, and those with an apostrophe also with each other one, as facts may have any."""
    either = ((name, *(APOSTROPHE.sub(one, name) for one in APOSTROPHES)) for name in names)
    return list(dict.fromkeys(chain.from_iterable(either)))


def as_words(phrase: str, marks: Collection[str]) -> str:
    """Return the pattern of a phrase as whole words, in a text with these accents and vowel signs.

    It matches any blanks and apostrophes. In scripts without blanks between words, a phrase may begin and end at any
    character.
    """
    accents, signs = ("".join(re.escape(one) for one in marks if is_unspaced(one) is own) for own in (False, True))
    spaced = rf"(?-i:[^\W{UNSPACED}]{f'|[{accents}]' if accents else ''})"
    before = "" if is_unspaced(phrase[:1]) else f"(?<!{spaced})"
    after = f"(?![{accents}{signs}])" if accents or signs else ""
    after += "" if is_unspaced(phrase[-1:]) else f"(?!{spaced})"
    whole = r"\s+".join(re.escape(word) for word in phrase.split())
    return before + APOSTROPHE.sub(f"[{APOSTROPHES}]", whole) + after


def capitalised(text: str, among: Collection[str]) -> frozenset[str]:
    """Return those of some words, in the form of `folded`, that a text writes with a capital: possibly names."""
    return frozenset(folded(word) for word in words(text) if word[0].isupper()).intersection(among)


def names_in_question(question: str) -> frozenset[str]:
    """Return the capitalised words within an English question, in the form of `folded`.

    Other languages capitalise more than names; words in capitals are terms rather than names.
    """
    inside = WITHIN.findall(unicodedata.normalize("NFC", question)) if ENGLISH_QUESTION.match(question) else []
    return frozenset(folded(word) for word in inside if word[0].isupper() and not word.isupper())


def folded(word: str) -> str:
    """Return a word in lower case, without accents and other special letters, as `folded` in schema.sql does."""
    if word.isascii():
        return word.lower()
    parts = ACCENTS.sub("", unicodedata.normalize("NFKD", word)).lower()
    return unicodedata.normalize("NFC", parts.translate(LETTERS))


def _plain(text: str) -> str:
    return APOSTROPHE.sub("'", " ".join(folded(text).split()))


def _stands(said: str, name: str, marks: Collection[str]) -> bool:
    """Return whether a name is in a text as whole words."""
    # Searching a plain string is much faster than a regular expression, and most names are not in the text.
    return name in said and re.search(as_words(name, marks), said) is not None


def _stretches(text: str) -> Iterator[str]:
    chunks = [match.span() for match, _ in zip(CHUNK.finditer(text), range(MOST_WORDS), strict=False)]
    marks = combining(text)
    befores = [_breaks(text, range(begin - 1, end - 1), marks) for begin, end in chunks]
    ends = [_breaks(text, range(begin + 1, end + 1), marks) for begin, end in chunks]
    named = [any(map(str.isalnum, text[begin:end])) for begin, end in chunks]
    for count in range(1, LONGEST + 1):
        for first, last in enumerate(range(count - 1, len(chunks))):
            if any(named[first : last + 1]):  # a table's rules alone have more stretches than a text has words
                stretches = (text[before + 1 : end] for before, end in product(befores[first], ends[last]))
                yield from (" ".join(one.split()) for one in stretches if any(map(str.isalnum, one)))


def _within_runs(text: str) -> Iterator[str]:
    """Yield the stretches of runs in scripts without blanks, except those that part a letter from its marks."""
    marks = combining(text)
    runs = [run[0] for run in UNSPACED_RUN.finditer(text)] if not text.isascii() else []
    for size in LENGTHS_WITHIN:
        for run in runs:
            for begin in range(len(run) - size + 1):
                if marks.isdisjoint((run[begin], run[begin + size : begin + size + 1])):
                    yield run[begin : begin + size]


def _breaks(text: str, places: range, marks: Collection[str]) -> list[int]:
    """Return the first places without a character of a word, so that a name may begin after or end before them."""
    around = {place: text[place] if 0 <= place < len(text) else " " for place in places}
    breaks = [place for place, one in around.items() if not (one.isalnum() or one == "_" or one in marks)]
    return breaks[:MOST_ENDS]


PATTERNS = {
    "nibe": r"nibe",
    "zigbee": r"zigbee",
    "z-wave": r"z-?wave",
    "auth": r"o?auth(?:entication|orization)?",
    "homeassistant": r"home[\s-]?assistant",
    "openclaw": r"openclaw",
    "postgres": r"postgres(?:ql)?",
    "sqlite": r"sqlite",
    "lancedb": r"lancedb",
    "api": r"apis?",
    "docker": r"docker",
    "kubernetes": r"kubernetes|k8s",
    "ha": r"HA",
}
"""The built-in topics and the words that name them, ignoring case.

Only `HA` (Home Assistant) must be in capitals: in lower case it is a laugh.
"""

IN_LOWER_CASE = re.compile(f"(?<![a-z0-9])(?:{'|'.join(PATTERNS.values()).lower()})(?![a-z0-9])")
"""Finds a topic in lower case, also `HA`: most texts name none, which this finds in half the time."""

NAMED = re.compile(
    "(?<![A-Za-z0-9])(?:"
    + "|".join(
        rf"(?P<{tag.replace('-', '_')}>(?{'' if words.isupper() else 'i'}:{words})(?![A-Za-z0-9]))"
        for tag, words in PATTERNS.items()
    )
    + ")"
)


def extract_tags(text: str, entity: str | None = None) -> list[str]:
    """Return the topics that a text and its entity name, in the order of their first appearance."""
    if text.isascii() and not entity and IN_LOWER_CASE.search(text.lower()) is None:
        return []
    found = [match.lastgroup or "" for said in (text, (entity or "").upper()) for match in NAMED.finditer(said)]
    return [tag.replace("_", "-") for tag in dict.fromkeys(found)]
