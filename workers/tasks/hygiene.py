"""Tasks of hygiene: consolidation, then the janitor, then the review by an LLM if enabled."""

import time
from datetime import datetime
from typing import Any
from uuid import uuid5

from celery import Task
from ebb.contract import decay as contract
from ebb.contract.operation import Answer, Timed
from ebb.contract.values import MOST_RESULTS, FactId, Flag, Name
from pydantic import Field

from workers.celery import settings
from workers.coordination import signals
from workers.decay import consolidate as consolidating
from workers.decay import janitor as tidying
from workers.decay import passes
from workers.decay import review as reviewing
from workers.decay.consolidate import Group
from workers.memory import restore as restoring
from workers.storage.tombstones import Selection
from workers.tasks.decay import answered, hand_over, yield_to_users
from workers.tasks.decay import apply as apply_part
from workers.tasks.operation import Upkeep, internal, plain, task_of
from workers.tasks.recall import regenerate_soon
from workers.tasks.task import WORK_SECONDS, OnceTask, context, uuid_of, write_instant

CONSOLIDATION_SECONDS = 3_600.0
"""Consolidations of all namespaces within this time count as one, in case two beats run."""

AT_ONCE = 100
"""Namespaces that are sent a task at once; the rest follow when these have begun, so that other work waits for few."""

REVIEW_SECONDS = 20.0
"""Time after which a review starts no further request, which may take as long again."""


class Merged(Answer):
    """The result of a consolidation so far."""

    compared: int = 0
    merged: int = 0
    groups: list[dict[str, Any]] = Field(default_factory=list)


class ConsolidatePart(contract.Consolidate):
    """A consolidation, or the rest of one; a scheduled one is followed by the janitor if enabled.

    With `everywhere`, `after` is the last namespace that was sent one.
    """

    scheduled: Flag = False
    after: Name | None = None
    run: FactId | None = None
    so_far: Merged | None = None
    asked_by: Name | None = None


class JanitorPart(contract.RunJanitor):
    """A run of the janitor, or the rest of one; a scheduled one is followed by the review if enabled.

    With `everywhere`, `after` is the last namespace that was sent one.
    """

    scheduled: Flag = False
    after: Name | None = None
    run: FactId | None = None
    asked_by: Name | None = None


class ReviewPart(Timed):
    """A review, or the rest of one."""

    run: FactId | None = None
    after: FactId | None = None


@task_of(contract.CONSOLIDATE, ConsolidatePart, base=OnceTask)
def consolidate(self: Task, asked: ConsolidatePart) -> dict[str, Any]:
    """Return near-duplicates, merged if requested; the last successor answers."""
    task_id, name, until = self.request.id or "", asked.namespace, time.monotonic() + WORK_SECONDS
    at = write_instant(self, asked.now)
    if asked.everywhere:
        given = {"apply": asked.apply, "force": asked.force, "limit": asked.limit}
        given |= {"scheduled": True} if asked.scheduled else {}
        return _consolidate_all(task_id, at, given, asked.after)
    run = asked.run or uuid_of(task_id)
    done = consolidating.consolidate(context, name, run, at, until, apply=asked.apply, force=asked.force)
    regenerate_soon(name, done.merged.faded)
    so_far = _added(asked.so_far or Merged(), done, asked.limit)
    if done.more:
        rest = {"run": str(run), "so_far": so_far, "now": at.isoformat()}
        hand_over(self, asked, rest, f"{so_far['compared']} facts compared, {so_far['merged']} merged so far")
    left = consolidating.near_duplicates(context, name, at)
    if asked.apply:  # with what a delivery merged that was broken off
        merged = restoring.selected(context, name, Selection((consolidating.REASON,), run=run))
        so_far["merged"] = max(so_far["merged"], merged)
    if asked.scheduled:
        _follow_consolidation(name)
    return answered(asked, _consolidated(so_far, left, asked))


@internal("memory.consolidate_all", Upkeep, ignore_result=True)
def consolidate_all(self: Task, asked: Upkeep) -> None:
    """Send consolidations for all namespaces with due or uncompared facts."""
    if signals.first_of(context.redis, "consolidation", self.request.id or "", CONSOLIDATION_SECONDS):
        at = write_instant(self, asked.now)
        _consolidate_all(self.request.id or "", at, {"apply": settings.consolidate_apply, "scheduled": True})


