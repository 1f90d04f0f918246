"""Updates: pairs of candidates where a newer statement makes an older one outdated."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from uuid import UUID

import numpy as np

from workers.core import ranking, updates
from workers.core.arrays import Bools, Floats, Ints, Key
from workers.core.relevance import Question
from workers.memory.recall.question import Asked
from workers.memory.recall.steps import Steps
from workers.storage import candidates, occurrences, supersession
from workers.storage.candidates import Candidates, Scope
from workers.storage.connection import Connection
from workers.storage.links import Update
from workers.storage.occurrences import Repeated

FIRST = 20
"""Number of the best candidates that are compared."""

MOST_ABOVE = 3
"""Maximum number of linked facts that stand above one that they make outdated, the newest: it stays in sight."""

ROUNDING = 1e-5
"""Seconds by which instants may differ that were written as one."""

Pair = tuple[int, int]
"""The indexes of a newer and an older candidate."""


def outdated_pairs(
    asked: Asked, known: Question, rows: Candidates, held: Bools, scores: Floats, links: Sequence[Update]
) -> Steps[list[Pair]]:
    """Return the pairs of a newer and an outdated one of n candidates with scores; none if it is asked for the past.

    `known` are the statistics of the question's k stems in the namespace; `held` says which of them each candidate
    contains, (n, k); `links` lead from newer facts to outdated ones.
    """
    if updates.asks_for_the_past(asked.question.text) or len(rows) < 2:  # noqa: PLR2004 - a pair
        return []
    first = np.argsort(-scores, kind="stable")[:FIRST]
    contradicting = _ask_contradicting(asked.db, asked.tenant.id, rows, first)
    by_words = _by_words(asked, known, rows, held, scores, first)
    yield
    linked = _linked(rows, links)
    found = dict.fromkeys(chain(contradicting(), by_words), 0.0) | linked  # several rules may find one pair
    last_said = _last_said(asked.db, asked.tenant.id, asked.scope, rows, found)
    kept = [pair for pair, linked_at in found.items() if _is_newer(*pair, linked_at, rows, last_said)]
    return _newest(kept, set(linked), rows["stated_at"])


def outdated_values(db: Connection, namespace: int, rows: Candidates, scope: Scope) -> dict[Key, list[UUID]]:
    """Return the facts that give a newer value to the same key of an entity, by the id of the outdated one."""
    pairs = list(_ask_contradicting(db, namespace, rows, np.arange(len(rows)))())
    last_said = _last_said(db, namespace, scope, rows, pairs)
    found: dict[Key, list[UUID]] = {}
    for newer, older in pairs:
        if _is_newer(newer, older, 0.0, rows, last_said):
            found.setdefault(rows["id"][older], []).append(UUID(bytes=rows["id"][newer]))
    return found


def _last_said(
    db: Connection, namespace: int, scope: Scope, rows: Candidates, pairs: Iterable[Pair]
) -> dict[int, Repeated]:
    """Return when the facts of pairs were last said, by their indexes."""
    places = {UUID(bytes=rows["id"][place]): place for pair in pairs for place in pair}
    if not places:
        return {}
    until = min(scope.now, scope.as_of or scope.now, scope.known_as_of or scope.now)
    found = occurrences.repeated(db, namespace, list(places), until)
    return {places[id_]: one for id_, one in found.items()}


def _is_newer(one: int, two: int, linked_at: float, rows: Candidates, last_said: Mapping[int, Repeated]) -> bool:
    """Return whether a fact was stated after another one, or again, and the other one not again since."""
    if rows["stated_at"][one] < rows["stated_at"][two] and not linked_at:
        return _is_repeated_since(two, one, 0.0, rows, last_said)
    return not _is_repeated_since(one, two, linked_at, rows, last_said)


def _is_repeated_since(
    newer: int, older: int, linked_at: float, rows: Candidates, last_said: Mapping[int, Repeated]
) -> bool:
    """Return whether the older one of a pair was said again after the newer one, or stored again since their link."""
    if not {newer, older} <= last_said.keys():
        return False  # erased meanwhile
    old, new = last_said[older], last_said[newer]
    if old.said_at is not None:  # it may have been stored in any order
        return old.said_at > max(float(rows["stated_at"][newer]), new.said_at or 0.0)
    return (old.stored_again_at or 0.0) > max(new.created_at, new.stored_again_at or 0.0, linked_at + ROUNDING)


def _newest(pairs: Sequence[Pair], linked: set[Pair], stated_at: Floats) -> list[Pair]:
    """Return the pairs; of those that are linked with one older fact, only the newest `MOST_ABOVE`."""
    found: dict[int, list[Pair]] = {}
    for pair in sorted(linked.intersection(pairs), key=lambda pair: -stated_at[pair[0]]):
        found.setdefault(pair[1], []).append(pair)
    left_out = {pair for own in found.values() for pair in own[MOST_ABOVE:]}
    return [pair for pair in pairs if pair not in left_out]


def _texts(db: Connection, namespace: int, rows: Candidates, places: Ints) -> dict[int, str]:
    """Return the texts of candidates by index; those of erased ones are empty."""
    texts: dict[int, str | None] = dict(zip(places.tolist(), rows["text"][places].tolist(), strict=True))
    unread = {place: rows["id"][place] for place, text in texts.items() if text is None}
    read = candidates.texts_of(db, namespace, list(unread.values())) if unread else {}
    return {place: read.get(unread[place], "") if text is None else text for place, text in texts.items()}


def _ask_contradicting(db: Connection, namespace: int, rows: Candidates, first: Ints) -> Callable[[], Iterable[Pair]]:
    """Send the query for pairs with different values for one key of an entity; return its reader.

    It gives them without accepted contradictions, and without keys that may have several values at once.
    """
    named = [place for place in first.tolist() if rows["entity"][place]]
    if len({rows["entity"][place] for place in named}) == len(named):
        return tuple
    places = {UUID(bytes=rows["id"][place]): place for place in named}
    sent = supersession.ask_contradicting(db, namespace, list(places))
    return lambda: _in_both_orders(sent(), places, rows)


def _in_both_orders(
    found: Sequence[tuple[UUID, UUID, str]], places: dict[UUID, int], rows: Candidates
) -> Iterator[Pair]:
    """Yield pairs of a key in both orders, without those that were stated at the same time."""
    for one, two, key in found:
        same_time = rows["stated_at"][places[one]] == rows["stated_at"][places[two]]
        if not same_time and not updates.may_have_several(key):
            yield places[one], places[two]
            yield places[two], places[one]


def _linked(rows: Candidates, links: Sequence[Update]) -> dict[Pair, float]:
    """Return the pairs that are linked as updates, and when they were."""
    places = {id_: place for place, id_ in enumerate(rows["id"].tolist())}
    return {(places[one.newer], places[one.older]): one.at for one in links if {*one[:2]} <= places.keys()}


def _by_words(asked: Asked, known: Question, rows: Candidates, held: Bools, scores: Floats, first: Ints) -> list[Pair]:
    """Return a pair for each statement that makes the best candidate outdated if it is newer, or was said again since.

    It contains words of the question that the best one contains, unless it says that someone moved.
    """
    best, question = first[0], asked.question.text
    information = ranking.inverse_document_frequency(known.document_frequencies, max(known.facts, 1))
    information *= known.document_frequencies > 0
    shared = (held[first] & held[best]) @ information
    there = rows[first]
    elsewhere = (there["session"] != rows["session"][best]) | (there["turn"] < 0)
    comparable = (there["role"] == rows["role"][best]) & np.isin(there["role"], ("", "user"))
    was_read = np.array([text is not None for text in there["text"]], np.bool_)
    later = there["stated_at"] > rows["stated_at"][best]
    perhaps_later = later | (was_read & (there["stated_at"] < rows["stated_at"][best]))  # it may have been said again
    alike = (
        (scores[first] >= updates.SHORT_NEARLY_AS_GOOD * scores[best])
        & (shared > 0)
        & (shared >= updates.SHARED * information.sum())
    )
    about = alike | (later & was_read & updates.asks_for_a_place(question))
    compared = np.flatnonzero(perhaps_later & elsewhere & comparable & about)
    if not len(compared):
        return []
    newer = first[compared]
    texts = _texts(asked.db, asked.tenant.id, rows, np.array([best, *newer]))
    holds_all = (held[newer] >= held[best]).all(axis=1)
    as_good = scores[newer] >= updates.NEARLY_AS_GOOD * scores[best]
    return [
        (place, int(best))
        for place, *found in zip(newer.tolist(), alike[compared], holds_all, as_good, strict=True)
        if _outdates(question, texts[place], texts[int(best)], *found)
    ]


def _outdates(question: str, newer: str, older: str, is_alike: bool, holds_all: bool, is_as_good: bool) -> bool:
    """Return whether a newer text makes an older one, the best candidate, outdated.

    The newer one `is_alike` if it shares enough words of the question with the older one, and scores half as high;
    `holds_all` if it contains all words of the question that the older one contains; and `is_as_good` if its score
    suffices also for long texts.
    """
    if is_alike and holds_all and updates.has_another_value(newer, older):
        return True
    if updates.asks_for_a_place(question) and updates.says_a_move(newer, older):
        return True
    return (
        updates.asks_for_a_value(question)
        and is_alike
        and (is_as_good or updates.are_short(newer, older))
        and updates.outdates(newer, older)
    )
