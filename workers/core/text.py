"""Normalising texts and computing the identity by which equal statements are recognised."""

import hashlib
import itertools
import re
import unicodedata

INJECTED = re.compile(r"<memory-context>.*?(?:(</memory-context>)|\Z)", re.DOTALL | re.IGNORECASE)
"""An injected memory block, or without its group the rest of a text in which none is closed any more.

This ends a search; otherwise each further opening would be searched for an end once more.
"""

STEM, MARK, MARKS = 32, 8, 4
"""Bytes of a text's digest and of each mark after it, and the number of marks."""

FIELDS = tuple(slice(STEM + MARK * place, STEM + MARK * (place + 1)) for place in range(1, MARKS))
"""Places of the marks of entity, key and value."""

NO_MARK = b"\0" * MARK
OPENING, CLOSING = "\"'`([{<\u00ab\u201e\u201c\u2018\u2039*_", "\"'`)]}>\u00bb\u201c\u201d\u2019\u203a*_.,;:!?\u2026"
JOINING = "-\u2010\u2011\u2013'\u2019"
WORD = re.compile(r"\w+")
COMBINING = ("Mn", "Mc", "Me")
"""Categories of accents and vowel signs, which belong to the letter before them."""

JOINER = "\u200d"
"""Joins emoji to one, and letters of some scripts."""

SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"

JOINTS = re.compile(rf"[{JOINING}]|(?<=[^\W\d_])/(?=[^\W\d_])")
"""What joins ordinary words into one: hyphens, apostrophes, and the slash in `and/or`."""


def strip_injected(text: str) -> str:
    """Return the text without injected memory blocks, so that recalled facts are not stored again."""
    return "".join(outside_injected(text)).strip()


