"""Estimate: the salience of facts' content, from their words, their role, and how rare those words are."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.core import salience
from workers.core.salience import Statement
from workers.storage import activity, facts, namespaces, words
from workers.storage.connection import Connection, transaction
from workers.storage.facts import Said

BATCH = 500


def salience_within(
    db: Connection, tenant: int, said: Sequence[Said], seen: set[str] | None = None, *, counted: int = 0
) -> list[float]:
    """Return the salience of the content of n facts, in [0, 1], as the facts of a namespace make their words rare.

    Without the words that were `seen` in older facts, those in more than `counted` facts count as such: these are then
    among the facts that were counted. The counts are those of the last time; what they miss is rare.
    """
    if not said:
        return []
    asked = dict.fromkeys(word for one in said for word in salience.words(one.text))
    held = words.held(db, tenant, list(asked)) if asked else {}
    statements = [
        Statement(one.text, one.role, before) for one, before in zip(said, _before(db, tenant, said), strict=True)
    ]
    known = {word for word, facts in held.items() if facts > counted} if seen is None else seen
    found: list[float] = salience.salience(statements, held, words.counted_facts(db, tenant), known).tolist()
    return found


def _before(db: Connection, tenant: int, said: Sequence[Said]) -> list[str | None]:
    """Return what was said just before each fact in its session; nothing before its first, none without session."""
    here = {(one.session, one.turn): one.text for one in said if one.turn is not None}
    places = [(one.session, one.turn) for one in said if one.session is not None and one.turn is not None]
    asked = [place for place in places if (place[0], place[1] - 1) not in here]
    stored = dict(zip(asked, facts.before(db, tenant, asked), strict=True)) if asked else {}
    return [
        None if one.session is None or one.turn is None
        else here.get((one.session, one.turn - 1), stored.get((one.session, one.turn)))
        for one in said
    ]  # fmt: skip


def fill(context: Context) -> int:
    """Estimate a batch of facts that have no salience yet; return how many. Repeating it changes nothing."""
    with transaction(context.database_url) as db:
        waiting = facts.unestimated(db, BATCH)
        if waiting is None:
            return 0
        tenant, rows = waiting
        ids = [one.id for one in rows]
        facts.estimate(db, tenant, ids, salience_within(db, tenant, rows, counted=1))
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
    count, seen = 0, set[str]()
    while ids := _batch_again(context, tenant.id, after, seen, now):
        count, after = count + len(ids), ids[-1]
    return count


def _batch_again(context: Context, tenant: int, after: UUID | None, seen: set[str], now: datetime) -> list[UUID]:
    """Estimate the facts behind one, whose words are then `seen`; return which."""
    with transaction(context.database_url) as db:
        rows = facts.estimated(db, tenant, BATCH, after)
        ids = [one.id for one in rows]
        activity.lock(db, tenant, ids)
        found = salience_within(db, tenant, rows, seen)
        own = context.settings.salience == "estimated"
        facts.estimate_again(db, tenant, ids, found, now, with_base=own)
        activity.weigh(db, tenant, ids)
    return ids
