"""The base of every task: retries while a server is unavailable, the instant of a write, ids and deduplication."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import psycopg
from celery import Task
from celery.exceptions import Ignore
from celery.states import FAILURE, SUCCESS
from celery.worker.request import Request
from ebb.contract.operation import Timed
from kombu.exceptions import OperationalError as SendingError
from psycopg_pool import PoolTimeout
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from workers import clock, redaction
from workers.celery import app, settings
from workers.clock import MOST_AHEAD, MOST_BEHIND, within_bounds
from workers.context import Context
from workers.coordination import outbox, signals, timings
from workers.coordination.redis import RefusedError, explain, insist, is_refusal
from workers.core.confidence import DAY
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.queues import LSN, SENT_AT, VISIBILITY_SECONDS
from workers.storage import replicas
from workers.tasks import callbacks

log = logging.getLogger(__name__)

WORK_SECONDS = 30.0
"""Time after which a long task hands over to a successor."""

HOURS: dict[str, Any] = {"soft_time_limit": 7_000, "time_limit": 7_200}
"""Time limits of tasks that may process a whole large database."""

FOLLOW_UP: dict[str, Any] = {"max_retries": 20_000}
"""Options of a task that only another task sends, once: it is tried again for about a day."""

context = Context(settings)

STORES = (
    "memory.store", "memory.store_many", "memory.remember", "memory.bring_back", "memory.index", "memory.upload",
    "memory.put_item", "memory.put_items",
)  # fmt: skip
"""The tasks that store texts; the time until these can be read is measured."""

BEGAN = "ebb_began"
"""Name in a request of when this delivery began, by the monotonic clock."""

EARLY = "ebb_early"
"""Name in a request of the seconds until it is due, if it must not wait for that long."""


class EbbRequest(Request):  # type: ignore[misc]  # Celery comes without types
    """A request that is dropped after its caller's deadline without revoking the task's id, and hides its text.

    Celery would revoke the id for hours, but Ebb's clients send a write again with the same id. Other programs are
    answered that it expired. Neither events nor the worker's list of requests contain texts of facts. Deadlines and the
    instant at which it is due are by Redis' clock.
    """

    is_abandoned = False
    _eta: datetime | None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._argsrepr, self._kwargsrepr = redaction.arguments(self._args, self._kwargs)
        if self._eta is not None:
            self._eta = self._due(self._eta)

    def _due(self, eta: datetime) -> datetime | None:
        """Return when it is due by this machine's clock, or None for now.

        Redis would deliver it again and again while it waits for longer than the visibility timeout: its task does not
        wait, but says so. Another try is never refused.
        """
        left = clock.wait(eta, self.request_dict.get(clock.AFTER), app.server_clock)
        if left is None:
            return eta
        if left > VISIBILITY_SECONDS and not self.request_dict.get("retries"):
            self.request_dict[EARLY] = left
        return datetime.now(UTC) + timedelta(seconds=left) if 0 < left <= VISIBILITY_SECONDS else None

    def info(self, safe: bool = False) -> dict[str, Any]:  # noqa: ARG002 - as Celery calls it
        """Return the report of a request without its arguments."""
        return dict(super().info(safe=True))

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002 - as Celery calls it
        """Send an event without texts of facts."""
        super().send_event(type, **redaction.event(fields))

    def maybe_expire(self) -> bool:
        """Return whether the caller's deadline has passed."""
        own = self.request_dict.get(clock.UNTIL)
        until = self.expires.isoformat() if own is None and self.expires is not None else own
        has_expired = until is not None and clock.has_passed(until, app.server_clock)
        self.is_abandoned = has_expired and own is not None
        return has_expired

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> None:
        """Record a failure, where Redis has room for the record, and settle the message."""
        with self._settled():
            super().on_failure(exc_info, send_failed_event, return_ok)

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """Record that a time limit has passed, where Redis has room for the record, and settle the message."""
        with self._settled():
            super().on_timeout(soft, timeout)

    @contextmanager
    def _settled(self) -> Iterator[None]:
        """Settle the message if Redis refuses to note how its task ended.

        Unsettled it would keep its place among those that the worker may hold, and with the last place the worker would
        wait for ever.
        """
        try:
            yield
        except ResponseError as error:
            if not is_refusal(error):
                raise
            log.warning("Redis refuses writes: the end of %s[%s] is not noted: %s", self.name, self.id, error)
            if not self.acknowledged:
                self.reject(requeue=False)

    @property
    def store_errors(self) -> bool:
        """Return whether a caller waits for the failure."""
        return bool(super().store_errors) and not self.is_abandoned


