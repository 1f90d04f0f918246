"""When it is done: a few lines for each Celery task. Arguments and results are plain JSON; every task may run twice."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import psycopg
from celery import Task
from psycopg_pool import PoolTimeout

from workers import answers, contradictions, embed, intake, search
from workers import forecast as forecasting
from workers import recall as recalling
from workers import regenerate as regenerating
from workers import review as reviewing
from workers import stats as counting
from workers import store as storing
from workers import touch as touching
from workers.celery import app, settings
from workers.context import Context, utc_now
from workers.errors import EmbeddingError, InvalidInputError, UnavailableError
from workers.queues import VISIBILITY_SECONDS
from workers.storage import outbox, signals

log = logging.getLogger(__name__)

MOST_FACTS = 10_000
MOST_RESULTS = 1_000
MOST_SHOWN = 100
DEFAULT_BOOST = 0.2
PAIR = 2
WORK_SECONDS = 30.0
"""How long a task that walks many facts goes on before it hands over to its successor."""

REVIEW_SECONDS = 20.0
"""The same for one that asks an LLM, whose last answer may take as long again."""

context = Context(settings)


class EbbTask(Task):  # type: ignore[misc]  # Celery comes without types
    """A task that waits out a short absence of the database; what was wrong with its input is an answer, no crash."""

    autoretry_for = (psycopg.OperationalError, psycopg.InterfaceError, UnavailableError)
    dont_autoretry_for = (psycopg.errors.QueryCanceled, PoolTimeout)
    max_retries = 6
    default_retry_delay = 1  # after a killed child; Celery's own is longer than the visibility timeout
    retry_backoff = 1
    retry_backoff_max = 8
    throws = (InvalidInputError,)


class RecallTask(EbbTask):
    """A task that sends the touch of what it returned once the answer is out."""

    def on_success(self, _result: Any, task_id: str, _args: Any, _kwargs: Any) -> None:
        """Send the touch that this call noted on its request, if it did; a second delivery repeats the first one's."""
        arguments = self.request.get("touch_after")
        if arguments:
            at = signals.first_seen(context.redis, task_id, datetime.fromisoformat(arguments["at"]))
            touch.apply_async(kwargs=arguments | {"at": at.isoformat()})


@app.task(base=EbbTask, bind=True, name="memory.store", soft_time_limit=35, time_limit=40)
def store(
    self: Task,
    text: Any = None,
    namespace: Any = "default",
    touch: bool = True,
    classify: bool = True,
    now: Any = None,
    **fact: Any,
) -> dict[str, Any]:
    """Store one fact; return its id, what it became, and whether it has a vector."""
    (answer,) = _store(self, [{"text": text, **fact}], namespace, now, touch=touch, classify=classify)
    if isinstance(answer, InvalidInputError):
        raise answer
    return answers.stored(answer)


@app.task(base=EbbTask, bind=True, name="memory.store_many")
def store_many(
    self: Task,
    facts: Any,
    namespace: Any = "default",
    touch: bool = True,
    classify: bool = True,
    now: Any = None,
) -> dict[str, Any]:
    """Store many facts; return what each became, in order, or why it was not stored."""
    if not isinstance(facts, list) or not 0 < len(facts) <= MOST_FACTS:
        raise InvalidInputError(f"facts: give a list of 1 to {MOST_FACTS} facts.")
    return answers.stored_many(_store(self, facts, namespace, now, touch=touch, classify=classify))


@app.task(base=RecallTask, bind=True, name="memory.recall", soft_time_limit=8, time_limit=12, max_retries=2)
def recall(
    self: Task,
    query: Any,
    namespace: Any = "default",
    limit: Any = 10,
    tag: Any = None,
    category: Any = None,
    kind: Any = None,
    as_of: Any = None,
    known_as_of: Any = None,
    explain: bool = False,
    touch: bool = True,
    now: Any = None,
) -> dict[str, Any]:
    """Return the facts that fit a question best; they are touched afterwards unless `touch` is false.

    What is recalled as of an instant is read only, and never touched.
    """
    at = instant(now)
    name = intake.namespace_name(namespace)
    question = recalling.Question(
        text=intake.query_text(query, settings.max_text),
        limit=intake.whole(limit, "limit", MOST_RESULTS),
        tag=intake.optional_name(tag, "tag"),
        category=intake.optional_name(category, "category"),
        kind=intake.optional_name(kind, "kind"),
        as_of=None if as_of is None else intake.instant(as_of, "as_of"),
        known_as_of=None if known_as_of is None else intake.instant(known_as_of, "known_as_of"),
        explain=explain,
    )
    with signals.active(context.redis, self.request.id or "", time.time()):
        found = recalling.recall(context, name, question, at)
    if touch and as_of is None and known_as_of is None and found.results:
        ids = [str(result.id) for result in found.results]
        self.request.touch_after = {"namespace": name, "ids": ids, "at": at.isoformat()}
    return answers.recalled(found)


