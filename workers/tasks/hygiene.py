"""The tasks of hygiene: consolidate, then the janitor, then the review by an LLM where one is wanted (H40)."""

import time
from datetime import datetime
from typing import Any

from celery import Task

from workers import validation
from workers.celery import app, settings
from workers.coordination import signals
from workers.decay import consolidate as consolidating
from workers.decay import janitor as tidying
from workers.decay import passes
from workers.decay.consolidate import Group
from workers.storage.janitors import Snapshot
from workers.tasks.answers import shown as iso
from workers.tasks.decay import answered, leave_answer_to_others, yield_to_users
from workers.tasks.decay import apply as apply_part
from workers.tasks.maintenance import prune_by_llm
from workers.tasks.once import OnceTask
from workers.tasks.recall import regenerate
from workers.tasks.task import MOST_RESULTS, WORK_SECONDS, EbbTask, context, uuid_of, write_instant
from workers.validation import successors

CONSOLIDATION_SECONDS = 3_600.0
"""Two beats that send a consolidation of everything within this time have one."""


@app.task(base=OnceTask, bind=True, name="memory.consolidate")
def consolidate(
    self: Task,
    namespace: Any = "default",
    apply: bool = False,
    force: bool = False,
    limit: Any = 100,
    everywhere: bool = False,
    now: Any = None,
    scheduled: bool = False,
    run: Any = None,
    so_far: Any = None,
    asked_by: Any = None,
) -> dict[str, Any]:
    """Return facts that say nearly the same, after merging them if `apply` is true; the last successor answers.

    With `everywhere` each namespace that has something new has a run of its own, and the answer says which.
    `limit` is how many groups are told; `run`, `so_far` and `asked_by` are what a successor goes on from. What is
    scheduled is followed by the janitor, where that is wanted.
    """
    task_id, name = self.request.id or "", validation.namespace_name(namespace)
    most, until = validation.whole(limit, "limit", MOST_RESULTS), time.monotonic() + WORK_SECONDS
    at = write_instant(self, now)
    if everywhere:
        return _consolidate_all(at, {"apply": apply, "force": force, "limit": most})
    own_run, waits = uuid_of(task_id) if run is None else validation.fact_id(run), successors.waiting(asked_by)
    before = successors.so_far(so_far, successors.Consolidated) or _nothing_yet()
    done = consolidating.consolidate(context, name, own_run, at, until, apply=apply, force=force)
    if done.merged.faded and settings.regeneration_enabled:
        regenerate.apply_async(kwargs={"namespace": name, "ids": [str(id_) for id_ in done.merged.faded]})
    groups = [_group(group) for group in done.merged.groups]
    told = _added(before, done.compared, groups, most)
    if done.more:
        going_on = {"run": str(own_run), "so_far": told, "asked_by": waits or task_id, "now": at.isoformat()}
        given = {"namespace": name, "apply": apply, "force": force, "limit": most, "scheduled": scheduled}
        consolidate.apply_async(kwargs=given | going_on)
        leave_answer_to_others(self, f"{told['compared']} facts compared, {told['merged']} merged so far")
    answer = _consolidated(told, consolidating.near_duplicates(context, name, at), most, applied=apply)
    if scheduled:
        _follow_consolidation(name)
    return answered(waits, answer)


@app.task(base=EbbTask, bind=True, name="memory.consolidate_all", ignore_result=True)
def consolidate_all(self: Task, now: Any = None) -> None:
    """Have every namespace consolidated in which something is new or due, and what follows from it done (C-H4)."""
    if signals.first_of(context.redis, "consolidation", self.request.id or "", CONSOLIDATION_SECONDS):
        _consolidate_all(write_instant(self, now), {"apply": settings.consolidate_apply, "scheduled": True})


def _consolidate_all(at: datetime, given: dict[str, Any]) -> dict[str, Any]:
    names = tidying.untidy(context, at)
    for name in names:
        consolidate.apply_async(kwargs=given | {"namespace": name})
    return {"namespaces": names[:MOST_RESULTS], "total": len(names)}


