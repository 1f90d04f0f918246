"""Once: a write that a late repeat would undo or do again is done by the first delivery of its task alone."""

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
"""Lock TTL: longer than a transaction usually takes, shorter than the retries of a delivery that waits for it."""

RETRY_SECONDS = 3.0
GOES_ON = {"goes_on": True}
"""What is noted of a task whose successor answers."""

NOT_FOUND = "not_found"


class OnceTask(EbbTask):
    """A task that is done once: later deliveries, and one meanwhile, get the answer of the first.

    A link that was stored and then removed must not come back with a late repeat of the first message.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, unless an earlier delivery did."""
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
        """Run the task, and note how it ended; what is tried again has not ended."""
        try:
            answer: dict[str, Any] = self.run(*args, **kwargs)
        except Ignore:
            note(task_id, GOES_ON)
            raise
        except NotFoundError as error:  # what is not there may be there when a repeat comes
            note(task_id, {NOT_FOUND: str(error)})
            raise
        note(task_id, answer)
        return answer

    def _again(self, noted: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the first delivery, or end as it did."""
        if NOT_FOUND in noted:
            raise NotFoundError(noted[NOT_FOUND])
        if noted == GOES_ON:
            self.send_event("task-succeeded", result="done before", runtime=0.0)
            raise Ignore
        return noted


@contextmanager
def _alone(task_id: str) -> Iterator[bool]:
    """Give whether no other delivery of a task is at work; a full Redis, where none can note that, stops no task."""
    with ExitStack() as stack:
        alone = True
        with suppress(RefusedError):
            alone = stack.enter_context(signals.only_one(context.redis, f"once:{task_id}", LOCK_SECONDS))
        yield alone


def note(task_id: str, answer: dict[str, Any]) -> None:
    """Note the answer of a task; where Redis does not take that, the task is done all the same."""
    with suppress(RedisError):
        signals.note_done(context.redis, task_id, answer)
