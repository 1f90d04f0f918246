"""Chunks of a Markdown document: slices of up to 500 tokens under one heading that overlap by up to 50.

A chunk ends at a block, a line or a sentence, if it is at least half full there. Tables and code are cut only where
necessary, and then between lines.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from workers.core.text import blank_injected
from workers.core.tokens import Count

CHUNK_TOKENS = 500
OVERLAP_TOKENS = 50
PATH_SEPARATOR = " > "
LONGEST_PATH = 1_000
"""Characters of a heading path; of a longer one the end is kept."""

CLOSING = r"[\"')\]」』”’）]*"  # noqa: RUF001 - full-width marks too
WORD = re.compile(rf"\n+|[^\S\n]*(?:[^\s。！？]*[。！？]+{CLOSING}|\S+)|[^\S\n]+")  # noqa: RUF001
"""A word, or where sentences follow each other without blanks, a sentence."""

SENTENCE_END = re.compile(rf"[.!?。！？]{CLOSING}$")  # noqa: RUF001
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)

Size = Callable[[int, int], int]
"""The number of tokens between two bounds of a section."""

# Inline content is parsed for headings only.
BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")
INLINE = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document: the headings above it, outermost first, its text, and the line at which it begins."""

    section: str
    text: str
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading: its path, start, body start and end, and the starts of its blocks."""

    path: str
    start: int
    body: int
    end: int
    blocks: frozenset[int]


def chunks(text: str, count: Count) -> list[Chunk]:
    """Return a document's chunks in order, without injected memory and duplicates under the same headings.

    A byte order mark at its beginning is no part of it, as a heading would be none behind it.
    """
    text = blank_injected(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    lines = _line_starts(text, 0)
    found = [
        _chunk(text, section.path, start, end, lines)
        for section in sections(text)
        for start, end in chunk_bounds(text, section, count)
    ]
    return list(dict.fromkeys(chunk for chunk in found if chunk.text))


def _chunk(text: str, section: str, start: int, end: int, lines: Sequence[int]) -> Chunk:
    cut = text[start:end]
    return Chunk(section, cut.strip(), bisect_right(lines, start + len(cut) - len(cut.lstrip())))


def sections(text: str) -> list[Section]:
    """Return a document's sections, which together cover it; a bare heading belongs to the section below it."""
    matter = FRONT_MATTER.match(text)
    begin = matter.end() if matter else 0
    lines = _line_starts(text, begin)
    tokens = BLOCKS.parse(text[begin:])
    blocks = frozenset(lines[token.map[0]] for token in tokens if token.map)
    marks = [*([(0, 0, "")] if matter else []), (begin, begin, ""), *_headings(tokens, lines)]
    ends = [start for start, _, _ in marks[1:]] + [len(text)]
    every = [Section(path, start, body, end, blocks) for (start, body, path), end in zip(marks, ends, strict=True)]
    return _with_bare_headings([one for one in every if text[one.start : one.end].strip()], text)


def _line_starts(text: str, begin: int) -> list[int]:
    """Return where each line after `begin` starts, and where the text ends."""
    starts = [begin]
    for line in text[begin:].split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return [min(start, len(text)) for start in starts]


def _headings(tokens: Sequence[Token], lines: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and path of each heading; those within lists and quotations are ignored."""
    above: list[tuple[int, str]] = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            depth = int(opening.tag[1])
            above = [*(one for one in above if one[0] < depth), (depth, _title(inline.content))]
            path = PATH_SEPARATOR.join(title for _, title in above if title)[-LONGEST_PATH:]
            yield lines[opening.map[0]], lines[opening.map[1]], path


def _title(heading: str) -> str:
    """Return a heading's text without markup."""
    (inline,) = INLINE.parseInline(heading)
    words = "".join(child.content or " " * (child.type == "softbreak") for child in inline.children or ())
    return " ".join(words.split())


def _with_bare_headings(found: Sequence[Section], text: str) -> list[Section]:
    """Return the sections, with each heading without text merged into the next deeper one."""
    kept: list[Section] = []
    start: int | None = None
    for one, following in zip(found, [*found, None][1:], strict=True):
        begin = one.start if start is None else start
        if (
            not text[one.body : one.end].strip()
            and following is not None
            and following.path.startswith(one.path + PATH_SEPARATOR)
        ):
            start = begin
            continue
        kept.append(replace(one, start=begin))
        start = None
    return kept


def chunk_bounds(text: str, section: Section, count: Count) -> Iterator[tuple[int, int]]:
    """Yield start and end of the chunks of a section."""
    bounds = _bounds(text, section, count)

    def size(start: int, end: int) -> int:
        return count(text[bounds[start] : bounds[end]].strip())

    first, last = 0, len(bounds) - 1
    while first < last:
        end = _fitting(first, last, size)
        if end < last:
            end = _well_cut(text, section, bounds, first, end, size)
        yield bounds[first], bounds[end]
        if end == last:
            return
        first = _overlapping(first, end, size)


def _bounds(text: str, section: Section, count: Count) -> list[int]:
    """Return where a section may be cut: between words, and within words longer than an overlap."""
    places = [section.start]
    for word in WORD.finditer(text, section.start, section.end):
        while (place := _within_word(text, places[-1], word.end(), count)) < word.end():
            places.append(place)
        if places[-1] < word.end():
            places.append(word.end())
    return places


def _within_word(text: str, start: int, end: int, count: Count) -> int:
    """Return where the longest part from `start` ends that is no longer than an overlap, of a character or more."""
    reach = start + OVERLAP_TOKENS
    while count(text[start : min(reach, end)].strip()) <= OVERLAP_TOKENS:
        if reach >= end:
            return end
        reach += reach - start
    ends = range(start + 1, min(reach, end) + 1)
    return start + max(bisect_right(ends, OVERLAP_TOKENS, key=lambda place: count(text[start:place].strip())), 1)


def _fitting(first: int, last: int, size: Size) -> int:
    """Return the last bound up to which a chunk from bound `first` fits; at least the next."""
    reach = min(first + CHUNK_TOKENS, last)
    while reach < last and size(first, reach) <= CHUNK_TOKENS:
        reach = min(first + 2 * (reach - first), last)
    ends = range(first + 1, reach + 1)
    return first + max(bisect_right(ends, CHUNK_TOKENS, key=lambda bound: size(first, bound)), 1)


def _well_cut(text: str, section: Section, bounds: Sequence[int], first: int, end: int, size: Size) -> int:
    """Return the last bound at the end of a block, else a line, else a sentence, if the chunk is half full there."""
    ends = range(first + 1, end)
    half = first + 1 + bisect_left(ends, CHUNK_TOKENS // 2, key=lambda bound: size(first, bound))
    for well in (
        lambda at: at in section.blocks,
        lambda at: text[at - 1] == "\n",
        lambda at: SENTENCE_END.search(text, max(at - 20, 0), at),
    ):
        for bound in range(end, half - 1, -1):
            if well(bounds[bound]):
                return bound
    return end


def _overlapping(first: int, end: int, size: Size) -> int:
    """Return the bound at which the next chunk starts: as early as the overlap allows."""
    return first + 1 + bisect_left(range(first + 1, end), -OVERLAP_TOKENS, key=lambda bound: -size(bound, end))
