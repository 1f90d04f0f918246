"""Updates: find the older facts that a new fact withdraws, and link it to them.

Neither is changed; a recall ranks the newer one above the older one.
"""

from collections.abc import Sequence
from datetime import datetime
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


def link_outdated_within(context: Context, db: Connection, owner: Namespace, new: Sequence[Fact], now: datetime) -> int:
    """Link new facts to the older ones that they withdraw; return how many links.

    Chunks of files withdraw nothing, as a file is no statement of the user. Call it last in a transaction: it locks the
    older facts against a purge.
    """
    if not notices_updates(context, owner.settings):
        return 0
    pairs = [
        (row.id, older)
        for row in new
        if row.role in SPEAKERS and row.kind != "chunk"
        for subject in updates.withdrawn_subjects(row.text)
        for older in _about(db, owner, row, subject, now)
    ]
    linkable = links.linkable(db, owner.id, sorted({id_ for pair in pairs for id_ in pair})) if pairs else set()
    held = sorted({pair for pair in pairs if linkable.issuperset(pair)})
    return len(links.add(db, owner.id, held, UPDATES, [1.0] * len(held), now)) if held else 0


def _about(db: Connection, owner: Namespace, row: Fact, subject: updates.Subject, now: datetime) -> list[UUID]:
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
    before = links.said_before(db, owner.id, row.id, about) if about else set()
    return [UUID(bytes=id_) for id_ in about if id_ in before][:MOST_OUTDATED]


def _information(owner: Namespace, frequencies: Ints) -> Floats:
    return ranking.inverse_document_frequency(frequencies, max(owner.counted_facts, FEWEST_FACTS))
