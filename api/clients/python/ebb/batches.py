"""Batches that fit into one request each."""

import json
from collections.abc import Iterable, Iterator
from typing import TypeVar

One = TypeVar("One")

CHARACTERS = 1_000_000
"""The most characters of a batch as JSON, if it has several."""


def batches(given: Iterable[One], most: int) -> Iterator[list[One]]:
    """Yield JSON values in order, in batches of at most `most` and of at most `CHARACTERS`."""
    part: list[One] = []
    room = CHARACTERS
    for one in given:
        size = len(json.dumps(one))
        if part and (len(part) == most or size > room):
            yield part
            part, room = [], CHARACTERS
        part.append(one)
        room -= size
    if part:
        yield part