@app.task(base=EbbTask, name="memory.touch", ignore_result=True)
def touch(ids: list[str], namespace: str, at: str) -> None:
    """Note that these facts were recalled, and have those regenerated that had faded."""
    touched = touching.touch(context, namespace, [UUID(id_) for id_ in ids], datetime.fromisoformat(at))
    if touched.faded and settings.regeneration_enabled:
        claimed = signals.claim_regeneration(context.redis, namespace, touched.faded)
        if claimed:
            regenerate.apply_async(kwargs={"namespace": namespace, "ids": [str(id_) for id_ in claimed]})


@app.task(base=EbbTask, bind=True, name="memory.reinforce")
def reinforce(
    self: Task,
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    boost: Any = DEFAULT_BOOST,
    now: Any = None,
) -> dict[str, Any]:
    """Strengthen one fact and confirm it; return its salience."""
    at = signals.first_seen(context.redis, self.request.id or "", instant(now))
    fact, name = intake.fact_id(id), intake.namespace_name(namespace)
    salience = touching.reinforce(context, name, fact, intake.share(boost, "boost"), at)
    if salience is None:
        raise InvalidInputError(f"id: no live fact {fact} is in namespace {name!r}; look for it with `recall`.")
    return {"id": str(fact), "salience": round(salience, 6)}


@app.task(base=EbbTask, name="memory.regenerate", ignore_result=True)
def regenerate(ids: list[str], namespace: str, now: Any = None) -> None:
    """Make the full vectors of facts that had faded and were used again."""
    try:
        regenerating.regenerate(context, namespace, [UUID(id_) for id_ in ids], instant(now))
    except EmbeddingError as error:
        log.warning("not regenerated until the next hit: %s", error)


@app.task(base=EbbTask, name="memory.stats")
def stats(namespace: Any = "default", now: Any = None) -> dict[str, Any]:
    """Return what a namespace holds, by tier, fidelity and decay class, and what is due."""
    return asdict(counting.stats(context, intake.namespace_name(namespace), instant(now)))


@app.task(base=EbbTask, name="memory.forecast")
def forecast(namespace: Any = "default", days: Any = 7, shown: Any = 3, now: Any = None) -> dict[str, Any]:
    """Return what passes will do on each of the coming days."""
    name, ahead = intake.namespace_name(namespace), intake.whole(days, "days", forecasting.MOST_DAYS)
    named = 0 if shown == 0 else intake.whole(shown, "shown", MOST_SHOWN)
    return answers.foreseen(forecasting.forecast(context, name, ahead, instant(now), named))


@app.task(base=EbbTask, name="memory.contradictions")
def list_contradictions(namespace: Any = "default", limit: Any = 100, now: Any = None) -> dict[str, Any]:
    """Return which remembered facts contradict each other."""
    name, most = intake.namespace_name(namespace), intake.whole(limit, "limit", MOST_RESULTS)
    return answers.contradicting(*contradictions.contradicting(context, name, instant(now), most))


@app.task(base=EbbTask, bind=True, name="memory.resolve")
def resolve(
    self: Task, ids: Any, namespace: Any = "default", keep: Any = None, both: bool = False, now: Any = None
) -> dict[str, Any]:
    """Settle a contradiction: one fact supersedes the others, or both are accepted."""
    at = signals.first_seen(context.redis, self.request.id or "", instant(now))
    given, name = list(dict.fromkeys(intake.fact_ids(ids, MOST_FACTS))), intake.namespace_name(namespace)
    if both and keep is None and len(given) == PAIR:
        contradictions.accept(context, name, given[0], given[1], at)
        return {"accepted": [str(id_) for id_ in given]}
    kept = None if keep is None else intake.fact_id(keep)
    others = [id_ for id_ in given if id_ != kept]
    if both or kept is None or not others:
        raise InvalidInputError("ids: give the fact to keep and those it supersedes, or two facts and accept both.")
    contradictions.keep(context, name, kept, others, at)
    return {"kept": str(kept), "superseded": [str(id_) for id_ in others]}


