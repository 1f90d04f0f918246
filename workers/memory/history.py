"""History: the events of a fact and its state; what a property of an entity was, from when to when."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ebb.contract.reports import ShowTimeline, Timeline
from ebb.contract.retention import Event, History, ShowHistory

from workers.context import Context
from workers.errors import no_fact
from workers.memory.lifetime import NEVER, endings
from workers.memory.namespace_settings import rules_for
from workers.memory.recall.deep import promote_property
from workers.memory.unpack import unpack
from workers.storage import activity, entities, events, links, namespaces, occurrences, supersession, words
from workers.storage.connection import reading
from workers.storage.events import Account
from workers.storage.links import Link
from workers.validation import cursors

MOST_SEEN = 1_000_000
"""Maximum number of events of one instant that are listed in pages."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a listing: an instant, and the number of events of that instant already listed."""

    at: datetime
    seen: int


def history(context: Context, asked: ShowHistory, now: datetime) -> History:
    """Return the events of a fact; recalls are counted, not listed, and links to forgotten facts are left out.

    Raises:
        InvalidInputError: the namespace has no such fact, or it was purged; or the cursor belongs to another listing.
    """
    namespace, id_, place = asked.namespace, asked.id, cursors.place(asked.cursor, Cursor)
    part = _part(asked.limit, place)
    with context.namespace(namespace) as (db, tenant):
        unpack(context, db, tenant, [id_], waits=False)  # a reader does not wait for locks
    with reading(context.database_url) as db:
        account = events.account(db, tenant, id_, now)
        if account is None:
            raise no_fact(id_, namespace)
        rows = activity.read_live(db, tenant, [id_])
        ends = endings(rows.ids, rows.anchors, rules_for(context, db, rows.namespaces))
        before = {} if place else events.edited(db, tenant, id_, ("source", "role"))
        noted = events.of(db, tenant, id_, *part)
        again = occurrences.of(db, tenant, id_, *part)
        linked = links.of(db, tenant, id_, *part) if asked.links else []
        updates = supersession.updates_of(db, tenant, id_) if asked.links else []
    whole = [*_columns(account, before), *(_event(*one) for one in noted)]
    whole += [_event(at, "said again", _occurrence(*place)) for at, place in again]
    whole += [_linked(id_, one) for one in linked]
    whole += [_event(at, "updates" if newer else "updated", {"id": str(other)}) for at, other, newer in updates]
    page, rest = _page([whole[0], *sorted(whole[1:], key=lambda one: one.at)], asked.limit, place)
    ending = ends.get(id_, NEVER)
    return History(
        id=id_,
        text=account.text,
        state=account.state,
        pinned=account.pinned,
        pinned_until=account.pinned_until,
        ends_at=ending.at,
        ends_for=ending.reason,
        held=bool(rows.held.any()),
        events=page,
        next=cursors.following(rest),
    )


def _part(limit: int | None, place: Cursor | None) -> tuple[datetime | None, int | None]:
    """Return since when the events of a page are read, and how many of each kind: those of the page and one more."""
    seen = min(max(place.seen, 0), MOST_SEEN) if place else 0
    return place.at if place else None, None if limit is None else seen + limit + 1


def _page(whole: list[Event], limit: int | None, place: Cursor | None) -> tuple[list[Event], Cursor | None]:
    """Return the next page of events and the next cursor; the first event stays first, whatever its time."""
    instants = [one.at for one in whole[1:]]
    begin = 0 if place is None else 1 + bisect_left(instants, place.at) + max(place.seen, 0)
    end = len(whole) if limit is None else min(begin + limit, len(whole))
    if end >= len(whole):
        return whole[begin:], None
    at = whole[end].at
    return whole[begin:end], Cursor(at, end - 1 - bisect_left(instants, at))


def _occurrence(session: str | int, turn: int | None, role: str | None) -> dict[str, Any]:
    stated = {"session": session, "turn": turn, "role": role}
    return {name: value for name, value in stated.items() if value is not None}


def _linked(id_: UUID, link: Link) -> Event:
    """Return a link as an event of the fact at one of its ends."""
    other = {"to": str(link.target)} if link.source == id_ else {"from": str(link.source)}
    return _event(link.created_at, "linked", {"type": link.type, **other, "strength": round(link.strength, 4)})


def _columns(account: Account, before: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events that follow from the fact's columns: stored, superseded and recalled."""
    yield _event(account.created_at, "stored", _stated(account, before))
    if account.supersedes_id is not None and account.superseded_another_at is not None:
        yield _event(account.superseded_another_at, "superseded another", {"id": str(account.supersedes_id)})
    if account.superseded_at is not None:
        by = account.superseded_by
        yield _event(account.superseded_at, "superseded", {"by": str(by)} if by else {})
    if account.last_accessed_at is not None:
        yield _event(account.last_accessed_at, "recalled", {"times": account.recall_count})


def _event(at: datetime, what: str, details: dict[str, Any]) -> Event:
    """Return an event; an entry for several uses says since when."""
    seconds = details.pop("seconds", None) if what in events.USES else None
    since = {"since": (at - timedelta(seconds=seconds)).isoformat()} if isinstance(seconds, int | float) else {}
    return Event(at=at, what=what, details=_with_instants(details | since))


INSTANTS = ("until", "since", "valid_from", "valid_until")
"""Details that are instants, among those of an event or of the fields before and after an edit."""

UTC_OFFSET = "+00:00"


def _with_instants(details: dict[str, Any]) -> dict[str, Any]:
    """Return details whose instants end with `Z`, as all others of an answer do, however they are stored."""
    shown = dict(details)
    for name, one in details.items():
        if name in ("was", "is") and isinstance(one, dict):
            shown[name] = _with_instants(one)
        elif name in INSTANTS and isinstance(one, str) and one.endswith(UTC_OFFSET):
            shown[name] = f"{one.removesuffix(UTC_OFFSET)}Z"
    return shown


def _stated(account: Account, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return source and role as they were stored, and content salience, as far as they are known."""
    salience = None if account.content_salience is None else round(account.content_salience, 4)
    stated: dict[str, Any] = {"source": account.source, "role": account.role}
    stated = {name: before.get(name, value) for name, value in stated.items()} | {"content_salience": salience}
    return {name: value for name, value in stated.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class TimelineCursor:
    """Where a timeline continues: after a fact, by when it became true."""

    valid_from: datetime
    id: UUID


def timeline(context: Context, asked: ShowTimeline, now: datetime) -> Timeline:
    """Return what facts state of a property, in the order in which it became true, deep memory included.

    Raises:
        InvalidInputError: the cursor is not one of this listing.
    """
    place = cursors.place(asked.cursor, TimelineCursor)
    promote_property(context, asked.namespace, asked.entity, asked.key, now)
    with reading(context.database_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        named = [term.lexeme for term in words.of_query(db, asked.namespace, asked.entity)]
        ids = entities.of_entity_with_past(db, tenant, asked.entity, asked.key, named)
        after = None if place is None else (place.valid_from, place.id)
        found = entities.stated(db, tenant, ids, now, asked.limit + 1, after)
    shown, following = cursors.page(found, asked.limit, lambda one: TimelineCursor(one.valid_from, one.id))
    return Timeline(statements=list(shown), next=following)
