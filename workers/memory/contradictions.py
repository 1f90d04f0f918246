"""Contradictions: two facts that cannot both be true are found when the second is stored, listed, and settled."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.supersede import close_within, link_within, locked_states
from workers.storage import contradictions, namespaces
from workers.storage.connection import Connection, transaction
from workers.storage.contradictions import Behind, Contradiction
from workers.storage.facts import Fact
from workers.storage.supersession import Closed, State


def find_within(db: Connection, tenant: int, rows: Sequence[Fact], now: datetime, edited: Sequence[UUID] = ()) -> None:
    """Note what contradicts facts just written or edited that have entity, key and value; do it last of all."""
    told = [row.id for row in rows if row.entity is not None and row.key is not None and row.value is not None]
    if told or edited:
        contradictions.find(db, tenant, [*told, *edited], now)


@dataclass(frozen=True, slots=True)
class Page:
    """Pairs that contradict each other, how many there are in all, and where their listing goes on, if it does."""

    pairs: list[Contradiction] = field(default_factory=list)
    total: int = 0
    rest: Behind | None = None


def contradicting(context: Context, namespace: str, now: datetime, limit: int, behind: Behind | None = None) -> Page:
    """Return pairs of remembered facts that contradict each other, found last first."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return Page()
        found = contradictions.unsettled(db, tenant.id, now, limit + 1, behind)
        total = contradictions.count(db, tenant.id, now)
    last = found[limit - 1] if len(found) > limit else None
    return Page(found[:limit], total, None if last is None else Behind(last.found_at, *sorted(last.ids)))


def keep(context: Context, namespace: str, id_: UUID, others: Sequence[UUID], now: datetime) -> None:
    """Let one fact take the place of others, which thereby contradict it no longer. A repeat changes nothing.

    Raises:
        InvalidInputError: one of them is not there, or was superseded by another or forgotten; nothing was changed.
    """
    with transaction(context.database_url) as db:
        tenant = _tenant(db, namespace)
        states = locked_states(db, tenant, sorted({id_, *others}), now)
        open_ = [other for other in others if not _superseded_by(id_, states.get(other))]
        for one in [*open_, id_] if open_ else []:
            _check_live(one, states.get(one), namespace)
        close_within(db, tenant, [Closed(other, now, now) for other in open_])
        link_within(db, tenant, dict.fromkeys(open_, id_))


def accept(context: Context, namespace: str, one: UUID, two: UUID, now: datetime) -> None:
    """Note that two facts which seem to contradict each other both hold. A repeat changes nothing.

    Raises:
        InvalidInputError: they do not contradict each other.
    """
    with transaction(context.database_url) as db:
        if not contradictions.accept(db, _tenant(db, namespace), one, two, now):
            raise InvalidInputError(
                f"ids: {one} and {two} are not known to contradict each other; see `ebb contradictions`."
            )


def _tenant(db: Connection, namespace: str) -> int:
    tenant = namespaces.find(db, namespace)
    if tenant is None:
        raise InvalidInputError(f"namespace: nothing was ever stored in {namespace!r}; check its name.")
    return tenant.id


def _superseded_by(id_: UUID, state: State | None) -> bool:
    return state is not None and state.superseded_by == id_


def _check_live(id_: UUID, state: State | None, namespace: str) -> None:
    if state is None:
        raise NotFoundError(f"ids: no fact {id_} is in namespace {namespace!r}; see `ebb contradictions`.")
    if not state.live:
        what = f"superseded by {state.superseded_by}" if state.superseded_by else "retracted or forgotten"
        raise InvalidInputError(f"ids: {id_} was {what} already; see `ebb contradictions` for what is left.")
