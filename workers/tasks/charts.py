"""The tasks that tell of one fact what people want to see: how it fades, and what it is linked with."""

from typing import Any

from workers import validation
from workers.celery import app
from workers.graph import links as asking
from workers.memory import curve as drawing
from workers.tasks.task import EbbTask, context, instant

MOST_NEIGHBOURS = 100


@app.task(base=EbbTask, name="memory.curve")
def curve(
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Return how a fact faded, was used, and will fade."""
    return drawing.curve(context, validation.namespace_name(namespace), validation.fact_id(id), instant(now))


@app.task(base=EbbTask, name="memory.neighbours")
def neighbours(
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    most: Any = 20,
    now: Any = None,
) -> dict[str, Any]:
    """Return what a fact is linked with, by its strongest links, and what links these."""
    name, many = validation.namespace_name(namespace), validation.whole(most, "most", MOST_NEIGHBOURS)
    return asking.neighbours(context, name, validation.fact_id(id), many, instant(now))
