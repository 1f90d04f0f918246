"""The tasks of the two graphs: links between facts, relations between entities, and how those fade."""

import time
from datetime import datetime
from typing import Any

from celery import Task

from workers import validation
from workers.celery import app
from workers.graph import links as autolinking
from workers.graph import links as linking
from workers.graph import relations as relating
from workers.graph.links import Linked
from workers.graph.relations import MOST_SHOWN, Passed
from workers.storage.relations import START, Cursor, Place, Relation
from workers.tasks.decay import answered, leave_answer_to_others
from workers.tasks.once import OnceTask
from workers.tasks.task import WORK_SECONDS, EbbTask, context, instant, scope, write_instant
from workers.validation import cursors, graph, successors

MOST_EDGES = 10_000


@app.task(base=OnceTask, bind=True, name="memory.link")
def link(
    self: Task,
    source: Any,
    target: Any,
    type: Any,  # noqa: A002 - the contract's name
    strength: Any = 1.0,
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Link two facts, or change their link's strength; return the link."""
    at = write_instant(self, now)
    one, two, name = validation.fact_id(source), validation.fact_id(target), validation.namespace_name(namespace)
    kind, how_much = graph.link_type(type), graph.weight(strength, "strength")
    return _linked(linking.link(context, name, one, two, kind, how_much, at))


def _linked(done: Linked) -> dict[str, Any]:
    return {
        "id": str(done.id),
        "source": str(done.source),
        "target": str(done.target),
        "type": done.type,
        "strength": done.strength,
    }


@app.task(base=OnceTask, name="memory.unlink")
def unlink(
    source: Any,
    target: Any,
    type: Any = None,  # noqa: A002 - the contract's name
    namespace: Any = "default",
) -> dict[str, Any]:
    """Remove the link of a type between two facts, or all of them; return how many."""
    one, two, name = validation.fact_id(source), validation.fact_id(target), validation.namespace_name(namespace)
    kind = None if type is None else graph.link_type(type)
    return {"removed": linking.unlink(context, name, one, two, kind)}


@app.task(base=OnceTask, bind=True, name="memory.autolink", ignore_result=True)
def autolink(self: Task, ids: list[str], namespace: str, now: Any = None) -> dict[str, Any]:
    """Link new facts with those that say the like; a successor goes on with what is left after 30 seconds.

    A link that was removed does not come back with a late repeat.
    """
    at, until, linked = write_instant(self, now, refuse=False), time.monotonic() + WORK_SECONDS, 0
    facts, name = [validation.fact_id(id_) for id_ in ids], validation.namespace_name(namespace)
    for place, fact in enumerate(facts):
        if time.monotonic() > until:
            autolink.apply_async(kwargs={"ids": ids[place:], "namespace": name, "now": at.isoformat()})
            break
        linked += autolinking.autolink(context, name, fact, at)
    return {"linked": linked}


@app.task(base=OnceTask, bind=True, name="memory.relate")
def relate(
    self: Task,
    source: Any,
    target: Any,
    type: Any,  # noqa: A002 - the contract's name
    weight: Any = None,
    pinned: Any = None,
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Observe that an entity has to do with another; return the relation as it is then."""
    at = write_instant(self, now)
    (one, two), name, kind = (
        graph.related(source, target),
        validation.namespace_name(namespace),
        graph.relation_type(type),
    )
    given: dict[str, Any] = {
        "weight": None if weight is None else graph.weight(weight, "weight"),
        "pinned": None if pinned is None else graph.flag(pinned, "pinned"),
    }
    return _related(relating.relate(context, name, one, two, kind, at, **given))


def _related(found: Relation) -> dict[str, Any]:
    return edge(found) | {"pinned": found.pinned}


@app.task(base=OnceTask, name="memory.unrelate")
def unrelate(
    source: Any,
    target: Any,
    type: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
) -> dict[str, Any]:
    """Remove a relation for good; return how many there were, one or none."""
    (one, two), name, kind = (
        graph.related(source, target),
        validation.namespace_name(namespace),
        graph.relation_type(type),
    )
    return {"removed": int(relating.unrelate(context, name, one, two, kind))}


@app.task(base=EbbTask, name="memory.relations")
def relations(
    namespace: Any = "default",
    decayed: Any = False,
    entity: Any = None,
    limit: Any = 1_000,
    cursor: Any = None,
    now: Any = None,
) -> dict[str, Any]:
    """Return relations with their current weights: those in use, or those below the minimum (R18); and how many.

    If `decayed` is null they are all, and each says whether it is below.
    """
    minimum = relating.fading(context).minimum
    found, rest = relating.told(
        context,
        validation.namespace_name(namespace),
        instant(now),
        decayed=None if decayed is None else graph.flag(decayed, "decayed"),
        entity=None if entity is None else graph.entity_name(entity, "entity"),
        limit=validation.whole(limit, "limit", MOST_EDGES),
        behind=cursors.place(cursor, Cursor),
    )
    edges = [edge(one) | ({"decayed": one.weight < minimum} if decayed is None else {}) for one in found]
    return {"edges": edges, "total": found[0].total if found else 0, "next": cursors.following(rest)}


@app.task(base=EbbTask, bind=True, name="relations.decay")
def decay(
    self: Task,
    now: Any = None,
    dry_run: Any = False,
    namespace: Any = "default",
    everywhere: bool = False,
    after: Any = None,
    so_far: Any = None,
    asked_by: Any = None,
) -> dict[str, Any]:
    """Bring relations' stored weights up to date, of a namespace or with `everywhere` of all.

    The last of its successors answers (R22); `after`, `so_far` and `asked_by` are what a successor goes on from.
    """
    name, dry = scope(namespace, everywhere=everywhere), graph.flag(dry_run, "dry_run")
    at = instant(now) if dry else write_instant(self, now)
    begin, waits = successors.relation_place(after, START), successors.waiting(asked_by)
    before = successors.so_far(so_far, successors.FadedInPreview if dry else successors.Faded)
    place, done = _walk(name, begin, at, dry_run=dry, room=_room(before))
    answer, waiting = _added(before, _passed(done, dry_run=dry)), waits or self.request.id or ""
    if place is not None:
        going_on = {"after": list(place), "so_far": answer, "asked_by": waiting, "now": at.isoformat()}
        decay.apply_async(kwargs={"namespace": namespace, "everywhere": everywhere, "dry_run": dry} | going_on)
        leave_answer_to_others(self, f"{answer['processed']} relations so far")
    return answered(waits, answer)


def edge(found: Relation) -> dict[str, Any]:
    """Return a relation as it is documented (R19); whether it is pinned is added where it is."""
    told = {
        "from": found.source,
        "to": found.target,
        "type": found.type,
        "weight": round(found.weight, 4),
        "lastObserved": found.last_observed.date().isoformat(),
    }
    return told | ({"pinned": True} if found.pinned else {})


def _walk(name: str | None, place: Place, at: datetime, *, dry_run: bool, room: int) -> tuple[Place | None, Passed]:
    until, done = time.monotonic() + WORK_SECONDS, Passed()
    rest: Place | None = place
    while rest is not None and time.monotonic() < until:
        rest, step = relating.decay(context, name, rest, at, dry_run=dry_run, room=room - len(done.edges))
        done += step
    return rest, done


def _room(so_far: dict[str, Any] | None) -> int:
    return max(MOST_SHOWN - len(so_far.get("edges", []) if so_far else []), 0)


def _passed(done: Passed, *, dry_run: bool) -> dict[str, Any]:
    """Return the counters as documented (R22); a preview names the relations that a pass would change (C-R12)."""
    counters = {
        "processed": done.processed,
        "decayed": done.decayed,
        "belowMinimum": done.below_minimum,
        "pinned": done.pinned,
    }
    return counters | ({"edges": [edge(one) for one in done.edges]} if dry_run else {})


def _added(so_far: dict[str, Any] | None, answer: dict[str, Any]) -> dict[str, Any]:
    return answer if so_far is None else {name: so_far[name] + value for name, value in answer.items()}
