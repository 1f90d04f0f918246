"""The tasks by which owners decide about facts that the forget limit holds back."""

import time
from typing import Any
from uuid import UUID

from celery import Task

from workers import validation
from workers.celery import app
from workers.coordination import signals
from workers.decay import held as holding
from workers.decay.held import Cursor, Decided, Page
from workers.errors import InvalidInputError
from workers.tasks.answers import shown
from workers.tasks.once import OnceTask
from workers.tasks.task import MOST_FACTS, MOST_RESULTS, EbbTask, context, write_instant
from workers.validation import cursors

DECIDING_SECONDS = 5.0
"""How long one call goes on; a caller who has more to decide calls again."""


@app.task(base=EbbTask, name="memory.held")
def held(namespace: Any = "default", limit: Any = 100, cursor: Any = None) -> dict[str, Any]:
    """Return facts that are over but stay visible, those that were over first in front."""
    name, most = validation.namespace_name(namespace), validation.whole(limit, "limit", MOST_RESULTS)
    return _page(holding.listed(context, name, most, cursors.place(cursor, Cursor)))


@app.task(base=OnceTask, bind=True, name="memory.let_go")
def let_go(
    self: Task, ids: Any = None, everything: bool = False, namespace: Any = "default", now: Any = None
) -> dict[str, Any]:
    """Forget held facts, or with `everything` all that are held; return how many, and how many are left."""
    at = write_instant(self, now)
    name, facts = validation.namespace_name(namespace), _wanted(ids, everything=everything)
    done = holding.let_go(context, name, facts, at, time.monotonic() + DECIDING_SECONDS)
    signals.mark_grown(context.redis, name)
    return _decided(done)


@app.task(base=OnceTask, bind=True, name="memory.keep")
def keep(
    self: Task, ids: Any = None, everything: bool = False, namespace: Any = "default", now: Any = None
) -> dict[str, Any]:
    """Keep held facts, or with `everything` all that are held; return how many, and how many are left."""
    at = write_instant(self, now)
    name, facts = validation.namespace_name(namespace), _wanted(ids, everything=everything)
    return _decided(holding.keep(context, name, facts, at, time.monotonic() + DECIDING_SECONDS))


def _wanted(ids: Any, *, everything: bool) -> list[UUID] | None:
    """Return the ids that were given, or nothing for all.

    Raises:
        InvalidInputError: both were given, or neither.
    """
    if everything == (ids is not None):
        raise InvalidInputError("ids: give the ids of held facts, or `everything` for all that are held, not both.")
    return None if everything else validation.fact_ids(ids, MOST_FACTS)


def _page(page: Page) -> dict[str, Any]:
    facts = [
        {
            "id": str(one.id),
            "text": one.text,
            "decay_class": one.decay_class,
            "reason": page.reasons.get(one.id),
            "ended_at": shown(one.ended_at),
            "created_at": shown(one.created_at),
        }
        for one in page.facts
    ]
    return {"held": facts, "total": page.total, "next": cursors.following(page.rest)}


def _decided(done: Decided) -> dict[str, Any]:
    """Return about how many facts was decided, the first of them, and how many are still held."""
    return {"decided": len(done.ids), "ids": [str(id_) for id_ in done.ids[:MOST_RESULTS]], "left": done.left}
