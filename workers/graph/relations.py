"""Relations between entities: observed, listed, and fading unless they are observed again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from workers.context import Context
from workers.storage import namespaces, relations
from workers.storage.connection import transaction
from workers.storage.relations import Cursor, Fading, Listed, Place, Relation

BATCH = 5_000
"""Relations in one transaction of a pass."""

MOST_SHOWN = 1_000
"""How many a preview names."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What a pass over relations found, or would have found; a preview names the relations."""

    processed: int = 0
    decayed: int = 0
    below_minimum: int = 0
    pinned: int = 0
    edges: Sequence[Relation] = field(default_factory=list)

    def __add__(self, other: "Passed") -> "Passed":
        """Return what both found together."""
        return Passed(
            self.processed + other.processed,
            self.decayed + other.decayed,
            self.below_minimum + other.below_minimum,
            self.pinned + other.pinned,
            [*self.edges, *other.edges],
        )


def fading(context: Context) -> Fading:
    """Return by what relations fade."""
    return Fading(context.settings.relation_half_life, context.settings.relation_minimum)


def relate(
    context: Context,
    namespace: str,
    source: str,
    target: str,
    kind: str,
    now: datetime,
    *,
    weight: float | None = None,
    pinned: bool | None = None,
) -> Relation:
    """Observe a relation: its weight is set again, to 1 unless another is given; return it as it is now.

    A pinned one stays so unless told otherwise, and keeps its weight unless one is given. An observation that is older
    than the last one changes nothing.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace).id
        relations.observe(db, tenant, source, target, kind, now, weight=weight, pinned=pinned)
        found = relations.find(db, tenant, source, target, kind, now, fading(context))
    assert found is not None  # noqa: S101 - it was just observed
    return found


def unrelate(context: Context, namespace: str, source: str, target: str, kind: str) -> bool:
    """Remove a relation for good, because its owner asks for it; return whether there was one."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return tenant is not None and relations.remove(db, tenant.id, source, target, kind)


def told(
    context: Context,
    namespace: str,
    now: datetime,
    *,
    decayed: bool | None,
    entity: str | None,
    limit: int,
    behind: Cursor | None = None,
) -> tuple[list[Listed], Cursor | None]:
    """Return relations with their weights at `now`, strongest first: those in use, those that have decayed, or all.

    And where the listing goes on, if it does; what follows there is weighed as of the first page.
    """
    at = now if behind is None else behind.at
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return [], None
        by = fading(context)
        found = relations.among(db, tenant.id, at, by, decayed=decayed, entity=entity, limit=limit + 1, behind=behind)
    last = found[limit - 1] if len(found) > limit else None
    rest = None if last is None else Cursor(at, last.weight, last.source, last.target, last.type)
    return found[:limit], rest


def decay(
    context: Context, namespace: str | None, place: Place, now: datetime, *, dry_run: bool = False, room: int = 0
) -> tuple[Place | None, Passed]:
    """Bring the stored weights of the next relations up to date, of one namespace or of all.

    Return where to go on, if anywhere, and what was found; a dry run changes nothing, and names up to `room` of those
    that a pass would change. Weights follow from the last observation alone, so a repeat changes nothing.
    """
    with transaction(context.database_url) as db:
        owner = None if namespace is None else namespaces.find(db, namespace)
        if namespace is not None and owner is None:
            return None, Passed()
        tenant, by = None if owner is None else owner.id, fading(context)
        step = relations.examine(db, tenant, place, now, by, BATCH)
        decayed, edges = step.decayed, []
        if step.last is not None and dry_run:
            edges = list(relations.preview(db, tenant, place, step.last, now, by, room))
        elif step.last is not None:
            decayed = relations.materialise(db, tenant, place, step.last, now, by)
    rest = step.last if step.processed == BATCH else None
    return rest, Passed(step.processed, decayed, step.below_minimum, step.pinned, edges)
