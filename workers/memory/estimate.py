"""Estimate: the salience of facts' content, from their words, their role, and how rare those words are."""

from collections.abc import Sequence

from workers.context import Context
from workers.core import salience
from workers.core.salience import Statement
from workers.storage import facts, words
from workers.storage.connection import Connection, transaction

BATCH = 500


def salience_within(db: Connection, tenant: int, statements: Sequence[Statement]) -> list[float]:
    """Return the salience of the content of n statements, in [0, 1], as the facts of a namespace make their words rare.

    The counts of words are those of their last count; that suffices, for what a count misses is rare.
    """
    if not statements:
        return []
    asked = dict.fromkeys(word for one in statements for word in salience.words(one.text))
    held = words.held(db, tenant, list(asked)) if asked else {}
    found: list[float] = salience.salience(statements, held, words.counted_facts(db, tenant)).tolist()
    return found


def fill(context: Context) -> int:
    """Estimate a batch of facts that have no salience yet; return how many. Repeating it changes nothing."""
    with transaction(context.database_url) as db:
        waiting = facts.unestimated(db, BATCH)
        if waiting is None:
            return 0
        tenant, rows = waiting
        estimated = salience_within(db, tenant, [Statement(text, role) for _, text, role in rows])
        facts.estimate(db, tenant, [id_ for id_, _, _ in rows], estimated)
        return len(rows)
