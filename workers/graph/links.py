"""Links: which fact came of which, is part of it, depends on it, or is about the like."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.errors import InvalidInputError, NotFoundError
from workers.storage import links, namespaces
from workers.storage.connection import transaction


@dataclass(frozen=True, slots=True)
class Linked:
    """A link as it is now."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    strength: float


def link(
    context: Context, namespace: str, source: UUID, target: UUID, kind: str, strength: float, now: datetime
) -> Linked:
    """Link two facts, or change the strength of their link; a repeat changes nothing.

    A link of type SUPERSEDES says what is, and closes nobody: that is what storing with `supersedes` does.

    Raises:
        InvalidInputError: a fact is not there or is forgotten, or both are the same; nothing was linked.
    """
    if source == target:
        raise InvalidInputError(f"target: {target} is the source itself; give two different facts.")
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        there = set() if tenant is None else links.linkable(db, tenant.id, [source, target])
        for name, id_ in (("source", source), ("target", target)):
            if tenant is None or id_ not in there:
                raise NotFoundError(f"{name}: no live fact {id_} is in namespace {namespace!r}; see `recall`.")
        assert tenant is not None  # noqa: S101 - or else both facts would be missing
        (id_,) = links.add(db, tenant.id, [(source, target)], kind, [strength], now)
    return Linked(id_, source, target, kind, strength)


def unlink(context: Context, namespace: str, source: UUID, target: UUID, kind: str | None) -> int:
    """Remove the link of a type between two facts, or all of them; return how many there were."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return 0 if tenant is None else links.remove(db, tenant.id, source, target, kind)