class EbbTask(Task):  # type: ignore[misc]  # Celery comes without types
    """A task that is retried while the database or Redis is unavailable; invalid input is an expected error."""

    Request = EbbRequest
    typing = False  # the contract validates arguments; an accepted write that is tried again is sent without any
    autoretry_for = (
        psycopg.OperationalError, psycopg.InterfaceError, UnavailableError,
        psycopg.errors.TransactionTimeout, psycopg.errors.IdleInTransactionSessionTimeout,
        RedisConnectionError, RedisTimeoutError, SendingError,
    )  # fmt: skip
    dont_autoretry_for: tuple[type[Exception], ...] = (psycopg.errors.QueryCanceled, PoolTimeout)
    max_retries = 6
    default_retry_delay = 1  # after a killed child; Celery's default exceeds the visibility timeout
    retry_backoff = 1
    retry_backoff_max = 8
    throws = (InvalidInputError,)

    def before_start(self, task_id: str, _args: Any, kwargs: Any) -> None:
        """Read the arguments of an accepted write from the outbox; refuse a message that was sent long before its time.

        Raises:
            InvalidInputError: it is not due for longer than Redis lets a worker hold it.
        """
        self.request.update({BEGAN: time.monotonic()})
        if (early := self.request.get(EARLY)) is not None:
            raise InvalidInputError(
                f"eta: {self.request.eta} is {early:.0f} seconds ahead, and at most {VISIBILITY_SECONDS} are allowed, "
                "since Redis would deliver the task again each time these have passed; send it when it is due."
            )
        namespace = self.request.get(outbox.HEADER)
        if namespace is not None:
            entry = self._accepted(str(namespace), task_id)
            kwargs.clear()  # Celery calls the task with this dictionary
            kwargs.update(entry.arguments)

    def retry(self, *args: Any, exc: BaseException | None = None, **options: Any) -> Any:
        """Retry, or raise `exc`, which says why, if the caller stops waiting before another try as long as this one."""
        now = time.monotonic()
        seconds = (options.get("countdown") or 0.0) + now - self.request.get(BEGAN, now)
        if exc is not None and clock.has_passed(self.request.get(clock.UNTIL), app.server_clock, seconds):
            raise exc
        return super().retry(*args, exc=exc, **options)

    def _accepted(self, namespace: str, task_id: str) -> outbox.Entry:
        """Return the outbox entry of a message; if there is none, the write has been done before."""
        with redis_needed(self):
            entry = outbox.find(context.redis, namespace, task_id)
        if entry is None:
            self.send_event("task-succeeded", result="done before", runtime=0.0)
            raise Ignore
        return entry

    def signature_from_request(self, request: Any = None, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Return the message of a retry, without the arguments of an accepted write."""
        own = self.request if request is None else request
        if kwargs is None and own.get(outbox.HEADER) is not None:
            kwargs = {}
        return super().signature_from_request(request, args, kwargs, **options)

    def after_return(self, status: str, retval: Any, task_id: str, *_: Any) -> None:
        """Remove an accepted write from the outbox once it is committed or refused, and record timings and failures."""
        self._record_timings(done=status == SUCCESS)
        if status == FAILURE and not isinstance(retval, InvalidInputError):
            with suppress(RedisError):
                signals.count(context.redis, signals.FAILURES, self.name)
        namespace = self.request.get(outbox.HEADER)
        if namespace is not None and (status == SUCCESS or isinstance(retval, InvalidInputError)):
            outbox.remove(context.redis, str(namespace), task_id)

    def on_failure(self, exc: Exception, _task_id: str, _args: Any, kwargs: Any, _einfo: Any) -> None:
        """Answer the caller of a successor with its failure, after which the same request works again.

        An accepted request that is refused leaves the outbox.
        """
        waits = kwargs.get("asked_by")
        if isinstance(waits, str) and waits:
            with suppress(RedisError):
                signals.drop_done(context.redis, waits)
                if isinstance(exc, InvalidInputError):
                    outbox.remove(context.redis, kwargs.get("namespace", outbox.DEFAULT), waits)
            callbacks.mark_as_failure(context.redis, waits, exc)

    def _record_timings(self, *, done: bool) -> None:
        laps, sent_at = timings.take(), self.request.get(SENT_AT)
        if done and sent_at is not None and self.name in STORES:
            laps.append((timings.WRITE, context.seconds() - sent_at))
        if laps:
            with suppress(RedisError):  # metrics are optional
                timings.observe(context.redis, laps)


@contextmanager
def redis_needed(task: Task) -> Iterator[None]:
    """Retry the task if Redis does not answer."""
    try:
        yield
    except RedisError as error:
        raise task.retry(exc=UnavailableError(explain(error)), countdown=1) from None


def with_lsn(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a write, with replicas including its position in the log, for later reads."""
    return answer | {LSN: replicas.token(context.database_url)} if context.replicas else answer


def write_instant(task: Task, now: datetime | None, *, refuse: bool = True) -> datetime:
    """Return the instant of a write; a redelivery gets that of the first delivery.

    A given `now` is accepted within `MOST_BEHIND` and `MOST_AHEAD` of the database's clock, and never lies ahead of it.
    Out of bounds, an accepted write and a follow-up task (`refuse` is false) count as of the database's clock, others
    are refused. EBB_TIME_TRAVEL lifts the bounds.

    Raises:
        InvalidInputError: `now` is out of bounds.
        UnavailableError: the database does not answer.
    """
    at = bounded(now or context.now(), refuse=refuse and task.request.get(outbox.HEADER) is None)
    return signals.first_seen(context.redis, task.request.id or "", at)


def instant(task: Task, asked: Timed, *, writes: bool) -> datetime:
    """Return the instant of an operation: as `write_instant` does if it writes, else any that is given."""
    return write_instant(task, asked.now) if writes else asked.now or context.now()


def bounded(given: datetime, *, refuse: bool = False) -> datetime:
    """Return an instant within the bounds of `write_instant`."""
    if settings.time_travel:
        return given
    clock = context.now()
    if within_bounds((given - clock).total_seconds()):
        return min(given, clock)
    if refuse:
        raise InvalidInputError(
            f"now: {given.isoformat()} is not allowed: the database's clock shows {clock.isoformat()}, and a write may "
            f"be dated at most {MOST_AHEAD:g} seconds ahead of it and {MOST_BEHIND / DAY:g} days behind it. "
            "Leave `now` out, use a dry run to look ahead, or set EBB_TIME_TRAVEL=true for a simulation."
        )
    return clock


def uuid_of(task_id: str) -> UUID:
    """Return a task's id as UUID, or a UUID derived from it."""
    try:
        return UUID(task_id)
    except ValueError:
        return uuid5(NAMESPACE_OID, task_id)


def use_of(task: Task) -> UUID | None:
    """Return the id that deduplicates the uses of a task; None outside a worker."""
    return uuid_of(task.request.id) if task.request.id else None


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
            alone = True  # without a lock in a full Redis
            try:
                with suppress(RefusedError):
                    alone = stack.enter_context(signals.try_lock(context.redis, f"once:{task_id}", LOCK_SECONDS))
                noted = signals.done_before(context.redis, task_id)
            except RedisError as error:
                raise self.retry(exc=UnavailableError(explain(error)), countdown=RETRY_SECONDS) from None
            if not alone:
                busy = UnavailableError("Another delivery of this task is at work: try again.")
                self.request.retries -= 1  # waiting is no try: the lock of a delivery that was killed expires
                try:
                    raise self.retry(exc=busy, countdown=RETRY_SECONDS)
                except UnavailableError:  # its caller stops waiting; those of the other one may go on
                    raise Ignore from None
            return self._done(task_id, *args, **kwargs) if noted is None else self._again(noted)

    def _done(self, task_id: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run the task and store its answer, unless it will be retried."""
        try:
            answer: dict[str, Any] = self.run(*args, **kwargs)
        except Ignore:
            self._note(task_id, GOES_ON)
            raise
        except NotFoundError as error:  # stored, as the fact may exist at a redelivery
            self._note(task_id, {NOT_FOUND: str(error)})
            raise
        self._note(task_id, answer)
        return answer

    def _note(self, task_id: str, answer: dict[str, Any]) -> None:
        """Store the answer before the caller gets it: a later delivery could undo what the caller did since."""
        with redis_needed(self):
            note(task_id, answer, (self.request.kwargs or {}).get("namespace", ""))

    def _again(self, noted: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the first delivery, or raise its error."""
        if NOT_FOUND in noted:
            raise NotFoundError(noted[NOT_FOUND])
        if noted == GOES_ON:
            self.send_event("task-succeeded", result="done before", runtime=0.0)
            raise Ignore
        return noted


def note(task_id: str, answer: dict[str, Any], namespace: str = "") -> None:
    """Store the answer of a task, unless Redis refuses it, or its successor was quicker with it."""
    with suppress(RefusedError):
        insist(lambda: signals.note_done(context.redis, task_id, answer, namespace, unless_done=answer == GOES_ON))
