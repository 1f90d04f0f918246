"""The task that examines facts, and mends what does not fit together."""

import time
from typing import Any
from uuid import UUID

from celery import Task

from workers import validation
from workers.admin import doctor
from workers.admin.doctor import Diagnosis
from workers.celery import app
from workers.coordination import redis
from workers.memory import embed
from workers.tasks.decay import answered, leave_answer_to_others
from workers.tasks.maintenance import embed_pending
from workers.tasks.task import WORK_SECONDS, EbbTask, context, instant, scope, write_instant
from workers.validation import successors


@app.task(base=EbbTask, bind=True, name="memory.doctor")
def examine(
    self: Task,
    namespace: Any = "default",
    mend: bool = False,
    everywhere: bool = False,
    now: Any = None,
    after: Any = None,
    so_far: Any = None,
    asked_by: Any = None,
) -> dict[str, Any]:
    """Examine the facts of a namespace, or with `everywhere` of all; return which faults they have, and how Redis is.

    `after`, `so_far` and `asked_by` are what a successor goes on from; the last of them answers.
    """
    name, until = scope(namespace, everywhere=everywhere), time.monotonic() + WORK_SECONDS
    at = write_instant(self, now) if mend else instant(now)
    place: embed.Position | None = successors.fact_place(after, embed.START)
    found, waits = _diagnosis(successors.so_far(so_far, successors.Examined)), successors.waiting(asked_by)
    while place is not None and time.monotonic() < until:
        place, more = doctor.examine(context, name, place, at, mend=mend)
        found += more
    answer = _answer(found, mended=mend)
    waiting = waits or self.request.id or ""
    if place is not None:
        going_on = {"after": [place[0], str(place[1])], "so_far": answer, "asked_by": waiting, "now": at.isoformat()}
        examine.apply_async(kwargs={"namespace": namespace, "everywhere": everywhere, "mend": mend} | going_on)
        leave_answer_to_others(self, f"{found.examined} facts so far")
    if mend and any(found.counts.get(fault) for fault in doctor.LACKING):
        embed_pending.apply_async()
    return answered(waits, answer | {"redis": redis.condition(context.redis).answer()})


def _answer(found: Diagnosis, *, mended: bool) -> dict[str, Any]:
    faults = [
        {
            "fault": fault,
            "facts": count,
            "meaning": doctor.FAULTS[fault],
            "first": [str(id_) for id_ in found.named[fault]],
        }
        for fault, count in found.counts.items()
    ]
    return {"examined": found.examined, "faults": faults, "mended": mended}


def _diagnosis(answer: dict[str, Any] | None) -> Diagnosis:
    """Return what an earlier part of an examination found.

    Raises:
        InvalidInputError: it has a fault that is none.
    """
    if answer is None:
        return Diagnosis()
    for one in answer["faults"]:
        validation.choice(one["fault"], "so_far: fault", list(doctor.FAULTS))
    return Diagnosis(
        answer["examined"],
        {one["fault"]: one["facts"] for one in answer["faults"]},
        {one["fault"]: [UUID(id_) for id_ in one["first"]] for one in answer["faults"]},
    )
