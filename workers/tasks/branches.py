"""The tasks of branches: copy a namespace with every instant made older, list such copies, and remove them."""

import time
from typing import TYPE_CHECKING, Any

from celery import Task

from workers import validation
from workers.admin import branches as branching
from workers.celery import app
from workers.errors import NotFoundError
from workers.storage.branches import Branch
from workers.tasks.decay import answered, leave_answer_to_others
from workers.tasks.once import OnceTask
from workers.tasks.task import MOST_RESULTS, WORK_SECONDS, EbbTask, context, scope
from workers.validation import successors

if TYPE_CHECKING:
    from uuid import UUID


@app.task(base=OnceTask, bind=True, name="memory.branch")
def branch(
    self: Task,
    older: Any,
    namespace: Any = "default",
    pairs: bool = False,
    after: Any = None,
    asked_by: Any = None,
) -> dict[str, Any]:
    """Copy a namespace with every instant so many days older, as 365 or "365d"; the last of its successors answers.

    Repeating it copies nothing twice. `pairs`, `after` and `asked_by` are what a successor goes on from: facts come
    first, then what lies between them.
    """
    name, days, waits = validation.namespace_name(namespace), validation.days(older), successors.waiting(asked_by)
    place: UUID | None = branching.START if after is None else validation.fact_id(after)
    made = branching.begin(context, name, days)
    if made.complete:
        return answered(waits, {"branch": made.name, "action": "unchanged", "facts": branching.facts(context, made)})
    until = time.monotonic() + WORK_SECONDS
    while not (pairs and place is None):
        if time.monotonic() > until:
            going_on = {"pairs": pairs, "after": str(place), "asked_by": waits or self.request.id or ""}
            branch.apply_async(kwargs={"namespace": name, "older": days} | going_on)
            leave_answer_to_others(self, "goes on in another task")
        copied = branching.copy(context, made, place or branching.START, pairs=pairs)
        pairs, place = pairs or copied is None, copied if pairs or copied else branching.START
    branching.conclude(context, made, context.now())
    return answered(waits, {"branch": made.name, "action": "made", "facts": branching.facts(context, made)})


@app.task(base=EbbTask, name="memory.branches")
def branches(namespace: Any = "default", everywhere: bool = False) -> dict[str, Any]:
    """Return the branches of a namespace, or with `everywhere` all, by their names."""
    found = branching.listed(context, scope(namespace, everywhere=everywhere))
    told = [_told(one) | {"facts": branching.facts(context, one)} for one in found[:MOST_RESULTS]]
    return {"branches": told, "total": len(found)}


@app.task(base=OnceTask, bind=True, name="memory.drop_branch")
def drop_branch(self: Task, namespace: Any = "default", older: Any = None, asked_by: Any = None) -> dict[str, Any]:
    """Remove a branch wholly, or all branches of a namespace, or that of one age; the last of its successors answers.

    A namespace that is no branch is left as it is. Repeating it finds nothing any more. `asked_by` is what a successor
    goes on from.
    """
    name, days = validation.namespace_name(namespace), None if older is None else validation.days(older)
    waits, until = successors.waiting(asked_by), time.monotonic() + WORK_SECONDS
    found = branching.to_drop(context, name, days)
    if not found and waits is None:
        raise NotFoundError(f"namespace: {name!r} is no branch and has none of that age; see `ebb branch --list`.")
    for one in found:
        while branching.drop_facts(context, one):
            if time.monotonic() > until:
                going_on = {"asked_by": waits or self.request.id or ""}
                drop_branch.apply_async(kwargs={"namespace": name, "older": days} | going_on)
                leave_answer_to_others(self, "goes on in another task")
        branching.drop(context, one)
    return answered(waits, {"dropped": [one.name for one in found]})


def _told(one: Branch) -> dict[str, Any]:
    days = None if one.age is None else one.age.days
    return {"branch": one.name, "of": one.original, "days": days, "complete": one.complete}
