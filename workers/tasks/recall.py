"""Tasks of recall, lookup and context, and their follow-ups: touch and regenerate."""

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID, uuid4, uuid5

import psycopg
from celery import Task
from celery.exceptions import SoftTimeLimitExceeded
from ebb.contract import recall as contract
from ebb.contract.faults import show
from ebb.contract.operation import SHARED, Params, Scoped, Timed
from ebb.contract.values import FactIds, Flag, Instant, Namespace
from pydantic import Field
from redis.exceptions import RedisError

from workers.celery import settings
from workers.coordination import contexts, signals, touches
from workers.coordination.timings import timed
from workers.core import cost, repeats
from workers.errors import (
    EmbeddingError,
    InvalidInputError,
    NoConnectionError,
    NotFoundError,
    OvertakenError,
    apply_to_valid,
)
from workers.memory import context as injecting
from workers.memory import embed as regenerating
from workers.memory import recall as finding
from workers.memory import restore as restoring
from workers.memory import touch as touching
from workers.memory.recall import Preferences, Question, Recalled, Result
from workers.tasks import answers
from workers.tasks.bulk import SMALL, LaneTask, take_slot
from workers.tasks.operation import Facts, internal, task_of, validated
from workers.tasks.task import FOLLOW_UP, bounded, context, use_of, uuid_of, write_instant
from workers.validation.facts import own_words

log = logging.getLogger(__name__)

