"""The tasks by which doors learn what only workers know: who may come in, and how the system is."""

from typing import Any

from workers import validation
from workers.admin import keys
from workers.admin import system as checking
from workers.admin import system as measuring
from workers.admin import system as queueing
from workers.celery import app
from workers.coordination import signals
from workers.decay import forecast as forecasting
from workers.tasks.task import EbbTask, context, instant


@app.task(base=EbbTask, name="memory.publish_keys")
def publish_keys() -> dict[str, Any]:
    """Copy the API keys to where doors look them up."""
    return {"keys": keys.publish(context)}


@app.task(base=EbbTask, name="memory.measure")
def measure(now: Any = None) -> dict[str, Any]:
    """Return the database's figures, and keep them for who asks next."""
    figures = measuring.measure(context, instant(now))
    signals.note_measured(context.redis, figures)
    return figures


@app.task(base=EbbTask, name="memory.system_course")
def system_course(days: Any = 14, now: Any = None) -> dict[str, Any]:
    """Return how long the queues were and how quickly writes could be read over so many days."""
    return queueing.system_course(context, validation.whole(days, "days", forecasting.MOST_DAYS), instant(now))


@app.task(base=EbbTask, name="memory.health")
def health() -> dict[str, Any]:
    """Return whether the database and the embedder are well."""
    return checking.health(context)
