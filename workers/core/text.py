"""What a text is apart from its look: cleaned of recalled context, normalised, and hashed."""

import hashlib
import re
import unicodedata

INJECTED = re.compile(r"<memory-context>.*?</memory-context>", re.DOTALL | re.IGNORECASE)


def strip_injected(text: str) -> str:
    """Return the text without recalled memory that an agent was shown, so that it is not learnt again."""
    return INJECTED.sub("", text).strip()


def normalise(text: str) -> str:
    """Return the text trimmed, in lower case and composed form, blanks collapsed (S125)."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def digest(text: str) -> bytes:
    """Return the SHA-256 of the normalised text: two facts with the same digest say the same (S18)."""
    return hashlib.sha256(normalise(text).encode()).digest()


def item_digest(path: str | None, key: str | None) -> bytes:
    """Return the SHA-256 of an item's place, where one is kept at a time, whatever it says."""
    return hashlib.sha256("\0".join(["item", path or "", key or ""]).encode()).digest()


def chunk_digest(path: str | None, section: str | None, text: str) -> bytes:
    """Return the SHA-256 of a part of a document: the same words elsewhere are another part, and each letter counts."""
    return hashlib.sha256("\0".join([path or "", section or "", text]).encode()).digest()
