"""The task of showing an agent what it remembers: memory.context."""

from typing import Any, TypeVar

from ebb.contract import recall as contract

from workers.celery import settings
from workers.memory import context as injecting
from workers.memory.recall import Preferences, Question
from workers.tasks import answers
from workers.tasks.operation import task_of
from workers.tasks.recall import LIMITS, RecallTask
from workers.tasks.task import context
from workers.validation.facts import own_words

T = TypeVar("T")


@task_of(contract.CONTEXT, contract.Context, **LIMITS)
def inject(self: RecallTask, asked: contract.Context) -> dict[str, Any]:
    """Return what fits a prompt, as a block of text to put before it; only what is in it is touched afterwards."""
    at = asked.now or context.now()
    question = Question(
        text=own_words(asked.query, "query", settings.max_text),
        limit=asked.limit,
        filters=asked,
        explain=asked.explain,
        min_similarity=-1.0 if asked.min_similarity is None else asked.min_similarity,
        preferences=Preferences(
            long_term=_chosen(asked.prefer_long_term, settings.prefer_long_term),
            importance_recency=_chosen(asked.use_importance_recency, settings.importance_recency),
        ),
        entities=_entities(asked),
    )
    with self.active():
        done = injecting.inject(context, asked.namespace, question, _shape(asked), at)
    if asked.touch:
        self.touch_afterwards(asked.namespace, (line.fact.id for line in done.lines), at)
    return answers.injected(done)


def _shape(asked: contract.Context) -> injecting.Shape:
    return injecting.Shape(
        form=_chosen(asked.format, settings.context_format),
        most_tokens=_chosen(asked.max_tokens, settings.context_tokens),
        stable=_chosen(asked.order, settings.context_order) == "stable",
        summary_threshold=_chosen(asked.summary_threshold, settings.summary_threshold),
    )


def _entities(asked: contract.Context) -> tuple[str, ...] | None:
    """Return the entities to look up: none if that is switched off, those of the list, or all that facts are about."""
    named = settings.entities.split(",") if asked.entities is None else asked.entities
    listed = tuple(" ".join(name.split()) for name in named if name.strip())
    return (listed or None) if _chosen(asked.entity_lookup, settings.entity_lookup) else ()


def _chosen(given: T | None, otherwise: T) -> T:
    return otherwise if given is None else given
