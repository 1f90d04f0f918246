"""Cost of a recall, by its limit, explanations and query length."""

EXPLAINED = 4
"""Cost of a fact with an explanation, relative to one without."""

LONG = 4_096
"""Bytes of query that add the cost of one more fact for each fact."""

LIGHT = 100
"""Recalls up to this cost take hardly longer than the smallest."""


def recall_cost(limit: int, query_bytes: int, *, explain: bool = False) -> int:
    """Return the cost of a recall; ten facts for a short question cost 10."""
    return limit * cost_per_fact(query_bytes, explain=explain)


def most_facts(cost: int, query_bytes: int, *, explain: bool = False) -> int:
    """Return the highest limit of a recall within this cost; 0 if the query alone is too long."""
    return cost // cost_per_fact(query_bytes, explain=explain)


def cost_per_fact(query_bytes: int, *, explain: bool) -> int:
    """Return the cost of one fact in the answer."""
    return (EXPLAINED if explain else 1) * (1 + query_bytes // LONG)