@task_of(contract.JANITOR, JanitorPart, base=OnceTask)
def janitor(self: Task, asked: JanitorPart) -> dict[str, Any]:
    """Process the due facts of a namespace; return what was culled or became stale since the previous run."""
    at, task_id = write_instant(self, asked.now), self.request.id or ""
    if asked.everywhere:
        return _send(janitor, task_id, tidying.due(context, at), {"now": at.isoformat()}, asked.after)
    name, until = asked.namespace, time.monotonic() + WORK_SECONDS
    if tidying.schedule(context, name) is None:
        skipped = plain(tidying.last(context, name)) | {"skipped": "hygiene is switched off here"}
        return answered(asked, skipped)
    run = asked.run or uuid_of(task_id)
    for part_run, segment, part in tidying.plan(context, name, run, at):
        if part_run != run:
            apply_part.apply_async(kwargs={"run": str(part_run), "segment": segment, "part": part})
        elif not passes.apply(context, (part_run, segment, part), yield_to_users, until):
            hand_over(self, asked, {"run": str(run), "now": at.isoformat()}, "goes on in another task")
    answer = plain(tidying.conclude(context, name, run, at))
    if asked.scheduled and settings.prune_by_llm:
        prune_by_llm.apply_async(kwargs={"namespace": name})
    return answered(asked, answer)


@task_of(contract.JANITOR_SNAPSHOT, contract.ShowJanitor)
def janitor_snapshot(_: Task, asked: contract.ShowJanitor) -> contract.Janitor:
    """Return the report of the janitor's last run in a namespace."""
    return tidying.last(context, asked.namespace)


@internal("memory.prune_by_llm", ReviewPart, base=OnceTask)
def prune_by_llm(self: Task, asked: ReviewPart) -> dict[str, Any]:
    """Have an LLM look for redundant facts, if enabled; a successor continues."""
    run, name = asked.run or uuid_of(self.request.id or ""), asked.namespace
    at, until = write_instant(self, asked.now), time.monotonic() + REVIEW_SECONDS
    done = reviewing.review(context, name, run, at, asked.after, until)
    if done.rest is not None:
        rest = {"namespace": name, "now": at.isoformat(), "run": str(run), "after": str(done.rest)}
        prune_by_llm.apply_async(kwargs=rest)
    return {"reviewed": done.reviewed, "forgotten": done.forgotten, "goes_on": done.rest is not None}


def _consolidate_all(task_id: str, at: datetime, given: dict[str, Any], after: str | None = None) -> dict[str, Any]:
    names = tidying.due(context, at, own=bool(given.get("scheduled")), uncompared=True)
    return _send(consolidate, task_id, names, given, after)


def _send(task: Task, task_id: str, names: list[str], given: dict[str, Any], after: str | None) -> dict[str, Any]:
    """Send a task for each of the next namespaces, and a successor for the rest; return how many, and the first ones.

    A redelivery sends the same ids, which run once.
    """
    left = [name for name in names if after is None or name > after]
    for name in left[:AT_ONCE]:
        own_id = uuid5(uuid_of(task_id), f"namespace {name}")
        task.apply_async(kwargs=given | {"namespace": name}, task_id=str(own_id))
    if len(left) > AT_ONCE:
        last = left[AT_ONCE - 1]
        own_id = uuid5(uuid_of(task_id), f"after {last}")
        task.apply_async(kwargs=given | {"everywhere": True, "after": last}, task_id=str(own_id))
    return {"namespaces": names[:MOST_RESULTS], "total": len(names)}


def _follow_consolidation(namespace: str) -> None:
    """Send the janitor after a consolidation, or the review if the janitor is not scheduled then."""
    if tidying.schedule(context, namespace) == "onConsolidation":
        janitor.apply_async(kwargs={"namespace": namespace, "scheduled": True})
    elif settings.prune_by_llm:
        prune_by_llm.apply_async(kwargs={"namespace": namespace})


def _added(before: Merged, done: consolidating.Progress, most: int) -> dict[str, Any]:
    """Return the sum of earlier and new results, with at most `most` groups."""
    groups = [_group(group) for group in done.merged.groups]
    return {
        "compared": before.compared + done.compared,
        "merged": before.merged + sum(len(group["merge"]) for group in groups),
        "groups": (before.groups + groups)[:most],
    }


def _consolidated(done: dict[str, Any], left: list[Group], asked: ConsolidatePart) -> dict[str, Any]:
    """Return the merged groups, or those that would be; `total` groups with `facts` facts are left."""
    groups = done["groups"] if asked.apply else [_group(group) for group in left[: asked.limit]]
    counts = {"total": len(left), "facts": sum(len(group.merge) for group in left)}
    return {"applied": asked.apply, "compared": done["compared"], "merged": done["merged"], **counts, "groups": groups}


def _group(group: Group) -> dict[str, Any]:
    return {
        "keep": {"id": str(group.keep.id), "text": group.keep.text},
        "merge": [
            {"id": str(member.id), "text": member.text, "similarity": round(similarity, 4)}
            for member, similarity in group.merge
        ],
    }