REFUSED = (OvertakenError, psycopg.IntegrityError, psycopg.DataError, ValueError, ArithmeticError)
"""Errors of a touch that a retry would not change, or that two touches of one batch cause."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from or while handling."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class RecallTask(LaneTask):
    """A task that sends the touch of its results after its answer."""

    # A caller waits, so a quick error is better than a retry.
    dont_autoretry_for = (*LaneTask.dont_autoretry_for, NoConnectionError)

    noted_until = 0.0

    # Limits the answer's representation for Flower, which costs a notable part of a recall.
    resultrepr_maxsize = 200

    def retry(self, *args: Any, exc: BaseException | None = None, **options: Any) -> Any:
        """Retry, unless the time limit passed: psycopg reports a statement that it broke off as a lost connection.

        Raises:
            SoftTimeLimitExceeded: the time limit passed.
        """
        if any(isinstance(one, SoftTimeLimitExceeded) for one in causes(exc)):
            raise SoftTimeLimitExceeded from None
        return super().retry(*args, exc=exc, **options)

    def touch_afterwards(
        self, namespace: str, shown: Sequence[Result], at: datetime, question: str, *, deep: bool = False,
        uncertain: Collection[tuple[str, UUID]] = (),
    ) -> None:  # fmt: skip
        """Record on this request the results to touch, by namespace, and the question; not the `uncertain` results."""
        returned: dict[str, list[str]] = {} if shown else {namespace: []}
        certain: dict[str, list[str]] = defaultdict(list)
        for one in shown:
            name = one.namespace or namespace
            returned.setdefault(name, []).append(str(one.id))
            if (name, one.id) not in uncertain:
                certain[name].append(str(one.id))
        for name, ids in returned.items():
            given = contexts.ShownContext(at.timestamp(), self.name, question, ids)
            self._noted("given_out").append((name, given))
        common = {"at": at.isoformat(), "question": repeats.key(question)} | ({"deep": True} if deep else {})
        self._noted("touch_after").extend({"namespace": name, "ids": ids} | common for name, ids in certain.items())

    def _noted(self, name: str) -> list[Any]:
        """Return a list on this request, which is empty at first."""
        return self.request.__dict__.setdefault(name, [])

    def admit(self, asked: Timed, questions: Sequence[contract.Recall | contract.Context]) -> None:
        """Check the cost of questions, and have passes yield; expensive ones take a slot of the bulk lane, or wait.

        Raises:
            InvalidInputError: the total cost exceeds EBB_MAX_RECALL_COST.
        """
        own, most = sum(map(_cost, questions)), settings.max_recall_cost
        if own > most:
            raise InvalidInputError(
                _too_costly(questions[0], own, most)
                if len(questions) == 1
                else f"queries: these cost {own} together, and EBB_MAX_RECALL_COST={most} is the most; ask fewer."
            )
        if own > cost.LIGHT:
            take_slot(self, asked, asked.namespace)
        self.let_passes_yield()

    def let_passes_yield(self) -> None:
        """Have passes see that a user waits; noted twice as often as the note expires, not for each recall."""
        now = time.monotonic()
        if now >= self.noted_until:
            self.noted_until = now + signals.RECALLED_MS / 2_000
            with suppress(RedisError):  # then a pass does not yield
                signals.note_recall(context.redis)

    def on_success(self, _result: Any, task_id: str, _args: Any, _kwargs: Any) -> None:
        """Send the recorded touches; a redelivery sends them with the same ids."""
        for place, arguments in enumerate(self.request.get("touch_after") or ()):
            at = signals.first_seen(context.redis, task_id, datetime.fromisoformat(arguments["at"]))
            use = str(uuid5(uuid_of(task_id), f"touch {place}" if place else "touch"))
            _send_touch(arguments | {"at": at.isoformat()}, use)
        for name, given in self.request.get("given_out") or ():
            contexts.note(context.redis, name, given, settings.last_contexts_hours)


def _send_touch(arguments: dict[str, Any], use: str) -> None:
    """Send a touch: together with others of its namespace, unless it is large or restores facts."""
    namespace, ids = arguments["namespace"], arguments["ids"]
    if arguments.get("deep") or len(ids) > SMALL:
        touch.apply_async(kwargs=arguments, task_id=use)
    elif touches.add(context.redis, namespace, touches.Waiting(use, ids, arguments["at"], arguments["question"])):
        record_touches.apply_async(kwargs={"namespace": namespace})


def _cost(asked: contract.Recall | contract.Context) -> int:
    size = len(asked.query.encode())
    return cost.recall_cost(asked.limit, size, explain=asked.explain) * len(asked.namespaces or "1")


def _too_costly(asked: contract.Recall | contract.Context, own: int, most: int) -> str:
    limit, size, explain = asked.limit, len(asked.query.encode()), asked.explain
    facts = cost.most_facts(most, size, explain=explain) // len(asked.namespaces or "1")
    ways = [f"for at most {facts} facts"] * bool(facts) + ["with a shorter query"] + ["without `explain`"] * explain
    return (
        f"limit: {limit} facts{', each explained,' * explain} for a query of {size} bytes cost {own}, and "
        f"EBB_MAX_RECALL_COST={most} is the most; ask {', or '.join(ways)}."
    )


LIMITS: dict[str, Any] = {
    "from_replica": True,
    "base": RecallTask,
    "soft_time_limit": 8,
    "time_limit": 12,
    "max_retries": 2,
}
"""Options of tasks with a waiting caller."""


@task_of(contract.RECALL, contract.Recall, **LIMITS)
def recall(self: RecallTask, asked: contract.Recall) -> dict[str, Any]:
    """Return the facts that best match a question, and send their touch.

    Questions about the past, and those with `why`, touch nothing.
    """
    at, question = asked.now or context.now(), _recall_question(asked)
    self.admit(asked, [asked])
    with timed("recall all"):
        found = finding.recall(context, asked.namespace, question, at)
    return _answer(self, asked, found, at)


@task_of(contract.RECALL_MANY, contract.RecallMany, **LIMITS | {"soft_time_limit": 35, "time_limit": 40})
def recall_many(self: RecallTask, asked: contract.RecallMany) -> dict[str, Any]:
    """Return the facts that best match each of many questions, and send their touch."""
    at = asked.now or context.now()

    def find(good: list[tuple[contract.Recall, Question]]) -> list[dict[str, Any] | InvalidInputError]:
        each = [one for one, _ in good]
        self.admit(asked, each)
        with timed("recall all"):
            found = finding.recall_many(context, asked.namespace, [question for _, question in good], at)
        answered = zip(each, found, strict=True)
        return [this if isinstance(this, NotFoundError) else _answer(self, one, this, at) for one, this in answered]

    every = apply_to_valid([_checked(one, asked.namespace) for one in asked.queries], find)
    return {
        "answers": [
            {"error": str(one), "index": place} if isinstance(one, InvalidInputError) else one
            for place, one in enumerate(every)
        ]
    }


def _checked(given: Any, namespace: str) -> tuple[contract.Recall, Question] | InvalidInputError:
    """Return one of many questions with the common namespace, or the error."""
    if not isinstance(given, dict) or not given.keys().isdisjoint(SHARED):
        return InvalidInputError(
            f"A question is a text, or an object with `query`, without `namespace` and `now`; given {show(given)}."
        )
    try:
        names = contract.RECALL.parameters
        asked = validated(contract.RECALL.name, contract.Recall, names, (), given | {"namespace": namespace})
        return asked, _recall_question(asked)
    except InvalidInputError as error:
        return error


def _answer(task: RecallTask, asked: contract.Recall, found: Recalled, at: datetime) -> dict[str, Any]:
    """Return the answer to a question, and have its results touched."""
    if asked.touch and asked.why is None and not asked.is_past:
        task.touch_afterwards(
            asked.namespace, found.results, at, asked.query, deep=asked.deep, uncertain=found.uncertain
        )
    return answers.recalled(found)


def _recall_question(asked: contract.Recall) -> Question:
    measures = not asked.touch or asked.why is not None
    return _question(asked, as_of=asked.as_of, known_as_of=asked.known_as_of, why=asked.why, measures=measures)


def _question(asked: contract.Recall | contract.Context, **more: Any) -> Question:
    return Question(
        text=own_words(asked.query, "query", settings.max_text),
        limit=asked.limit,
        filters=asked,
        explain=asked.explain,
        min_relevance=asked.min_relevance,
        deep=asked.deep,
        namespaces=tuple(asked.namespaces or ()),
        **more,
    )


@task_of(contract.LOOKUP, contract.Lookup, **LIMITS)
def lookup(self: RecallTask, asked: contract.Lookup) -> dict[str, Any]:
    """Return facts about an entity, or one key of it, and send their touch."""
    at = asked.now or context.now()
    self.let_passes_yield()
    found, rest = finding.lookup(context, asked, at)
    if asked.touch and not asked.is_past:
        self.touch_afterwards(asked.namespace, found, at, f"{asked.entity}\n{asked.key or ''}")
    return answers.looked_up(found) | {"next": rest}


class Touched(Params):
    """Facts that were recalled at an instant; `question` is the key of the question.

    With `deep`, facts that decay had forgotten are restored.
    """

    ids: FactIds
    at: Instant
    namespace: Namespace
    question: Annotated[int, Field(ge=0, le=repeats.LATEST)] | None = None
    deep: Flag = False


@internal("memory.touch", Touched, base=LaneTask, ignore_result=True, **FOLLOW_UP)
def touch(self: Task, asked: Touched) -> None:
    """Touch recalled facts, once for each task id, and send the regeneration of faded ones."""
    if len(asked.ids) > SMALL:
        take_slot(self, asked, asked.namespace)
    seen_at = write_instant(self, asked.at, refuse=False)
    revived, faded = restoring.revive(context, asked.namespace, asked.ids, seen_at) if asked.deep else ([], [])
    ids = [id_ for id_ in asked.ids if id_ not in revived]
    shown = touching.Shown(ids, seen_at, use_of(self) or uuid4(), asked.question)
    touched = touching.touch(context, asked.namespace, [shown])
    regenerate_used(asked.namespace, [*faded, *touched.faded])


@internal("memory.record_touches", Scoped, ignore_result=True)
def record_touches(_: Task, asked: Scoped) -> None:
    """Record the oldest touches that wait in a namespace, and send the next task if many more do."""
    waiting = touches.oldest(context.redis, asked.namespace)
    shown = [
        touching.Shown([UUID(id_) for id_ in one.ids], bounded(one.instant), UUID(one.use), one.question)
        for one in waiting.values()
    ]
    _record(asked.namespace, shown)
    if touches.finish(context.redis, asked.namespace, waiting):
        record_touches.apply_async(kwargs={"namespace": asked.namespace})


def _record(namespace: str, shown: Sequence[touching.Shown]) -> None:
    """Record touches together, or one by one if the database refuses them, so that the others are recorded."""
    try:
        faded = touching.touch(context, namespace, shown).faded if shown else []
    except REFUSED:
        if len(shown) == 1:
            log.exception("a use could not be recorded: %s", shown[0])
            return
        for one in shown:
            _record(namespace, [one])
        return
    regenerate_used(namespace, faded)


def send_touches() -> None:
    """Send the tasks that record touches, where they are due or were lost."""
    for namespace in touches.claim(context.redis):
        record_touches.apply_async(kwargs={"namespace": namespace})


def regenerate_used(namespace: str, faded: Sequence[UUID]) -> None:
    """Send the regeneration of used facts, once for several uses."""
    if faded and settings.regeneration_enabled:
        with signals.regenerating(context.redis, namespace, faded) as wanted:
            regenerate_soon(namespace, wanted)


def regenerate_soon(namespace: str, faded: Sequence[UUID]) -> None:
    """Send the regeneration of facts, if enabled."""
    if faded and settings.regeneration_enabled:
        regenerate.apply_async(kwargs={"namespace": namespace, "ids": [str(id_) for id_ in faded]})


@internal("memory.regenerate", Facts, ignore_result=True)
def regenerate(self: Task, asked: Facts) -> None:
    """Compute the full vectors of faded facts that were used."""
    try:
        regenerating.regenerate(context, asked.namespace, asked.ids, write_instant(self, asked.now, refuse=False))
    except EmbeddingError as error:
        log.warning("not regenerated until the next hit: %s", error)


T = TypeVar("T")


@task_of(contract.CONTEXT, contract.Context, **LIMITS)
def inject(self: RecallTask, asked: contract.Context) -> dict[str, Any]:
    """Return a block of memory for a prompt, and send the touch of the facts in it."""
    at = asked.now or context.now()
    question = _question(
        asked,
        min_similarity=-1.0 if asked.min_similarity is None else asked.min_similarity,
        preferences=Preferences(
            long_term=_chosen(asked.prefer_long_term, settings.prefer_long_term),
            importance_recency=_chosen(asked.use_importance_recency, settings.importance_recency),
        ),
        entities=_entities(asked),
        measures=not asked.touch,
    )
    self.admit(asked, [asked])
    done = injecting.inject(context, asked.namespace, question, _shape(asked), at)
    if asked.touch:
        shown = [line.fact for line in done.lines]
        uncertain = done.recalled.uncertain
        self.touch_afterwards(asked.namespace, shown, at, asked.query, deep=asked.deep, uncertain=uncertain)
    return answers.injected(done)


def _shape(asked: contract.Context) -> injecting.Shape:
    return injecting.Shape(
        form=_chosen(asked.format, settings.context_format),
        dates=_chosen(asked.dates, settings.context_dates),
        most_tokens=_chosen(asked.max_tokens, settings.context_tokens),
        stable=_chosen(asked.order, settings.context_order) == "stable",
        summary_threshold=_chosen(asked.summary_threshold, settings.summary_threshold),
    )


def _entities(asked: contract.Context) -> tuple[str, ...] | None:
    """Return the entities to look up: none if disabled (empty), the given list, or all (None)."""
    named = settings.entities.split(",") if asked.entities is None else asked.entities
    listed = tuple(" ".join(name.split()) for name in named if name.strip())
    return (listed or None) if _chosen(asked.entity_lookup, settings.entity_lookup) else ()


def _chosen(given: T | None, otherwise: T) -> T:
    return otherwise if given is None else given
