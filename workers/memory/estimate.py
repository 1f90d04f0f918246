"""Estimate: the content salience of facts, from their words, role, and the rarity of the words."""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import accumulate, chain
from uuid import UUID

from workers.context import Context
from workers.coordination import signals
from workers.core import salience
from workers.core.salience import Statement
from workers.storage import activity, facts, namespaces, words
from workers.storage.connection import Connection, transaction
from workers.storage.facts import TextInSession

BATCH, MOST_LETTERS = 500, 1_000_000
"""Facts and letters estimated in one transaction: a long text has thousands of words, which are looked up together."""

ALONE_SECONDS = 120.0
"""How long the lock on estimating a namespace outlives its caller, which renews it."""


def salience_within(
    db: Connection,
    tenant: int,
    said: Sequence[TextInSession],
    seen: set[str] | None = None,
    *,
    counted: int = 0,
) -> list[float]:
    """Return the content salience of n facts as `ask_salience` does, with the namespace's latest counts."""
    if not said:
        return []
    return ask_salience(db, tenant, said, *words.counts(db, tenant), seen, counted=counted)()


def ask_salience(
    db: Connection,
    tenant: int,
    said: Sequence[TextInSession],
    counted_facts: int,
    mean_words: float | None,
    seen: set[str] | None = None,
    *,
    counted: int = 0,
) -> Callable[[], list[float]]:
    """Send the queries for the words of n facts; return a function that gives their content salience, in [0, 1].

    `seen` are the words of older facts; by default those in more than `counted` facts, where these facts may be among
    the counted ones. Words missing from the latest counts are treated as rare. `counted_facts` is the number of the
    namespace's facts by the last count, and `mean_words` their average number of words, None before any count.
    """
    spoken = [salience.words(one.text) for one in said]
    asked = dict.fromkeys(chain.from_iterable(spoken))
    read, before = words.ask_held(db, tenant, list(asked)) if asked else dict, _ask_before(db, tenant, said)

    def estimated() -> list[float]:
        held = read()
        statements = [
            Statement(one.text, one.role, previous, own)
            for one, previous, own in zip(said, before(), spoken, strict=True)
        ]
        known = {word for word, facts in held.items() if facts > counted} if seen is None else seen
        return salience.salience(statements, held, counted_facts, known, mean_words).tolist()

    return estimated


def _ask_before(db: Connection, tenant: int, said: Sequence[TextInSession]) -> Callable[[], list[str | None]]:
    """Send the query for the text just before each fact in its session; return its reader.

    The text is empty before the first turn, None without a session.
    """
    here = {(one.session, one.turn): one.text for one in said if one.turn is not None}
    places = [(one.session, one.turn) for one in said if one.session is not None and one.turn is not None]
    asked = [place for place in places if (place[0], place[1] - 1) not in here]
    read = facts.ask_before(db, tenant, asked) if asked else list

    def before() -> list[str | None]:
        stored = dict(zip(asked, read(), strict=True))
        return [
            None if one.session is None or one.turn is None
            else here.get((one.session, one.turn - 1), stored.get((one.session, one.turn)))
            for one in said
        ]  # fmt: skip

    return before


def fill(context: Context) -> int:
    """Estimate a batch of facts without salience; return how many. Idempotent."""
    with transaction(context.database_url) as db:
        waiting = facts.unestimated(db, BATCH)
        if waiting is None:
            return 0
        tenant, rows = waiting[0], _first(waiting[1])
        ids = [one.id for one in rows]
        activity.lock(db, tenant, ids)  # before the facts, as an erasure does
        facts.estimate(db, tenant, ids, salience_within(db, tenant, rows, counted=1))
        activity.update_worth(db, tenant, ids)
        return len(rows)


def _first(rows: Sequence[TextInSession]) -> Sequence[TextInSession]:
    """Return the first facts, with `MOST_LETTERS` together; at least one, if there is any."""
    letters = list(accumulate(len(one.text) for one in rows))
    return rows[: max(bisect_right(letters, MOST_LETTERS), 1)]


def grown_tenfold(context: Context, namespace: str | None = None) -> list[str]:
    """Return the namespaces that have grown tenfold since their saliences were estimated; given one, at most that."""
    with transaction(context.database_url) as db:
        return words.grown_tenfold(db, namespace)


def estimate_grown(context: Context, now: datetime, until: float) -> int:
    """Estimate all facts of namespaces that have grown tenfold again, the smallest first; return how many.

    None is begun after `until` on the monotonic clock. Each is estimated by one caller at a time; if that caller
    crashes, the next one begins again, `ALONE_SECONDS` later.
    """
    count = 0
    for name in grown_tenfold(context):
        if time.monotonic() > until:
            break
        with signals.try_lock(context.redis, f"estimate:{name}", ALONE_SECONDS, renew=True) as alone:
            if alone and grown_tenfold(context, name):  # unless another caller has just done it
                count += estimate_again(context, name, now)
    return count


def estimate_again(context: Context, namespace: str, now: datetime) -> int:
    """Estimate all facts of a namespace again, except those with a given salience; return how many. Idempotent.

    Each batch is one transaction. Completion is recorded at the end, so that the work of a killed worker is repeated.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.id_of(db, namespace)
    after: UUID | None = None
    count, seen = 0, set[str]()
    while ids := _estimate_batch(context, tenant, after, seen, now):
        count, after = count + len(ids), ids[-1]
    with transaction(context.database_url) as db:
        words.record_estimated(db, tenant)
    return count


def _estimate_batch(context: Context, tenant: int, after: UUID | None, seen: set[str], now: datetime) -> list[UUID]:
    """Estimate the next batch of facts after an id; add their words to `seen`, and return their ids."""
    with transaction(context.database_url) as db:
        rows = _first(facts.estimated(db, tenant, BATCH, after))
        ids = [one.id for one in rows]
        activity.lock(db, tenant, ids)
        found = salience_within(db, tenant, rows, seen)
        own = context.settings.salience == "estimated"
        facts.estimate_again(db, tenant, ids, found, now, with_base=own)
        activity.update_worth(db, tenant, ids)
    return ids
