"""Updates: find the older facts that a new fact withdraws, and link it to them, whichever of them is stored first.

Neither is changed; a recall ranks the newer one above the older one.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import ranking, updates
from workers.core.arrays import Floats, Ints
from workers.memory.namespace_settings import notices_updates
from workers.storage import candidates, links, words
from workers.storage.candidates import Scope
from workers.storage.connection import Connection
from workers.storage.facts import Fact
from workers.storage.namespaces import Namespace

UPDATES = "UPDATES"
"""The type of the links from a newer fact to an older one that it makes outdated."""

SPEAKERS = (None, "user")
"""The roles whose statements withdraw others: an assistant repeats what others say."""

MATCH_BUDGET, MOST_OUTDATED = 200, 5
"""Maximum number of facts that are compared with a subject, and of those that are linked, the most similar first."""

FEWEST_FACTS = 100
"""Number of facts by which words are weighed in smaller namespaces, and before the first count."""


LATE = timedelta(hours=1)
"""Facts said so long before they are stored may have been withdrawn already: by those that were stored before them."""

COMMON, MOST_READ, MOST_LATER, MOST_COMPARED = 1_000, 5_000, 500, 20
"""Maximum number of facts that have a word by which withdrawals are found, of facts with such words that are read, of
those said later in which withdrawals are looked for, and of withdrawals that are compared, the newest first."""


def link_outdated_within(context: Context, db: Connection, owner: Namespace, new: Sequence[Fact], now: datetime) -> int:
    """Link new facts to the older ones that they withdraw, and to those that withdraw them; return how many links.

    Chunks of files withdraw nothing, as a file is no statement of the user. Call it last in a transaction: it locks the
    older facts against a purge.
    """
    if not notices_updates(context, owner.settings):
        return 0
    stated = [row for row in new if row.role in SPEAKERS and row.kind != "chunk"]
    pairs = [
        (row.id, older)
        for row in stated
        for subject in updates.withdrawn_subjects(row.text)
        for older in _about(db, owner, row.id, subject, now)
    ]
    pairs += _withdrawn_before(db, owner, stated, now)
    linkable = links.linkable(db, owner.id, sorted({id_ for pair in pairs for id_ in pair})) if pairs else set()
    held = sorted({pair for pair in pairs if linkable.issuperset(pair)})
    return len(links.add(db, owner.id, held, UPDATES, [1.0] * len(held), now)) if held else 0


def _withdrawn_before(
    db: Connection, owner: Namespace, stated: Sequence[Fact], now: datetime
) -> list[tuple[UUID, UUID]]:
    """Return the pairs of a later statement that was stored earlier and a new fact that it withdraws."""
    late = {row.id: row for row in stated if _said_at(row) < now - LATE}
    if not late:
        return []
    known = words.of_query(db, owner.name, updates.WORDS_OF_WITHDRAWALS)
    rare = [term.lexeme for term in known if term.facts <= COMMON]
    since, new = min(map(_said_at, late.values())), [row.id for row in stated]
    roles = [role for role in SPEAKERS if role is not None]
    later = links.said_later(db, owner.id, rare, roles, since, new, MOST_LATER, MOST_READ) if rare else []
    said = updates.beginnings(row.text for row in late.values())
    named = [
        (UUID(bytes=id_), subject)
        for id_, text in later
        for subject in updates.withdrawn_subjects(text)
        if updates.may_be_named(subject.text, said)
    ]
    return [
        (newer, older)
        for newer, subject in named[:MOST_COMPARED]
        for older in _about(db, owner, newer, subject, now)
        if older in late
    ]


def _said_at(row: Fact) -> datetime:
    return row.source_date or row.created_at


def _about(db: Connection, owner: Namespace, newer: UUID, subject: updates.Subject, now: datetime) -> list[UUID]:
    """Return the older facts of the same speaker about what a fact withdraws, the most similar first."""
    terms = [term for term in words.of_query(db, owner.name, subject.text) if term.stem]
    if len(terms) < subject.least_words or not terms:
        return []
    terms.sort(key=lambda term: (term.facts, term.lexeme))
    lexemes, counted = [term.lexeme for term in terms], np.array([term.facts for term in terms], np.int64)
    known, most = _information(owner, counted), float(_information(owner, np.ones(1, np.int64))[0])
    if known[0] < updates.DISTINCTIVE * most:
        return []  # without a search: words that were stored since the last count are even less distinctive
    rarest = lexemes[: updates.decisive(known)]
    found = candidates.matches(db, owner, lexemes, rarest, Scope(now), MATCH_BUDGET)()
    held = found.ranks > 0
    # words that were stored since the last count are at least in the facts read
    information = _information(owner, np.maximum(counted, held.sum(axis=0)))
    shares = updates.withdrawn(held, information, most)
    about = [found.ids[place] for place in np.argsort(-shares, kind="stable").tolist() if shares[place]]
    before = links.said_before(db, owner.id, newer, about) if about else set()
    return [UUID(bytes=id_) for id_ in about if id_ in before][:MOST_OUTDATED]


def _information(owner: Namespace, frequencies: Ints) -> Floats:
    return ranking.inverse_document_frequency(frequencies, max(owner.counted_facts, FEWEST_FACTS))
