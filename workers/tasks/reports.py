"""The tasks that tell what a namespace holds, what will come of it, and what contradicts itself there."""

from dataclasses import asdict
from typing import Any

from celery import Task

from workers import validation
from workers.admin import stats as counting
from workers.admin import stats as coursing
from workers.celery import app
from workers.decay import forecast as forecasting
from workers.errors import InvalidInputError
from workers.memory import facts as showing
from workers.memory import supersede
from workers.storage.contradictions import Cursor
from workers.tasks import answers
from workers.tasks.once import OnceTask
from workers.tasks.task import MOST_FACTS, MOST_RESULTS, EbbTask, context, instant, write_instant
from workers.validation import cursors

MOST_SHOWN = 100
PAIR = 2
MANY = 1_000_000_000


@app.task(base=EbbTask, name="memory.stats")
def stats(namespace: Any = "default", now: Any = None) -> dict[str, Any]:
    """Return what a namespace holds, by tier, fidelity and decay class, and what is due."""
    return asdict(counting.stats(context, validation.namespace_name(namespace), instant(now)))


@app.task(base=EbbTask, name="memory.course")
def course(namespace: Any = "default", days: Any = 14, now: Any = None) -> dict[str, Any]:
    """Return how what a namespace holds has changed over so many days."""
    name, back = validation.namespace_name(namespace), validation.whole(days, "days", forecasting.MOST_DAYS)
    return coursing.course(context, name, back, instant(now))


@app.task(base=EbbTask, name="memory.namespaces")
def namespaces(prefix: Any = "", limit: Any = 100) -> dict[str, Any]:
    """Return the names of namespaces that begin so, in order."""
    begins = validation.optional_name(prefix, "prefix") if prefix else ""
    return {"namespaces": showing.namespaces(context, begins or "", validation.whole(limit, "limit", MOST_RESULTS))}


@app.task(base=EbbTask, name="memory.fact")
def fact(
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Return one fact as it is now."""
    return answers.fact(
        showing.show(context, validation.namespace_name(namespace), validation.fact_id(id), instant(now))
    )


@app.task(base=EbbTask, name="memory.facts")
def facts(
    namespace: Any = "default",
    limit: Any = 100,
    before: Any = None,
    offset: Any = 0,
    ids: Any = None,
    cursor: Any = None,
    now: Any = None,
) -> dict[str, Any]:
    """Return facts as they are now: those of `ids`, or else a page of all, the newest first."""
    name, at = validation.namespace_name(namespace), instant(now)
    if ids is not None:
        return answers.facts(showing.among(context, name, validation.fact_ids(ids, MOST_RESULTS), at))
    most, skipped = (
        validation.whole(limit, "limit", MOST_FACTS),
        0 if offset == 0 else validation.whole(offset, "offset", MANY),
    )
    place = cursors.place(cursor, showing.Cursor)
    last = place.before if place else None if before is None else validation.fact_id(before)
    return answers.facts(*showing.page(context, name, most, at, before=last, offset=skipped))


@app.task(base=EbbTask, name="memory.forecast")
def forecast(namespace: Any = "default", days: Any = 7, shown: Any = 3, now: Any = None) -> dict[str, Any]:
    """Return what passes will do on each of the coming days."""
    name, ahead = validation.namespace_name(namespace), validation.whole(days, "days", forecasting.MOST_DAYS)
    named = 0 if shown == 0 else validation.whole(shown, "shown", MOST_SHOWN)
    return answers.foreseen(forecasting.forecast(context, name, ahead, instant(now), named))


@app.task(base=EbbTask, name="memory.contradictions")
def list_contradictions(
    namespace: Any = "default", limit: Any = 100, cursor: Any = None, now: Any = None
) -> dict[str, Any]:
    """Return which remembered facts contradict each other."""
    name, most = validation.namespace_name(namespace), validation.whole(limit, "limit", MOST_RESULTS)
    behind = cursors.place(cursor, Cursor)
    return answers.contradicting(supersede.contradicting(context, name, instant(now), most, behind))


@app.task(base=OnceTask, bind=True, name="memory.resolve")
def resolve(
    self: Task, ids: Any, namespace: Any = "default", keep: Any = None, both: bool = False, now: Any = None
) -> dict[str, Any]:
    """Settle a contradiction: one fact supersedes the others, or both are accepted."""
    at = write_instant(self, now)
    given, name = list(dict.fromkeys(validation.fact_ids(ids, MOST_FACTS))), validation.namespace_name(namespace)
    if both and keep is None and len(given) == PAIR:
        supersede.accept(context, name, given[0], given[1], at)
        return {"accepted": [str(id_) for id_ in given]}
    kept = None if keep is None else validation.fact_id(keep)
    others = [id_ for id_ in given if id_ != kept]
    if both or kept is None or not others:
        raise InvalidInputError("ids: give the fact to keep and those it supersedes, or two facts and accept both.")
    supersede.keep(context, name, kept, others, at)
    return {"kept": str(kept), "superseded": [str(id_) for id_ in others]}
