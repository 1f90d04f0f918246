"""The task by which the owner of a namespace sees and sets what holds in it."""

from typing import Any

from celery import Task

from workers import validation
from workers.celery import app
from workers.memory import namespace_settings
from workers.tasks.task import EbbTask, context, write_instant


@app.task(base=EbbTask, bind=True, name="memory.settings")
def settings(
    self: Task,
    namespace: Any = "default",
    set: Any = None,  # noqa: A002 - the contract's name
    unset: Any = None,
    now: Any = None,
) -> dict[str, Any]:
    """Set and unset settings of a namespace, by their paths; return all that hold, and what it has set itself."""
    name = validation.namespace_name(namespace)
    if not set and not unset:
        done = namespace_settings.settings_of(context, name)
    else:
        at = write_instant(self, now)
        done = namespace_settings.change(context, name, set, unset, at)
    return {"settings": done.settings, "own": done.own, "changed": done.changed}
