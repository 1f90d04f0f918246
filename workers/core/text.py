"""What a text is apart from its look: cleaned of recalled context, normalised, and hashed."""

import hashlib
import itertools
import re
import unicodedata

INJECTED = re.compile(r"<memory-context>.*?</memory-context>", re.DOTALL | re.IGNORECASE)

STEM, MARK, MARKS = 32, 8, 4
"""Bytes of the digest of a text, of each mark that may follow it, and how many marks there are."""

NO_MARK = b"\0" * MARK
OPENING, CLOSING = "\"'`([{<\u00ab\u201e\u201c\u2018\u2039*_", "\"'`)]}>\u00bb\u201c\u201d\u2019\u203a*_.,;:!?\u2026"
JOINING = "-\u2010\u2011\u2013'\u2019"
JOINTS = re.compile(rf"[{JOINING}]|(?<=[^\W\d_])/(?=[^\W\d_])")
"""What joins ordinary words into one: hyphens, apostrophes, and the stroke in `and/or`."""


def strip_injected(text: str) -> str:
    """Return the text without recalled memory that an agent was shown, so that it is not learnt again."""
    return INJECTED.sub("", text).strip()


def normalise(text: str) -> str:
    """Return the text trimmed, in lower case and composed form, blanks collapsed."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def digest(text: str) -> bytes:
    """Return the SHA-256 of the normalised text: two facts with the same digest say the same."""
    return hashlib.sha256(normalise(text).encode()).digest()


def statement_digest(text: str, entity: str | None, key: str | None, value: str | None) -> bytes:
    """Return what identifies a statement: the digest of its text, and marks of what else distinguishes it.

    Nothing follows the 32 bytes of `digest` where the text is of ordinary words alone, and nothing says what it is
    about. Else four marks of 8 bytes do: of its words whose case matters, of entity, key and value; zeros for none.
    """
    named = [*(normalise(name or "") for name in (entity, key)), cased(value or "")]
    marks = b"".join(_mark(said) for said in (" ".join(_cased_words(text)), *named))
    return digest(text) + marks if any(marks) else digest(text)


def stem(identity: bytes) -> bytes:
    """Return the digest of a statement's text alone, its case and what it is about left aside."""
    return identity[:STEM]


def same_record(one: bytes, other: bytes) -> bool:
    """Return whether what one id was given twice can be one fact: the same text, whatever it is about.

    Case counts where it matters, as far as both identities contain it: those of earlier versions have no marks.
    """
    known = STEM not in (len(one), len(other))
    return stem(one) == stem(other) and (not known or _marks(one)[0] == _marks(other)[0])


def same_statement(one: bytes, other: bytes) -> bool:
    """Return whether two statements are one: the same text, and of entity, key and value none that differs.

    What one of them leaves open does not differ.
    """
    case, *about = zip(_marks(one), _marks(other), strict=True)
    return (
        stem(one) == stem(other) and case[0] == case[1] and all(NO_MARK in pair or pair[0] == pair[1] for pair in about)
    )


def says_less(identity: bytes) -> list[bytes]:
    """Return the identities of all statements with this text that leave more open, itself first."""
    marks = _marks(identity)
    choices = itertools.product(*((mark, NO_MARK) if mark != NO_MARK else (mark,) for mark in marks[1:]))
    said = [stem(identity) + marks[0] + b"".join(choice) for choice in choices]
    return [one if any(one[STEM:]) else one[:STEM] for one in said]


def bare(identity: bytes) -> bytes:
    """Return the identity of the statement with this text that leaves open what it is about."""
    return says_less(identity)[-1]


def cased(text: str) -> str:
    """Return the text normalised, but for the words whose case matters, which stay as they are."""
    words = unicodedata.normalize("NFC", text).split()
    return " ".join(word if case_matters(word) else word.lower() for word in words)


def case_matters(word: str) -> bool:
    """Return whether upper and lower case may be two things: a password, an option, a name as programs have them.

    They are in a word that has letters beside digits or signs, but for punctuation around it and the hyphens and
    apostrophes of ordinary words, and in one with a capital inside that is not all in capitals.
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
    """Return the SHA-256 of an item's place, where one is kept at a time, whatever it says."""
    return hashlib.sha256("\0".join(["item", path or "", key or ""]).encode()).digest()


def chunk_digest(path: str | None, section: str | None, text: str) -> bytes:
    """Return the SHA-256 of a part of a document: the same words elsewhere are another part, and each letter counts."""
    return hashlib.sha256("\0".join([path or "", section or "", text]).encode()).digest()


def identity(kind: str, text: str, about: tuple[str | None, str | None, str | None], source: str | None) -> bytes:
    """Return what identifies a fact about (entity, key, value): its statement, or for documents where it is kept."""
    entity, key, value = about
    match kind:
        case "chunk":
            return chunk_digest(source, key, text)
        case "item":
            return item_digest(entity, key)
    return statement_digest(text, entity, key, value)
