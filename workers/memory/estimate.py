"""Estimate: the salience of facts' content, from their words, their role, and how rare those words are."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.core import salience
from workers.core.salience import Statement
from workers.storage import activity, facts, namespaces, words
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
        ids = [id_ for id_, _, _ in rows]
        facts.estimate(db, tenant, ids, estimated)
        activity.weigh(db, tenant, ids)
        return len(rows)


def grown_tenfold(context: Context) -> list[str]:
    """Return the namespaces that have ten times the facts by which the salience of theirs was estimated."""
    with transaction(context.database_url) as db:
        return words.grown_tenfold(db)


def estimate_again(context: Context, namespace: str, now: datetime) -> int:
    """Estimate all facts of a namespace again, but those whose salience was given; return how many.

    Repeating it changes nothing. Each batch is a transaction of its own. That it is done is noted first, so that it
    is not begun again meanwhile.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return 0
        words.note_estimated(db, tenant.id)
    after: UUID | None = None
    count = 0
    while ids := _batch_again(context, tenant.id, after, now):
        count, after = count + len(ids), ids[-1]
    return count


def _batch_again(context: Context, tenant: int, after: UUID | None, now: datetime) -> list[UUID]:
    """Estimate the facts behind one; return which."""
    with transaction(context.database_url) as db:
        rows = facts.estimated(db, tenant, BATCH, after)
        ids = [id_ for id_, _, _ in rows]
        activity.lock(db, tenant, ids)
        found = salience_within(db, tenant, [Statement(text, role) for _, text, role in rows])
        own = context.settings.salience == "estimated"
        facts.estimate_again(db, tenant, ids, found, now, with_base=own)
        activity.weigh(db, tenant, ids)
    return ids
