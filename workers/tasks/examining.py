"""The task that examines facts, and mends what does not fit together."""

import time
from typing import Any
from uuid import UUID

from celery import Task

from workers import intake
from workers.celery import app
from workers.remembering import embed
from workers.tasks.passing import leave_answer_to_others
from workers.tasks.task import WORK_SECONDS, EbbTask, context, instant
from workers.tasks.upkeep import embed_pending
from workers.telling import doctor
from workers.telling.doctor import Diagnosis


@app.task(base=EbbTask, bind=True, name="memory.doctor")
def examine(
    self: Task,
    namespace: Any = "default",
    mend: bool = False,
    now: Any = None,
    after: list[Any] | None = None,
    so_far: dict[str, Any] | None = None,
    asked_by: str | None = None,
) -> dict[str, Any]:
    """Examine the facts of a namespace, or of all; return how many have which fault, and the first of them.

    `after`, `so_far` and `asked_by` are what a successor goes on from; the last of them answers.
    """
    name = None if namespace is None else intake.namespace_name(namespace)
    at, until = instant(now), time.monotonic() + WORK_SECONDS
    place: embed.Place | None = (int(after[0]), UUID(after[1])) if after else embed.START
    found = _diagnosis(so_far)
    while place is not None and time.monotonic() < until:
        place, more = doctor.examine(context, name, place, at, mend=mend)
        found += more
    answer = _answer(found, mended=mend)
    waiting = asked_by or self.request.id or ""
    if place is not None:
        going_on = {"after": [place[0], str(place[1])], "so_far": answer, "asked_by": waiting, "now": at.isoformat()}
        examine.apply_async(kwargs={"namespace": name, "mend": mend} | going_on)
        leave_answer_to_others(self, f"{found.examined} facts so far")
    if mend and any(found.counts.get(fault) for fault in doctor.LACKING):
        embed_pending.apply_async()
    if asked_by:
        app.backend.mark_as_done(asked_by, answer)
    return answer


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
    """Return what an earlier part of an examination found."""
    if answer is None:
        return Diagnosis()
    return Diagnosis(
        answer["examined"],
        {one["fault"]: one["facts"] for one in answer["faults"]},
        {one["fault"]: [UUID(id_) for id_ in one["first"]] for one in answer["faults"]},
    )
