"""The tasks that tell of one fact what people want to see: how it fades, and what it is linked with."""

from typing import Any

from workers import intake
from workers.celery import app
from workers.tasks.task import EbbTask, context, instant
from workers.telling import curve as drawing
from workers.telling import neighbours as asking

MOST_NEIGHBOURS = 100


@app.task(base=EbbTask, name="memory.curve")
def curve(
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Return how a fact faded, was used, and will fade."""
    return drawing.curve(context, intake.namespace_name(namespace), intake.fact_id(id), instant(now))


@app.task(base=EbbTask, name="memory.neighbours")
def neighbours(
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    most: Any = 20,
    now: Any = None,
) -> dict[str, Any]:
    """Return what a fact is linked with, by its strongest links, and what links these."""
    name, many = intake.namespace_name(namespace), intake.whole(most, "most", MOST_NEIGHBOURS)
    return asking.neighbours(context, name, intake.fact_id(id), many, instant(now))
