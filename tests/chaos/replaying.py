"""Replaying: applies the step of a task again by calling its verb directly."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from ebb.contract import documents as asked_documents
from ebb.contract import graph as asked_graph
from ebb.contract.admin import ChangeSettings

from tests.chaos.cells import (
    CONSOLIDATE,
    DROP_ITEM,
    INDEX,
    JANITOR,
    LOOKUP,
    PLAN,
    PURGE,
    PUT_ITEM,
    RESOLVE,
    SETTINGS,
    UNINDEX,
    Cell,
    Step,
)
from workers import graph
from workers.admin import purge
from workers.context import Context
from workers.decay import consolidate, janitor, passes
from workers.documents import files, items
from workers.errors import InvalidInputError
from workers.memory import forget, namespace_settings, pin, restore, store, supersede, touch
from workers.memory.touch import Shown
from workers.validation.facts import new_fact


def replay(context: Context, cell: Cell, step: Step) -> None:
    """Apply a step by calling the verb of its task; a refused step is refused again.

    A lookup asks for all facts of a cell, and so touches all its live facts.
    """
    with suppress(InvalidInputError):
        if step.task == LOOKUP:
            touch.touch(context, cell.namespace, [Shown([UUID(id_) for id_ in cell.ids], _instant(step))])
        else:
            VERBS[step.task](context, step)


def _instant(step: Step, name: str = "now") -> datetime:
    return datetime.fromisoformat(step.arguments[name])


def _ids(step: Step) -> list[UUID]:
    return [UUID(id_) for id_ in step.arguments["ids"]]


def _store_many(context: Context, step: Step) -> None:
    given = [new_fact(fact, 65_536) for fact in step.arguments["facts"]]
    classify = step.arguments["classify"]
    store.store_many(context, step.arguments["namespace"], given, _instant(step), classify=classify)


def _touch(context: Context, step: Step) -> None:
    name, ids, at = step.arguments["namespace"], _ids(step), _instant(step, "at")
    revived = restore.revive(context, name, ids, at)[0] if step.arguments.get("deep") else []
    rest = [id_ for id_ in ids if id_ not in revived]
    touch.touch(context, name, [Shown(rest, at, UUID(step.task_id))])


def _reinforce(context: Context, step: Step) -> None:
    given = step.arguments
    touch.reinforce(context, given["namespace"], UUID(given["id"]), given["boost"], _instant(step), UUID(step.task_id))


def _pin(context: Context, step: Step) -> None:
    fact = UUID(step.arguments["id"])
    if step.arguments.get("off"):
        pin.unpin(context, step.arguments["namespace"], fact, _instant(step))
    else:
        pin.pin(context, step.arguments["namespace"], fact, None, _instant(step))


def _forget(context: Context, step: Step) -> None:
    given = step.arguments
    run, purge = UUID(step.task_id), given.get("purge", False)
    forget.forget(context, given["namespace"], _ids(step), _instant(step), purge=purge, run=run)


def _restore(context: Context, step: Step) -> None:
    restore.restore(context, step.arguments["namespace"], _ids(step), _instant(step))


def _resolve(context: Context, step: Step) -> None:
    one, two = _ids(step)
    supersede.accept(context, step.arguments["namespace"], one, two, _instant(step))


def _link(context: Context, step: Step) -> None:
    graph.link(context, asked_graph.Link(**step.arguments), _instant(step))


def _unlink(context: Context, step: Step) -> None:
    graph.unlink(context, asked_graph.Unlink(**step.arguments))


def _relate(context: Context, step: Step) -> None:
    graph.relate(context, asked_graph.Relate(**step.arguments), _instant(step))


def _unrelate(context: Context, step: Step) -> None:
    graph.unrelate(context, asked_graph.Unrelate(**step.arguments))


def _plan(context: Context, step: Step) -> None:
    run = UUID(step.task_id)
    for part in passes.plan(context, run, _instant(step), namespace=step.arguments["namespace"]):
        passes.apply(context, part, lambda: None)
    passes.finish(context, run)


def _purge(context: Context, step: Step) -> None:
    name, at = step.arguments["namespace"], _instant(step)
    while purge.demote_batch(context, at, name) or purge.purge_batch(context, at, name).facts:
        pass


def _janitor(context: Context, step: Step) -> None:
    run, name = UUID(step.task_id), step.arguments["namespace"]
    for part in janitor.plan(context, name, run, _instant(step)):
        passes.apply(context, part, lambda: None)
    janitor.conclude(context, name, run, _instant(step))


def _consolidate(context: Context, step: Step) -> None:
    name, run = step.arguments["namespace"], UUID(step.task_id)
    consolidate.consolidate(context, name, run, _instant(step), math.inf, apply=step.arguments["apply"])


def _index(context: Context, step: Step) -> None:
    files.index(context, asked_documents.Index(**step.arguments), _instant(step))


def _unindex(context: Context, step: Step) -> None:
    files.remove(context, asked_documents.Unindex(**step.arguments))


def _settings(context: Context, step: Step) -> None:
    namespace_settings.change(context, ChangeSettings.model_validate(step.arguments), _instant(step))


def _put_item(context: Context, step: Step) -> None:
    asked = asked_documents.PutItem(**step.arguments)
    items.put(context, asked.namespace, [asked], [items.item_id(UUID(step.task_id))], _instant(step))


def _drop_item(context: Context, step: Step) -> None:
    items.drop(context, asked_documents.DropItem(**step.arguments), _instant(step))


VERBS: Mapping[str, Callable[[Context, Step], None]] = {
    "memory.store_many": _store_many,
    "memory.touch": _touch,
    "memory.reinforce": _reinforce,
    "memory.pin": _pin,
    "memory.forget": _forget,
    "memory.restore": _restore,
    RESOLVE: _resolve,
    "memory.link": _link,
    "memory.unlink": _unlink,
    "memory.relate": _relate,
    "memory.unrelate": _unrelate,
    PLAN: _plan,
    PURGE: _purge,
    JANITOR: _janitor,
    CONSOLIDATE: _consolidate,
    INDEX: _index,
    UNINDEX: _unindex,
    SETTINGS: _settings,
    PUT_ITEM: _put_item,
    DROP_ITEM: _drop_item,
}
