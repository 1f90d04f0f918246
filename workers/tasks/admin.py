"""Tasks of administration: branches, settings of a namespace, shards, API keys, and measures of the system."""

import time
from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

from celery import Task
from ebb.contract import admin as contract
from ebb.contract.operation import Params
from ebb.contract.values import MOST_RESULTS, FactId, Flag, Instant, Name, Namespace
from psycopg.errors import LockNotAvailable, SerializationFailure
from pydantic import Field

from workers.admin import branches as branching
from workers.admin import keys, shard_moves, stats
from workers.coordination import signals
from workers.errors import NotFoundError
from workers.memory import namespace_settings
from workers.storage.api_keys import ApiKey
from workers.storage.branches import Branch
from workers.tasks.decay import answered, hand_over
from workers.tasks.operation import Upkeep, internal, task_of, verb_of
from workers.tasks.task import HOURS, RETRY_SECONDS, WORK_SECONDS, OnceTask, context, write_instant

OVERTAKEN = (branching.StoppedError, LockNotAvailable, SerializationFailure)
"""Failures of a step of a branch, whose facts another task copies or drops."""

BUSY_TRIES = 2_400
"""How often a move is tried again while another one is at work: for two hours."""


class BranchPart(contract.MakeBranch):
    """The making of a branch, or the rest of it: facts are copied first, then pairs of facts."""

    pairs: Flag = False
    after: FactId | None = None
    asked_by: Name | None = None


class DropPart(contract.DropBranches):
    """The erasing of branches, or the rest of it after some were `dropped`."""

    dropped: list[Name] = Field(default_factory=list)
    asked_by: Name | None = None


@task_of(contract.BRANCH, BranchPart, base=OnceTask, **HOURS)
def branch(self: Task, asked: BranchPart) -> dict[str, Any]:
    """Copy a namespace with every instant shifted into the past; the last successor answers."""
    made = branching.begin(context, asked.namespace, asked.older, is_new=asked.asked_by is None)
    if made.complete:
        unchanged = {
            "branch": made.name,
            "action": "unchanged",
            "facts": branching.live_and_forgotten(context, made)[0],
        }
        return answered(asked, unchanged)
    until, pairs, place = time.monotonic() + WORK_SECONDS, asked.pairs, asked.after or branching.START
    try:
        while time.monotonic() < until:
            copied = branching.copy(context, made, place, pairs=pairs)
            if pairs and copied is None:
                branching.conclude(context, made, context.now())
                break
            pairs, place = pairs or copied is None, copied or branching.START
        else:
            hand_over(self, asked, {"pairs": pairs, "after": str(place)}, "goes on in another task")
    except OVERTAKEN:
        given = {"pairs": pairs, "after": str(place)}
        hand_over(self, asked, given, "waits for another task", countdown=RETRY_SECONDS)
    return answered(
        asked, {"branch": made.name, "action": "made", "facts": branching.live_and_forgotten(context, made)[0]}
    )


@task_of(contract.BRANCHES, contract.ListBranches)
def branches(_: Task, asked: contract.ListBranches) -> dict[str, Any]:
    """Return the branches of a namespace, or with `everywhere` all, by name."""
    found = branching.listed(context, asked.scope)
    return {"branches": [_listed(one) for one in found[:MOST_RESULTS]], "total": len(found)}


def _listed(one: Branch) -> dict[str, Any]:
    live, forgotten = branching.live_and_forgotten(context, one)
    return {
        "branch": one.name,
        "of": one.original,
        "days": None if one.age is None else one.age.days,
        "complete": one.complete,
        "facts": live,
        "forgotten": forgotten,
    }


