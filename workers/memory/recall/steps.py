"""Steps: several recalls on one connection wait for their rows together, so that a distant server costs few trips."""

from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")

Steps: TypeAlias = Generator[None, None, Result]
"""Work that yields when it has sent queries, before it reads their rows."""


def together(works: Sequence[Steps[Result]]) -> list[Result]:
    """Return the result of each work; in a pipeline, what all of them send before they yield takes one trip."""
    results: dict[int, Result] = {}
    going = dict(enumerate(works))
    while going:
        for place, work in list(going.items()):
            try:
                next(work)
            except StopIteration as end:
                results[place] = end.value
                del going[place]
    return [results[place] for place in range(len(works))]