def outside_injected(text: str) -> list[str]:
    """Return the parts of a text before, between and after injected memory blocks."""
    blocks = [block.span() for block in INJECTED.finditer(text) if block[1]]
    starts, ends = [0, *(end for _, end in blocks)], [*(start for start, _ in blocks), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def blank_injected(text: str) -> str:
    """Return the text with empty lines in place of injected memory blocks, so that line numbers stay."""
    return INJECTED.sub(lambda block: "\n" * block[0].count("\n") if block[1] else block[0], text)


def normalise(text: str) -> str:
    """Return the text in lower case and composed form (NFC), trimmed, with single blanks."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def words(text: str) -> list[str]:
    """Return the words of a text in composed form (NFC), with their accents and vowel signs."""
    if text.isascii():
        return WORD.findall(text)
    text = unicodedata.normalize("NFC", text)
    marked = text.translate({ord(one): "_" for one in combining(text)})
    return [text[slice(*word.span())] for word in WORD.finditer(marked)]


def combining(text: str) -> set[str]:
    """Return the accents and vowel signs of a text that are characters of their own."""
    return set() if text.isascii() else {one for one in set(text) if unicodedata.category(one) in COMBINING}


def with_plain_digits(text: str) -> str:
    """Return the text with the digits of all scripts as 0 to 9."""
    if text.isascii():
        return text
    return text.translate({ord(one): str(unicodedata.decimal(one)) for one in set(text) if one.isdecimal()})


def beginning(text: str, most: int) -> str:
    """Return at most the first `most` characters of a text, without one that is cut from its accents or modifiers."""
    end = min(most, len(text))
    while 0 < end < len(text) and (_modifies(text[end]) or text[end - 1] == JOINER):
        end -= 1
    return text[: end or most]


def _modifies(letter: str) -> bool:
    return letter == JOINER or letter in SKIN_TONES or unicodedata.category(letter) in COMBINING


def digest(text: str) -> bytes:
    """Return the SHA-256 of the normalised text: facts with the same digest state the same."""
    return hashlib.sha256(normalise(text).encode()).digest()


def statement_digest(text: str, entity: str | None, key: str | None, value: str | None) -> bytes:
    """Return the identity of a statement: the digest of its text, followed by marks of what else distinguishes it.

    The four marks of 8 bytes stand for its case-sensitive words, entity, key and value; zeros for none. They are left
    out if all are zero.
    """
    named = [*(normalise(name) if name else "" for name in (entity, key)), cased(value) if value else ""]
    marks = b"".join(_mark(said) for said in (" ".join(_cased_words(text)), *named))
    return digest(text) + marks if any(marks) else digest(text)


def text_digest(identity: bytes) -> bytes:
    """Return the digest of a statement's text alone, without case, entity, key and value."""
    return identity[:STEM]


def wording_digest(identity: bytes) -> bytes:
    """Return the digest of a statement's text and case-sensitive words, without entity, key and value."""
    case = _marks(identity)[0]
    return text_digest(identity) if case == NO_MARK else text_digest(identity) + case


def same_record(one: bytes, other: bytes) -> bool:
    """Return whether two statements under one id can be the same fact: the same text, whatever it is about.

    Case-sensitive words are compared if both identities have marks; those of earlier versions have none.
    """
    known = STEM not in (len(one), len(other))
    return text_digest(one) == text_digest(other) and (not known or _marks(one)[0] == _marks(other)[0])


def same_statement(one: bytes, other: bytes) -> bool:
    """Return whether two statements are the same: equal text, and no differing entity, key or value.

    A field that one of them leaves empty does not differ.
    """
    return same_subject(one, other) and wording_digest(one) == wording_digest(other)


def same_subject(one: bytes, other: bytes) -> bool:
    """Return whether two statements have no differing entity, key or value, whatever their texts.

    A field that one of them leaves empty does not differ. Written for speed, as a statement is compared with up to a
    thousand others of one text.
    """
    if STEM in (len(one), len(other)):
        return True
    for place in FIELDS:
        mark, another = one[place], other[place]
        if mark != another and NO_MARK not in (mark, another):
            return False
    return True


def adds_detail(said: dict[bytes, bytes], identity: bytes) -> bool:
    """Return whether a statement is one of those in `said` with more or less detail; the newest such one gains it.

    `said` maps statements, oldest first, to what they are with the detail that they have gained.
    """
    alike = (one for one, whole in reversed(said.items()) if same_statement(whole, identity))
    own = None if identity in said else next(alike, None)
    if own is not None:
        said[own] = text_digest(identity) + b"".join(map(max, _marks(said[own]), _marks(identity)))
    return own is not None


def less_specific(identity: bytes) -> list[bytes]:
    """Return the identities of all statements with this text that leave more fields empty, itself first."""
    if len(identity) == STEM:
        return [identity]
    marks = _marks(identity)
    choices = itertools.product(*((mark, NO_MARK) if mark != NO_MARK else (mark,) for mark in marks[1:]))
    said = [text_digest(identity) + marks[0] + b"".join(choice) for choice in choices]
    return [one if any(one[STEM:]) else one[:STEM] for one in said]


def least_specific(identity: bytes) -> bytes:
    """Return the identity of the statement with this text and without entity, key and value."""
    return less_specific(identity)[-1]


def cased(text: str) -> str:
    """Return the normalised text, with the case of case-sensitive words kept."""
    words = unicodedata.normalize("NFC", text).split()
    return " ".join(word if case_matters(word) else word.lower() for word in words)


def case_matters(word: str) -> bool:
    """Return whether a word is case-sensitive, as passwords, options and identifiers in code are.

    That is a word of letters and digits or signs (not counting surrounding punctuation, hyphens and apostrophes), or
    one with an inner capital that is not all in capitals.
    """
    if word.isalpha() and (word.islower() or word.isupper() or word[1:].islower()):
        return False
    inner = word.rstrip(CLOSING).lstrip(OPENING)
    if not inner or inner[0] in JOINING:
        return _is_special(inner)
    return any(map(_is_special, filter(None, JOINTS.split(inner))))


def _is_special(part: str) -> bool:
    if not any(map(str.isalpha, part)):
        return False
    if not all(letter.isalpha() or unicodedata.category(letter) == "Mn" for letter in part):
        return True
    return part[1:] != part[1:].lower() and not part.isupper()


def _cased_words(text: str) -> list[str]:
    words = unicodedata.normalize("NFC", text).split()
    return [word.rstrip(CLOSING).lstrip(OPENING) for word in words if case_matters(word)]


def _mark(said: str) -> bytes:
    return hashlib.sha256(said.encode()).digest()[:MARK] if said else NO_MARK


def _marks(identity: bytes) -> list[bytes]:
    marks = identity[STEM:] or NO_MARK * MARKS
    return [marks[start : start + MARK] for start in range(0, MARK * MARKS, MARK)]


def item_digest(path: str | None, key: str | None) -> bytes:
    """Return the SHA-256 of an item's path and key; one item is stored per place."""
    return hashlib.sha256("\0".join(["item", path or "", key or ""]).encode()).digest()


def identity(kind: str, text: str, about: tuple[str | None, str | None, str | None], source: str | None) -> bytes:
    """Return the identity of a fact about (entity, key, value): its statement, or for documents its place.

    Of a chunk it is the SHA-256 of its place in its document, with the section as key, and of its exact text.
    """
    entity, key, value = about
    match kind:
        case "chunk":
            return hashlib.sha256("\0".join([source or "", key or "", text]).encode()).digest()
        case "item":
            return item_digest(entity, key)
    return statement_digest(text, entity, key, value)