@task_of(contract.DROP_BRANCH, DropPart, base=OnceTask, **HOURS)
def drop_branch(self: Task, asked: DropPart) -> dict[str, Any]:
    """Delete branches; the last successor answers. A namespace that is no branch is left unchanged."""
    until = time.monotonic() + WORK_SECONDS
    found = branching.to_drop(context, asked.namespace, asked.older)
    begun = signals.progress(context.redis, own := self.request.id or "")  # by an earlier delivery
    if not found and not begun and asked.asked_by is None:
        name = asked.namespace
        raise NotFoundError(f"namespace: {name!r} is no branch and has none of that age; see `ebb branch --list`.")
    signals.note_progress(context.redis, own, {one.name: 1 for one in found})
    dropped = [*asked.dropped, *sorted(begun.keys() - {one.name for one in found})]

    def stop_in_time() -> None:
        if time.monotonic() > until:  # earlier workers reject `dropped`
            hand_over(self, asked, {"dropped": dropped} if dropped else {}, "goes on in another task")

    for one in found:
        while branching.drop_facts(context, one):
            stop_in_time()
        branching.drop(context, one)
        dropped.append(one.name)
        stop_in_time()
    return answered(asked, {"dropped": dropped})


@task_of(contract.SETTINGS, contract.ChangeSettings, base=OnceTask)
def settings(self: Task, asked: contract.ChangeSettings) -> contract.NamespaceSettings:
    """Set and unset settings of a namespace; return the effective ones, and which of them are its own."""
    if not asked.set and not asked.unset:
        return namespace_settings.settings_of(context, asked.namespace)
    return namespace_settings.change(context, asked, write_instant(self, asked.now))


@task_of(contract.SHARDS, contract.ListShards)
def list_shards(_: Task, __: contract.ListShards) -> contract.Shards:
    """Return all shards with their sizes."""
    return contract.Shards(shards=shard_moves.listed(context))


@task_of(contract.MOVE, contract.MoveNamespace, base=OnceTask, **HOURS)
def move_namespace(self: Task, asked: contract.MoveNamespace) -> contract.NamespaceMoved:
    """Move a namespace to another shard; wait while another move is at work, such as an earlier delivery's."""
    try:
        return shard_moves.move(context, asked.namespace, asked.shard)
    except shard_moves.OtherMoveError as busy:
        raise self.retry(exc=busy, countdown=RETRY_SECONDS, max_retries=BUSY_TRIES) from None


system_time_series = verb_of(contract.SYSTEM_TIME_SERIES, stats.load_over_time)


@internal("memory.measure", Upkeep)
def measure(_: Task, asked: Upkeep) -> dict[str, Any]:
    """Return the database's measures, and cache them in Redis."""
    figures = stats.measure(context, asked.now or context.now())
    signals.note_measured(context.redis, figures)
    return figures


@internal("memory.health", Params, soft_time_limit=8, time_limit=12)
def health(_: Task, __: Params) -> dict[str, Any]:
    """Return the health of the database and the embedder."""
    return stats.health(context)


@internal("memory.publish_keys", Params)
def publish_keys(_: Task, __: Params) -> dict[str, Any]:
    """Copy the digests of API keys to Redis, for the HTTP API."""
    return {"keys": keys.publish(context)}


class NewKey(Params):
    """A key that a visitor of the dashboard makes; only its digest leaves the HTTP API."""

    namespace: Namespace
    id: UUID
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    scopes: list[str]
    label: Name | None = None
    ends: Instant | None = None


class ChangedKey(Params):
    """When a key expires, or that it is revoked."""

    namespace: Namespace
    id: UUID
    ends: Instant | None = None
    revoke: Flag = False


@internal("memory.add_key", NewKey)
def add_key(_: Task, asked: NewKey) -> dict[str, Any]:
    """Add a key by its digest."""
    digest, now = bytes.fromhex(asked.digest), context.now()
    key = ApiKey(asked.id, asked.namespace, asked.label, asked.scopes, now, None, asked.ends, digest)
    return asdict(keys.add(context, key))


@internal("memory.change_key", ChangedKey, base=OnceTask)
def change_key(_: Task, asked: ChangedKey) -> dict[str, Any]:
    """Set when a key expires, or revoke it; a group that does not know it yet is no reason to try again."""
    try:
        if asked.revoke:
            keys.revoke(context, asked.namespace, asked.id, context.now())
        else:
            keys.expire(context, asked.namespace, asked.id, asked.ends, context.now())
    except keys.UnpublishedError as error:
        return {"unpublished": str(error)}
    return {"unpublished": None}
