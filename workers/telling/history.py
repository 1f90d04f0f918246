"""History: everything that happened to a fact, oldest first, and how it stands."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from workers.context import Context
from workers.errors import NotFoundError
from workers.storage import events, links, namespaces
from workers.storage.connection import transaction
from workers.storage.events import Account
from workers.storage.links import Link


@dataclass(frozen=True, slots=True)
class Happening:
    """What happened to a fact, when, and what else there is to say of it."""

    at: datetime
    what: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class History:
    """A fact as it stands at an instant, and all that happened to it, oldest first."""

    id: UUID
    text: str
    state: str
    pinned: bool
    pinned_until: datetime | None
    happenings: list[Happening]


def history(context: Context, namespace: str, id_: UUID, now: datetime) -> History:
    """Return what happened to a fact of a namespace; recalls are counted, not listed.

    Its links are those to facts that are not forgotten.

    Raises:
        InvalidInputError: the namespace has no such fact, or has none any more.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        account = None if tenant is None else events.account(db, tenant.id, id_, now)
        noted = [] if tenant is None else events.of(db, tenant.id, id_)
        linked = [] if tenant is None else links.of(db, tenant.id, id_)
    if account is None:
        raise NotFoundError(f"id: no fact {id_} is in namespace {namespace!r}: it never was, or it was purged.")
    told = [*_told(account), *(Happening(*one) for one in noted), *(_linked(id_, one) for one in linked)]
    return History(
        id=id_,
        text=account.text,
        state=account.state,
        pinned=account.pinned,
        pinned_until=account.pinned_until,
        happenings=[told[0], *sorted(told[1:], key=lambda one: one.at)],
    )


def _linked(id_: UUID, link: Link) -> Happening:
    """Return a link as something that happened to the fact at one of its ends."""
    other = {"to": str(link.target)} if link.source == id_ else {"from": str(link.source)}
    return Happening(link.created_at, "linked", {"type": link.type, **other, "strength": round(link.strength, 4)})


def _told(account: Account) -> Iterator[Happening]:
    """Yield what the fact's own columns say: it was stored, took another's place, was replaced, and was recalled."""
    yield Happening(account.created_at, "stored", {"source": account.source} if account.source else {})
    if account.supersedes_id is not None:
        yield Happening(account.created_at, "superseded another", {"id": str(account.supersedes_id)})
    if account.superseded_at is not None:
        by = account.superseded_by
        yield Happening(account.superseded_at, "superseded", {"by": str(by)} if by else {})
    if account.last_accessed_at is not None:
        yield Happening(account.last_accessed_at, "recalled", {"times": account.recall_count})
