"""Archive: the lines around an export, by which a reader notices that it was cut off or has lost some."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

NAME = "archive"
BEGINS = {NAME: "begins"}


def framed(lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield a line that says that an archive begins, its lines, and one that it ends, with how many they were."""
    yield BEGINS
    count = 0
    for count, line in enumerate(lines, start=1):  # noqa: B007 - used below
        yield line
    yield {NAME: "ends", "lines": count}


def is_frame(line: Mapping[str, Any]) -> bool:
    """Return whether a line says that an archive begins or ends."""
    return NAME in line and "text" not in line


def lost(end: Mapping[str, Any], begun: int, number: int) -> str | None:
    """Return what is wrong with an archive that began in one line and says in another that it ends, if something is."""
    there = number - begun - 1
    if not begun or end.get("lines") == there:
        return None
    return f"the archive had {end.get('lines')} lines, and {there} of them are here; export it again."


CUT_OFF = "the archive ends before its last line: it was cut off. What was there is imported; export it again."