@app.task(base=OnceTask, bind=True, name="memory.janitor")
def janitor(
    self: Task,
    namespace: Any = "default",
    now: Any = None,
    everywhere: bool = False,
    scheduled: bool = False,
    asked_by: Any = None,
    run: Any = None,
) -> dict[str, Any]:
    """Do what is due of a namespace; return what was culled and got stale since the run before.

    With `everywhere`, each namespace in which something is due has a run of its own, and the answer says which. `run`
    and `asked_by` are what a successor goes on from. What is scheduled is followed by the review of an LLM, if wanted.
    """
    at, waits = write_instant(self, now), successors.waiting(asked_by)
    if everywhere:
        return _janitors_for_all(at)
    task_id, name, until = self.request.id or "", validation.namespace_name(namespace), time.monotonic() + WORK_SECONDS
    if tidying.schedule(context, name) is None:
        skipped = _snapshot(name, tidying.last(context, name)) | {"skipped": "hygiene is switched off here"}
        return answered(waits, skipped)
    own_run = uuid_of(task_id) if run is None else validation.fact_id(run)
    for part_run, segment, part in tidying.plan(context, name, own_run, at):
        if part_run != own_run:
            apply_part.apply_async(kwargs={"run": str(part_run), "segment": segment, "part": part})
        elif time.monotonic() < until:
            passes.apply(context, (part_run, segment, part), yield_to_users)
        else:
            going_on = {"run": str(own_run), "asked_by": waits or task_id, "now": at.isoformat()}
            janitor.apply_async(kwargs={"namespace": name, "scheduled": scheduled} | going_on)
            leave_answer_to_others(self, "goes on in another task")
    answer = _snapshot(name, tidying.conclude(context, name, own_run, at))
    if scheduled and settings.prune_by_llm:
        prune_by_llm.apply_async(kwargs={"namespace": name})
    return answered(waits, answer)


@app.task(base=EbbTask, name="memory.janitor_snapshot")
def janitor_snapshot(namespace: Any = "default") -> dict[str, Any]:
    """Return what the last run of a namespace's janitor told."""
    name = validation.namespace_name(namespace)
    return _snapshot(name, tidying.last(context, name))


def _follow_consolidation(namespace: str) -> None:
    """Send the janitor after a consolidation, or what follows that where it is not wanted then (H26, H28)."""
    if tidying.schedule(context, namespace) == "onConsolidation":
        janitor.apply_async(kwargs={"namespace": namespace, "scheduled": True})
    elif settings.prune_by_llm:
        prune_by_llm.apply_async(kwargs={"namespace": namespace})


def _janitors_for_all(at: datetime) -> dict[str, Any]:
    names = tidying.due(context, at)
    for name in names:
        janitor.apply_async(kwargs={"namespace": name, "now": at.isoformat()})
    return {"namespaces": names[:MOST_RESULTS], "total": len(names)}


def _nothing_yet() -> dict[str, Any]:
    return {"compared": 0, "merged": 0, "groups": []}


def _added(so_far: dict[str, Any], compared: int, groups: list[dict[str, Any]], most: int) -> dict[str, Any]:
    """Return what was done before and now together, with the first of the groups."""
    return {
        "compared": so_far["compared"] + compared,
        "merged": so_far["merged"] + sum(len(group["merge"]) for group in groups),
        "groups": (so_far["groups"] + groups)[:most],
    }


def _consolidated(told: dict[str, Any], left: list[Group], most: int, *, applied: bool) -> dict[str, Any]:
    """Return what was merged, or would be; `total` groups and `facts` in them are left as they are."""
    groups = told["groups"] if applied else [_group(group) for group in left[:most]]
    counts = {"total": len(left), "facts": sum(len(group.merge) for group in left)}
    return {"applied": applied, "compared": told["compared"], "merged": told["merged"], **counts, "groups": groups}


def _group(group: Group) -> dict[str, Any]:
    return {
        "keep": {"id": str(group.keep.id), "text": group.keep.text},
        "merge": [
            {"id": str(member.id), "text": member.text, "similarity": round(similarity, 4)}
            for member, similarity in group.merge
        ],
    }


def _snapshot(namespace: str, told: Snapshot | None) -> dict[str, Any]:
    """Return a snapshot in the words of its document (H30-H36), with the numbers behind what ids it has (C-H8)."""
    if told is None:
        return {"namespace": namespace, "totalRuns": 0}
    return {
        "namespace": namespace,
        "lastRunTurn": told.last_run_turn,
        "lastRunAt": iso(told.last_run_at),
        "totalRuns": told.total_runs,
        "lastCulledFactIds": [str(id_) for id_ in told.culled_fact_ids],
        "lastCulledFacts": told.culled_facts,
        "lastCulledEpisodeIds": [str(id_) for id_ in told.culled_episode_ids],
        "lastCulledEpisodes": told.culled_episodes,
        "lastMarkedStaleEpisodeIds": [str(id_) for id_ in told.stale_episode_ids],
        "lastMarkedStaleEpisodes": told.stale_episodes,
    }
