"""What an agent is shown of its memory: a line for each fact, in a wrapper, within a budget of tokens.

The budget counts everything that is injected, the wrapper too. Lines are escaped: the text of a fact can neither close
the wrapper nor pass for another fact.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

from workers.core import controls

OPENING, CLOSING = "<memory-context>", "</memory-context>"
SUMMARY_LENGTH = 80

Format = Literal["full", "short", "minimal"]


def line(text: str, category: str | None, label: str, form: Format) -> str:
    """Return one fact as it is injected: `[label/category] text`, `category: text` or `text`.

    A fact without category is `[label] text` or just its text. Further lines of a text are indented, so that none of
    them looks like a fact of its own; characters that are not seen are left out.
    """
    parts = (controls.visible(part) for part in escaped(text).splitlines())
    said = "\n  ".join(part for part in parts if part.strip())
    topic = _label(category or "")
    if form == "full":
        return f"[{_label(label)}/{topic}] {said}" if topic else f"[{_label(label)}] {said}"
    return f"{topic}: {said}" if form == "short" and topic else said


def escaped(text: str) -> str:
    """Return the text without a character that could begin a tag or an entity."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _label(text: str) -> str:
    """Return a word of a label on one line, without a character that could end the label or begin another."""
    name = controls.visible(" ".join(escaped(text).split()))
    return name.replace("[", "&#91;").replace("]", "&#93;").replace("/", "&#47;")


def block(lines: Sequence[str]) -> str:
    """Return lines in their wrapper, or nothing if there are none."""
    return "\n".join([OPENING, *lines, CLOSING]) if lines else ""


def fitting(lines: int, most: int, size: Callable[[int], int]) -> int:
    """Return how many of the first lines take at most so many tokens; the first that is too much ends it.

    `size` says how many tokens the block of so many lines has.
    """
    return bisect_right(range(1, lines + 1), most, key=size)


def summary(text: str) -> str:
    """Return the short form under which a long fact is stored besides: how it begins."""
    return text if len(text) <= SUMMARY_LENGTH else text[:SUMMARY_LENGTH] + "…"
