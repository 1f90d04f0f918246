"""Once: what a late repeat would undo or do again is done by the first delivery of a task alone."""

from collections.abc import Callable
from typing import Any

from workers.coordination import signals
from workers.errors import UnavailableError
from workers.tasks.task import context

MOST_SECONDS = 15.0
"""Whoever dies at it makes room after this; longer than it takes, shorter than a task's patience."""


def once(task_id: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do something for a task, and return the answer; a later delivery, or one meanwhile, gets the first one's.

    A link that was told and then removed must not come back with a late repeat of the first message.

    Raises:
        UnavailableError: another delivery is at it at this very moment.
    """
    with signals.only_one(context.redis, f"once:{task_id}", MOST_SECONDS) as alone:
        if not alone:
            raise UnavailableError("Another delivery of this task is at work: try again.")
        answer = signals.done_before(context.redis, task_id)
        if answer is None:
            answer = act()
            signals.note_done(context.redis, task_id, answer)
    return answer
