"""Control characters that move the cursor, change the writing direction or hide text, escaped or removed.

Sources: Unicode's categories Cc and Cf, and UTR 36 on bidirectional text; the tag block U+E0000 carries hidden text.
"""

import json
import re
import unicodedata

BEYOND = "\x7f-\x9f\u061c\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
HARMFUL = re.compile(rf"[\x00-\x1f\ud800-\udfff{BEYOND}]")
HARMFUL_BUT_LINES = re.compile(rf"[\x00-\x08\x0b-\x1f\ud800-\udfff{BEYOND}]")
JOINERS = "\u200c\u200d"
"""These form letters in some scripts and join emoji."""

HIDDEN = ("Cc", "Cf", "Cs")


def escaped(text: str, *, lines: bool = False) -> str:
    """Return a text with control characters as Python escapes; with `lines`, line feeds and tabs stay."""
    return (HARMFUL_BUT_LINES if lines else HARMFUL).sub(lambda found: ascii(found[0])[1:-1], text)


def escaped_json(text: str) -> str:
    """Return equivalent JSON without control characters; those below U+0020 never occur in its texts."""
    return HARMFUL_BUT_LINES.sub(lambda found: json.dumps(found[0])[1:-1], text)


def visible(text: str) -> str:
    """Return a text without control and format characters; tabs become blanks, joiners between letters stay."""
    text = text.replace("\t", " ")
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter for place, letter in enumerate(text) if unicodedata.category(letter) not in HIDDEN or _joins(text, place)
    )


def _joins(text: str, place: int) -> bool:
    """Return whether a joiner stands between two characters of scripts that use joiners."""
    around = text[place - 1 : place] + text[place + 1 : place + 2]
    return (
        text[place] in JOINERS
        and len(around) == len(JOINERS)
        and all(not letter.isascii() and unicodedata.category(letter) not in HIDDEN for letter in around)
    )
