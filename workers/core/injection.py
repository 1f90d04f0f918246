"""The memory block that is injected into a prompt: one line per fact, in a wrapper, within a token budget.

The budget includes the wrapper. Texts are escaped: a fact can neither close the wrapper nor imitate another fact.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

from workers.core import controls
from workers.core.text import beginning

OPENING, CLOSING = "<memory-context>", "</memory-context>"
SUMMARY_LENGTH = 80

Format = Literal["full", "short", "minimal"]


def line(text: str, category: str | None, label: str, form: Format) -> str:
    """Return the line of one fact: `[label/category] text`, `category: text` or `text`.

    Without category it is `[label] text` or just the text. Further lines of a text are indented so that none looks like
    a fact of its own; invisible characters are removed.
    """
    parts = (controls.visible(part) for part in escaped(text).splitlines())
    said = "\n  ".join(part for part in parts if part.strip())
    topic = _label(category or "")
    if form == "full":
        return f"[{_label(label)}/{topic}] {said}" if topic else f"[{_label(label)}] {said}"
    return f"{topic}: {said}" if form == "short" and topic else said


def escaped(text: str) -> str:
    """Return the text with `&` and `<` escaped, so that it cannot begin a tag or an entity."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _label(text: str) -> str:
    """Return a label on one line, with the characters escaped that delimit labels."""
    name = controls.visible(" ".join(escaped(text).split()))
    return name.replace("[", "&#91;").replace("]", "&#93;").replace("/", "&#47;")


def block(lines: Sequence[str]) -> str:
    """Return lines in the wrapper, or an empty text if there are none."""
    return "\n".join([OPENING, *lines, CLOSING]) if lines else ""


def count_fitting(lines: int, most: int, size: Callable[[int], int]) -> int:
    """Return how many of the first lines fit into `most` tokens.

    `size` returns the tokens of the block of that many lines.
    """
    return bisect_right(range(1, lines + 1), most, key=size)


def summary(text: str) -> str:
    """Return the short form that is stored with a long fact: its first characters."""
    return text if len(text) <= SUMMARY_LENGTH else beginning(text, SUMMARY_LENGTH) + "…"