@app.task(base=EbbTask, name="memory.embed_pending", ignore_result=True)
def embed_pending(after: list[Any] | None = None) -> None:
    """Embed facts that still have no vector, batch by batch, one task at a time."""
    with signals.only_one(context.redis, "embed_pending", WORK_SECONDS * 2) as alone:
        if not alone:
            return
        place = (int(after[0]), UUID(after[1])) if after else embed.START
        rest = _walk(lambda at: embed.embed_pending(context, at, utc_now()), place)
    if rest is not None:
        embed_pending.apply_async(kwargs={"after": [rest[0], str(rest[1])]})


@app.task(base=EbbTask, bind=True, name="memory.prune_by_llm")
def prune_by_llm(
    self: Task, namespace: Any = "default", now: Any = None, run: Any = None, after: Any = None
) -> dict[str, Any]:
    """Have an LLM look for needless facts, if that is wanted; a task that follows goes on from there."""
    task_id, name = self.request.id or "", intake.namespace_name(namespace)
    at = signals.first_seen(context.redis, task_id, instant(now))
    own_run = uuid_of(task_id) if run is None else intake.fact_id(run)
    place = None if after is None else intake.fact_id(after)
    done = reviewing.review(context, name, own_run, at, place, time.monotonic() + REVIEW_SECONDS)
    if done.rest is not None:
        rest = {"namespace": name, "now": at.isoformat(), "run": str(own_run), "after": str(done.rest)}
        prune_by_llm.apply_async(kwargs=rest)
    return {"reviewed": done.reviewed, "forgotten": done.forgotten, "goes_on": done.rest is not None}


@app.task(base=EbbTask, name="memory.lexemes", ignore_result=True)
def lexemes() -> None:
    """Count the words of namespaces that grew."""
    for name in signals.take_grown(context.redis):
        search.count_lexemes(context, name, utc_now())


@app.task(base=EbbTask, name="memory.ann", ignore_result=True, soft_time_limit=7_000, time_limit=7_200)
def ann() -> None:
    """Give large namespaces a vector index of their own; a second delivery meanwhile finds it being built."""
    search.index_large_namespaces(context)


@app.task(base=EbbTask, name="memory.sweep_outbox", ignore_result=True)
def sweep_outbox() -> None:
    """Send accepted writes again whose messages must be lost."""
    now = time.time()
    for entry in outbox.older_than(context.redis, now - VISIBILITY_SECONDS - WORK_SECONDS):
        outbox.put(context.redis, outbox.Entry(entry.id, entry.task, entry.arguments, now))
        app.send_task(entry.task, kwargs=entry.arguments, task_id=entry.id)


def _store(
    task: Task, given: list[Any], namespace: Any, now: Any, *, touch: bool, classify: bool
) -> list[storing.Stored | InvalidInputError]:
    """Check and store facts; each gets an id from the task's if it has none, so that a second delivery is the same."""
    task_id = task.request.id or ""
    try:
        name = intake.namespace_name(namespace)
        at = signals.first_seen(context.redis, task_id, utc_now()) if now is None else instant(now)
        checked = [_check(fact, uuid5(uuid_of(task_id), str(i))) for i, fact in enumerate(given)]
        good = [fact for fact in checked if not isinstance(fact, InvalidInputError)]
        stored = iter(storing.store_many(context, name, good, at, touch=touch, classify=classify) if good else [])
        if good:
            signals.mark_grown(context.redis, name)
        outcomes = [fact if isinstance(fact, InvalidInputError) else next(stored) for fact in checked]
    except InvalidInputError:
        outbox.remove(context.redis, task_id)
        raise
    outbox.remove(context.redis, task_id)
    return outcomes


def _check(given: Any, id_: UUID) -> intake.NewFact | InvalidInputError:
    try:
        fact = intake.new_fact(given, settings.max_text)
    except InvalidInputError as error:
        return error
    return fact if fact.id else fact.model_copy(update={"id": id_})


def _walk(step: Callable[[embed.Place], embed.Place | None], place: embed.Place) -> embed.Place | None:
    """Go on step by step until the end or for 30 seconds; return where to go on, if anywhere."""
    until = time.monotonic() + WORK_SECONDS
    at: embed.Place | None = place
    try:
        while at is not None and time.monotonic() < until:
            at = step(at)
    except EmbeddingError as error:
        log.warning("facts still wait for their vectors: %s", error)
        return None
    return at


def instant(now: Any) -> datetime:
    """Return the instant that a task was given, or the present one."""
    return utc_now() if now is None else intake.instant(now, "now")


def uuid_of(task_id: str) -> UUID:
    """Return a task's id as UUID, or one that follows from it."""
    try:
        return UUID(task_id)
    except ValueError:
        return uuid5(NAMESPACE_OID, task_id)
