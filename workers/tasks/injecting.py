"""The task of showing an agent what it remembers: memory.context."""

from typing import Any, get_args

from workers import intake
from workers.celery import app, settings
from workers.core.injection import Format
from workers.recall import Preferences, Question
from workers.storage import signals
from workers.tasks import answers
from workers.tasks.recalling import RecallTask
from workers.tasks.task import MOST_RESULTS, context, instant
from workers.telling import inject as injecting

MOST_TOKENS = 1_000_000
MOST_ENTITIES = 2_000
ORDERS = ("rank", "stable")


@app.task(base=RecallTask, bind=True, name="memory.context", soft_time_limit=8, time_limit=12, max_retries=2)
def inject(
    self: RecallTask,
    query: Any,
    namespace: Any = "default",
    limit: Any = 10,
    max_tokens: Any = None,
    format: Any = None,  # noqa: A002 - the contract's name
    order: Any = None,
    summary_threshold: Any = None,
    prefer_long_term: Any = None,
    use_importance_recency: Any = None,
    min_similarity: Any = None,
    entity_lookup: Any = None,
    entities: Any = None,
    documents: Any = False,
    tag: Any = None,
    category: Any = None,
    kind: Any = None,
    explain: Any = False,
    touch: Any = True,
    now: Any = None,
) -> dict[str, Any]:
    """Return what fits a prompt, as a block of text to put before it; only what is in it is touched afterwards.

    Whatever is not given is as the settings have it.
    """
    at = instant(now)
    name = intake.namespace_name(namespace)
    question = Question(
        text=intake.query_text(query, settings.max_text),
        limit=intake.whole(limit, "limit", MOST_RESULTS),
        tag=intake.optional_tag(tag),
        category=intake.optional_name(category, "category"),
        kind=intake.optional_name(kind, "kind"),
        explain=intake.flag(explain, "explain"),
        documents=intake.flag(documents, "documents") or kind == "chunk",
        min_similarity=-1.0 if min_similarity is None else intake.share(min_similarity, "min_similarity"),
        preferences=_preferences(prefer_long_term, use_importance_recency),
        entities=_entities(entity_lookup, entities),
    )
    shape = _shape(max_tokens, format, order, summary_threshold)
    wanted = intake.flag(touch, "touch")
    with signals.active(context.redis, self.request.id or "", context.seconds()):
        done = injecting.inject(context, name, question, shape, at)
    if wanted:
        self.touch_afterwards(name, (line.fact.id for line in done.lines), at)
    return answers.injected(done)


def _shape(max_tokens: Any, form: Any, order: Any, summary_threshold: Any) -> injecting.Shape:
    most = settings.context_tokens if max_tokens is None else intake.whole(max_tokens, "max_tokens", MOST_TOKENS)
    threshold = settings.summary_threshold
    if summary_threshold is not None:
        threshold = intake.whole(summary_threshold, "summary_threshold", settings.max_text)
    return injecting.Shape(
        form=settings.context_format if form is None else intake.choice(form, "format", get_args(Format)),
        most_tokens=most,
        stable=(settings.context_order if order is None else intake.choice(order, "order", ORDERS)) == "stable",
        summary_threshold=threshold,
    )


def _entities(lookup: Any, entities: Any) -> tuple[str, ...] | None:
    """Return the entities to look up: none if that is switched off, those of the list, or all that facts are about."""
    listed = intake.names(settings.entities if entities is None else entities, "entities", MOST_ENTITIES)
    wanted = settings.entity_lookup if lookup is None else intake.flag(lookup, "entity_lookup")
    return (listed or None) if wanted else ()


def _preferences(long_term: Any, importance_recency: Any) -> Preferences:
    recency = settings.importance_recency
    if importance_recency is not None:
        recency = intake.flag(importance_recency, "use_importance_recency")
    return Preferences(
        long_term=settings.prefer_long_term if long_term is None else intake.flag(long_term, "prefer_long_term"),
        importance_recency=recency,
    )
