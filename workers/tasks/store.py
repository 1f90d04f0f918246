"""Tasks of storing: single facts, batches, conversations, imports, and the outbox."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from typing import Any, ClassVar
from uuid import UUID, uuid5

from celery import Task
from ebb.contract import facts as contract
from ebb.contract.admin import IMPORT, ImportRecords
from ebb.contract.facts import REMEMBER, Remember, Remembered
from ebb.contract.operation import Params
from redis.exceptions import RedisError

from workers.admin import import_archive as archives
from workers.celery import app, settings
from workers.coordination import bulk, idempotency, outbox, shares, signals
from workers.coordination.bulk import Slice
from workers.decay import janitor as tidying
from workers.errors import InvalidInputError, apply_to_valid, or_error, require_all
from workers.memory import extract as extracting
from workers.memory import store as storing
from workers.memory.add import Stored
from workers.memory.extract import AT_ONCE, QUESTION_SECONDS
from workers.memory.remember import outcomes, turns
from workers.queues import SENT_AT, VISIBILITY_SECONDS
from workers.tasks.bulk import SLICE, SLICED, Sliced, in_slices
from workers.tasks.graph import autolink
from workers.tasks.maintenance import analyze_new
from workers.tasks.operation import Facts, internal, plain, task_of
from workers.tasks.recall import regenerate_used
from workers.tasks.task import FOLLOW_UP, WORK_SECONDS, EbbTask, OnceTask, context, note, use_of, uuid_of, write_instant
from workers.validation.archived import archived
from workers.validation.facts import new_fact

MOST_LOOKED_AT = 10_000
TURNS_SECONDS, TURNS_WAIT = 20.0, 5.0
"""How long one call may lock the turns of a session, and how long others wait; then turns may share a number."""

LINKED = ("added", "updated", "unchanged")


class StoreTask(EbbTask):
    """A task that sends the namespace's janitor after its answer, if scheduled so."""

    looked_at: ClassVar[dict[str, float]] = {}
    """When this process last read a namespace's schedule, on the monotonic clock."""

    def on_success(self, _result: Any, _task_id: str, _args: Any, _kwargs: Any) -> None:
        """Send the janitor at most once a minute; its message expires after that."""
        name = self.request.get("captured")
        if not name or not self._may_look(name):
            return
        with context.at(name):
            wanted = tidying.schedule(context, name) == "onCapture"
        if wanted and signals.may_start_janitor(context.redis, name):
            app.send_task("memory.janitor", kwargs={"namespace": name}, expires=signals.COOLDOWN_SECONDS)

    def _may_look(self, name: str) -> bool:
        """Return whether the schedule may be read again, at most once a minute."""
        now = time.monotonic()
        if now - self.looked_at.get(name, -inf) < signals.COOLDOWN_SECONDS:
            return False
        if len(self.looked_at) >= MOST_LOOKED_AT:
            self.looked_at.clear()
        self.looked_at[name] = now
        return True


@task_of(contract.STORE, contract.Store, base=StoreTask)
def store(self: Task, asked: contract.Store) -> contract.Stored:
    """Store one fact; return its id, outcome, whether it has a vector, and its lifetime."""
    own_id, at = uuid_of(self.request.id or ""), write_instant(self, asked.now)
    (stored,) = require_all(_store(self, asked, [asked], at, own_id, use_of(self)))
    return stored.answer


@task_of(contract.STORE_MANY, contract.StoreMany, base=StoreTask)
def store_many(self: Task, asked: contract.StoreMany) -> dict[str, Any]:
    """Store many facts; return the outcomes and errors in order."""
    return in_slices(self, asked.model_copy(update={"now": write_instant(self, asked.now)}))


