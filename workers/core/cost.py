"""What a recall costs: the more facts, explanations and words of the question, the more."""

EXPLAINED = 4
"""How many facts without an explanation cost as much as one with it."""

LONG = 4_096
"""A query that is so many bytes longer makes every fact cost as much again."""

LIGHT = 100
"""A recall up to this cost takes hardly longer than the smallest."""


def of_recall(limit: int, query_bytes: int, *, explain: bool = False) -> int:
    """Return the cost of a recall; that of ten facts for a short question is 10."""
    return limit * _each(query_bytes, explain=explain)


def most_facts(cost: int, query_bytes: int, *, explain: bool = False) -> int:
    """Return how many facts a recall of at most this cost may ask for; 0 where the query alone is too long."""
    return cost // _each(query_bytes, explain=explain)


def _each(query_bytes: int, *, explain: bool) -> int:
    return (EXPLAINED if explain else 1) * (1 + query_bytes // LONG)
