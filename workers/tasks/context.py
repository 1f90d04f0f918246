"""The task of showing an agent what it remembers: memory.context."""

from typing import Any, get_args

from workers import validation
from workers.celery import app, settings
from workers.coordination import signals
from workers.core.injection import Format
from workers.memory import context as injecting
from workers.memory.recall import Preferences, Question
from workers.tasks import answers
from workers.tasks.recall import RecallTask
from workers.tasks.task import MOST_RESULTS, context, instant

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
    name = validation.namespace_name(namespace)
    question = Question(
        text=validation.query_text(query, settings.max_text),
        limit=validation.whole(limit, "limit", MOST_RESULTS),
        tag=validation.optional_tag(tag),
        category=validation.optional_name(category, "category"),
        kind=validation.optional_name(kind, "kind"),
        explain=validation.flag(explain, "explain"),
        documents=validation.flag(documents, "documents") or kind == "chunk",
        min_similarity=-1.0 if min_similarity is None else validation.share(min_similarity, "min_similarity"),
        preferences=_preferences(prefer_long_term, use_importance_recency),
        entities=_entities(entity_lookup, entities),
    )
    shape = _shape(max_tokens, format, order, summary_threshold)
    wanted = validation.flag(touch, "touch")
    with signals.active(context.redis, self.request.id or "", context.seconds()):
        done = injecting.inject(context, name, question, shape, at)
    if wanted:
        self.touch_afterwards(name, (line.fact.id for line in done.lines), at)
    return answers.injected(done)


def _shape(max_tokens: Any, form: Any, order: Any, summary_threshold: Any) -> injecting.Shape:
    most = settings.context_tokens if max_tokens is None else validation.whole(max_tokens, "max_tokens", MOST_TOKENS)
    threshold = settings.summary_threshold
    if summary_threshold is not None:
        threshold = validation.whole(summary_threshold, "summary_threshold", settings.max_text)
    return injecting.Shape(
        form=settings.context_format if form is None else validation.choice(form, "format", get_args(Format)),
        most_tokens=most,
        stable=(settings.context_order if order is None else validation.choice(order, "order", ORDERS)) == "stable",
        summary_threshold=threshold,
    )


def _entities(lookup: Any, entities: Any) -> tuple[str, ...] | None:
    """Return the entities to look up: none if that is switched off, those of the list, or all that facts are about."""
    listed = validation.names(settings.entities if entities is None else entities, "entities", MOST_ENTITIES)
    wanted = settings.entity_lookup if lookup is None else validation.flag(lookup, "entity_lookup")
    return (listed or None) if wanted else ()


def _preferences(long_term: Any, importance_recency: Any) -> Preferences:
    recency = settings.importance_recency
    if importance_recency is not None:
        recency = validation.flag(importance_recency, "use_importance_recency")
    return Preferences(
        long_term=settings.prefer_long_term if long_term is None else validation.flag(long_term, "prefer_long_term"),
        importance_recency=recency,
    )