def _store_slice(task: Task, part: Slice) -> list[Any]:
    """Store a slice of a batch, with ids derived from the batch's, so that it is idempotent."""
    asked = contract.StoreMany.model_validate(part.batch.arguments | {"facts": part.content})
    own_id, first = uuid_of(part.batch.id), part.place * SLICE
    use = uuid5(own_id, f"slice {part.place}") if part.place else own_id
    outcomes = _store(task, asked, part.content, asked.now or context.now(), own_id, use, first)
    return [_answer(one, first + place) for place, one in enumerate(outcomes)]


@task_of(REMEMBER, Remember, base=StoreTask)
def remember(self: Task, asked: Remember) -> Remembered:
    """Store the messages of a conversation; return the outcome of each turn."""
    own_id, at = uuid_of(self.request.id or ""), write_instant(self, asked.now)
    with _turns_of(asked):
        said, given, new = turns(context, asked)
        new = _noted(own_id, new, asked.namespace) if settings.extract else []
        done = _store(self, asked, given, at, own_id, use_of(self))
    stored = {one.id for one in done if isinstance(one, Stored) and one.action in LINKED}
    _extract([id_ for id_ in new if id_ in stored], asked.namespace, at, own_id)
    return outcomes(asked, said, given, done)


@contextmanager
def _turns_of(asked: Remember) -> Iterator[None]:
    """Lock the turns of a session, if Redis answers, so that calls at the same time number them one after another."""
    with ExitStack() as held:
        if asked.session is not None:
            session = f"{asked.namespace} {asked.session!r}"
            with suppress(RedisError):
                held.enter_context(signals.try_lock(context.redis, f"turns:{session}", TURNS_SECONDS, TURNS_WAIT))
        yield


def _noted(own_id: UUID, new: Sequence[UUID], namespace: str) -> list[UUID]:
    """Record the new turns, and return those that an earlier delivery of the same task recorded."""
    with suppress(RedisError):
        said = {"ids": [str(id_) for id_ in new]}
        noted = idempotency.keep_answer(context.redis, f"new:{own_id}", said, namespace)
        return [UUID(id_) for id_ in noted["ids"]]
    return list(new)


def _extract(ids: Sequence[UUID], namespace: str, at: datetime, own_id: UUID) -> None:
    """Send the extraction of facts from turns, with the same task id for a redelivery."""
    if ids:
        given = {"ids": [str(id_) for id_ in ids], "namespace": namespace, "now": at.isoformat()}
        extract.apply_async(kwargs=given, task_id=str(uuid5(own_id, "extract")))


@internal("memory.extract", Facts, base=OnceTask, ignore_result=True, **FOLLOW_UP)
def extract(self: Task, asked: Facts) -> dict[str, Any]:
    """Extract facts from turns by an LLM; a successor continues after 30 seconds."""
    own_id, at = uuid_of(self.request.id or ""), write_instant(self, asked.now, refuse=False)
    until, left, done = time.monotonic() + WORK_SECONDS - QUESTION_SECONDS, asked.ids, 0
    while left and settings.extract:
        done += extracting.extract(context, asked.namespace, left[:AT_ONCE], at)
        left = left[AT_ONCE:]
        if time.monotonic() > until:
            _extract(left, asked.namespace, at, own_id)
            break
    if done:
        signals.mark_grown(context.redis, asked.namespace)
    return {"extracted": done}


@task_of(IMPORT, ImportRecords, base=OnceTask)
def import_records(self: Task, asked: ImportRecords) -> dict[str, Any]:
    """Import records of an archive; return the outcomes in order."""
    return in_slices(self, asked.model_copy(update={"now": write_instant(self, asked.now)}))


def _import_slice(_: Task, part: Slice) -> list[Any]:
    asked = ImportRecords.model_validate(part.batch.arguments | {"records": part.content})
    write = partial(archives.import_records, context, asked.namespace, now=asked.now or context.now())
    outcomes = apply_to_valid([or_error(archived, record, settings.max_text) for record in asked.records], write)
    signals.mark_grown(context.redis, asked.namespace)
    analyze_new(asked.namespace)
    _regenerate_used(asked.namespace, outcomes)
    numbered = enumerate(outcomes, part.place * SLICE)
    return [{"action": one} if isinstance(one, str) else _answer(one, place) for place, one in numbered]


