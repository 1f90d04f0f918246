"""Cost of a recall, by its limit, explanations and query length, and the maximum size of an answer."""

from math import ceil

from workers.errors import InvalidInputError

EXPLAINED = 4
"""Cost of a fact with an explanation, relative to one without."""

LONG = 4_096
"""Bytes of query that add the cost of one more fact for each fact."""

LIGHT = 100
"""Recalls up to this cost take hardly longer than the smallest."""

MOST_BYTES = 32 * 2**20
"""Maximum size of an answer. Clients need several times as much memory, and Redis accepts no value of 512 MiB."""


def recall_cost(limit: int, query_bytes: int, *, explain: bool = False) -> int:
    """Return the cost of a recall; ten facts for a short question cost 10."""
    return limit * cost_per_fact(query_bytes, explain=explain)


def most_facts(cost: int, query_bytes: int, *, explain: bool = False) -> int:
    """Return the highest limit of a recall within this cost; 0 if the query alone is too long."""
    return cost // cost_per_fact(query_bytes, explain=explain)


def cost_per_fact(query_bytes: int, *, explain: bool) -> int:
    """Return the cost of one fact in the answer."""
    return (EXPLAINED if explain else 1) * (1 + query_bytes // LONG)


def check_size(size: int) -> None:
    """Raise `InvalidInputError` for an answer of more than `MOST_BYTES`, best before its facts are read."""
    if size > MOST_BYTES:
        has, most = ceil(size / 2**20), MOST_BYTES // 2**20
        raise InvalidInputError(f"The answer has {has} MiB, and one may have {most} MiB: ask for fewer at once.")
