"""Deduplication: writes that are not idempotent are done by the first delivery of a task only."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from celery.exceptions import Ignore
from redis.exceptions import RedisError

from workers.coordination import signals
from workers.coordination.redis import RefusedError, explain
from workers.errors import NotFoundError, UnavailableError
from workers.tasks.task import EbbTask, context

LOCK_SECONDS = 15.0
"""Lock TTL: longer than a usual transaction, shorter than the retry window of a waiting delivery."""

RETRY_SECONDS = 3.0
GOES_ON = {"goes_on": True}
"""The stored answer of a task whose successor answers."""

NOT_FOUND = "not_found"


class OnceTask(EbbTask):
    """A task that runs once: later and concurrent deliveries return the answer of the first.

    For example, a redelivery must not add a link again that was removed meanwhile.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, unless an earlier delivery has."""
        task_id = self.request.id
        if not task_id:
            return self.run(*args, **kwargs)
        with ExitStack() as stack:
            try:
                alone = stack.enter_context(_alone(task_id))
                noted = signals.done_before(context.redis, task_id)
            except RedisError as error:
                raise self.retry(exc=UnavailableError(explain(error)), countdown=RETRY_SECONDS) from None
            if not alone:
                busy = UnavailableError("Another delivery of this task is at work: try again.")
                raise self.retry(exc=busy, countdown=RETRY_SECONDS)
            return self._done(task_id, *args, **kwargs) if noted is None else self._again(noted)

    def _done(self, task_id: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run the task and store its answer, unless it will be retried."""
        try:
            answer: dict[str, Any] = self.run(*args, **kwargs)
        except Ignore:
            note(task_id, GOES_ON)
            raise
        except NotFoundError as error:  # stored, as the fact may exist at a redelivery
            note(task_id, {NOT_FOUND: str(error)})
            raise
        note(task_id, answer)
        return answer

    def _again(self, noted: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the first delivery, or raise its error."""
        if NOT_FOUND in noted:
            raise NotFoundError(noted[NOT_FOUND])
        if noted == GOES_ON:
            self.send_event("task-succeeded", result="done before", runtime=0.0)
            raise Ignore
        return noted


@contextmanager
def _alone(task_id: str) -> Iterator[bool]:
    """Yield whether this delivery holds the task's lock; without a lock in a full Redis the task runs."""
    with ExitStack() as stack:
        alone = True
        with suppress(RefusedError):
            alone = stack.enter_context(signals.try_lock(context.redis, f"once:{task_id}", LOCK_SECONDS))
        yield alone


def note(task_id: str, answer: dict[str, Any]) -> None:
    """Store the answer of a task, if Redis accepts it."""
    with suppress(RedisError):
        signals.note_done(context.redis, task_id, answer)
