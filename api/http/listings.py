"""Facts for callers that use only beginnings or ids; those that are too large for one answer are read in parts."""

from collections.abc import Iterator, Sequence
from typing import Any

from ebb.contract.values import MOST_RESULTS

from api.http.dispatch import Session
from workers.errors import InvalidInputError


def page(memory: Session, limit: int, **given: Any) -> dict[str, Any]:
    """Return a page of facts as `memory.facts` does; it has fewer than `limit` if so many are too large together."""
    try:
        return memory.facts(limit, **given)
    except InvalidInputError:
        if limit == 1:
            raise
        return page(memory, limit // 2, **given)


def each(memory: Session, ids: Sequence[str], most: int = MOST_RESULTS) -> Iterator[dict[str, Any]]:
    """Yield those of these facts that are live, in this order; they are read in as many parts as their sizes need."""
    for start in range(0, len(ids), most):
        part = ids[start : start + most]
        try:
            found = memory.facts(ids=part)["facts"]
        except InvalidInputError:
            if len(part) == 1:
                raise
            found = each(memory, part, (len(part) + 1) // 2)
        yield from found