SLICED |= {
    contract.STORE_MANY.name: Sliced("facts", _store_slice),
    IMPORT.name: Sliced("records", _import_slice, done=note),
}


@internal("memory.sweep_outbox", Params, ignore_result=True)
def sweep_outbox(_: Task, _asked: Params) -> None:
    """Send accepted writes again whose messages may be lost, and count the bytes of batches again.

    A message may also just wait, behind others of its namespace: each takes its turn as when it was accepted. What is
    not sent within 30 seconds is left to the next minute.
    """
    now, until = context.seconds(), time.monotonic() + WORK_SECONDS
    bulk.recount(context.redis)
    for entry in outbox.entries(context.redis):
        if time.monotonic() >= until:
            break
        if not entry.overdue(now, VISIBILITY_SECONDS + WORK_SECONDS):
            continue
        if outbox.renew(context.redis, replace(entry, sent_at=now, tries=entry.tries + 1)):
            headers = {outbox.HEADER: entry.namespace, SENT_AT: entry.accepted_at, **entry.trace}
            turn = shares.priority(outbox.held(context.redis, entry.namespace) - 1)
            app.send_task(entry.task, kwargs=outbox.message(entry), task_id=entry.id, headers=headers, priority=turn)


def _store(
    task: Task,
    asked: contract.Statement,
    given: Sequence[Any],
    at: datetime,
    own_id: UUID,
    use: UUID | None,
    first: int = 0,
) -> list[Stored | InvalidInputError]:
    """Validate and store facts; missing ids are derived from `own_id`, so that a redelivery is idempotent.

    `first` is the index of the first fact in the batch.
    """

    def write(good: list[contract.NewFact]) -> list[Stored | InvalidInputError]:
        if not good:
            return []
        flags = {name: getattr(asked, name) for name in contract.Statement.__annotations__}
        stored = storing.store_many(context, asked.namespace, good, at, **flags, use=use)
        signals.mark_grown(context.redis, asked.namespace)
        task.request.captured = asked.namespace
        if len(good) > storing.FEW:
            analyze_new(asked.namespace)
        return stored

    checked = [_check(fact, idempotency.id_of_member(own_id, i, str(i)), at) for i, fact in enumerate(given, first)]
    outcomes = apply_to_valid(checked, write)
    _link(outcomes, asked.namespace, at, use or own_id)
    _regenerate_used(asked.namespace, outcomes)
    return outcomes


def _regenerate_used(namespace: str, outcomes: Sequence[Any]) -> None:
    regenerate_used(namespace, [one.id for one in outcomes if isinstance(one, Stored) and one.faded])


def _answer(outcome: Stored | InvalidInputError, place: int) -> dict[str, Any]:
    if isinstance(outcome, InvalidInputError):
        return {"error": str(outcome), "index": place}
    return plain(outcome.answer)


def _link(outcomes: Sequence[Stored | InvalidInputError], name: str, at: datetime, own_id: UUID) -> None:
    """Send the linking of stored facts, if enabled, with the same task id for a redelivery.

    Facts without a vector are linked once they have one.
    """
    if not settings.auto_link:
        return
    stored = [one for one in outcomes if isinstance(one, Stored) and one.action in LINKED]
    signals.note_unlinked(context.redis, name, [one.id for one in stored if not one.embedded])
    ids = [str(one.id) for one in stored if one.embedded]
    if ids:
        given = {"ids": ids, "namespace": name, "now": at.isoformat()}
        autolink.apply_async(kwargs=given, task_id=str(uuid5(own_id, "links")))


def _check(given: Any, id_: UUID, at: datetime) -> contract.NewFact | InvalidInputError:
    fact = or_error(new_fact, given, settings.max_text, at)
    return fact if isinstance(fact, InvalidInputError) or fact.id else fact.model_copy(update={"id": id_})
