"""Celery's worker, its consumer, and beat: they shut down reliably, and events are published in batches."""

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dbm import dumb
from pathlib import Path
from shelve import Shelf
from types import FrameType
from typing import Any

from celery.apps import beat, worker
from celery.beat import PersistentScheduler, ScheduleEntry, Service
from celery.events.dispatcher import EventDispatcher
from celery.exceptions import CPendingDeprecationWarning, InvalidTaskError
from celery.platforms import EX_FAILURE, signals
from celery.worker import consumer, state
from kombu.exceptions import ContentDisallowed
from redis.exceptions import RedisError, ResponseError

log = logging.getLogger(__name__)

AHEAD_SECONDS = 5.0
"""Smaller corrections of the clock change nothing."""

REFUSED_SECONDS = 1.0
"""Pause before a Redis that refused a command is asked again."""

SECONDS_TO_STOP = 20.0
"""Longer than a soft shutdown; tasks that children have not finished by then are delivered again."""


class Worker(worker.Worker):  # type: ignore[misc]  # Celery comes without types
    """Celery's worker, whose shutdown is bounded, except a warm one, which waits until all tasks have finished.

    Closing channels may wait for ever if the broker connection is lost during a reconnect, and joining the pool if a
    child was killed while it wrote a result: the process would neither work nor exit.
    """

    def stop(self, in_sighandler: bool = False, exitcode: int | None = None) -> None:
        """Shut down; after a failure the process is ended if that takes too long."""
        if exitcode == EX_FAILURE and state.should_stop is None:  # Ctrl-C has the same exit code
            _end_soon()
        super().stop(in_sighandler=in_sighandler, exitcode=exitcode)

    def wait_for_soft_shutdown(self) -> None:
        """Begin a cold shutdown; the process is ended if that takes too long."""
        _end_soon()
        super().wait_for_soft_shutdown()

    def stats(self) -> dict[str, Any]:
        """Return what Flower shows of this worker, without the password of Sentinels."""
        found: dict[str, Any] = super().stats()
        if isinstance(broker := found["broker"], dict):  # else there is no connection
            shown = {name: of for name, of in broker["transport_options"].items() if name != "sentinel_kwargs"}
            found["broker"] = broker | {"transport_options": shown}
        return found


def _end_soon() -> None:
    """End this process, and with it its children, if it still exists after `SECONDS_TO_STOP`."""
    last = threading.Timer(SECONDS_TO_STOP, _end)
    last.daemon = True
    last.start()


def _end() -> None:
    log.critical("the worker did not stop within %g s: it ends now", SECONDS_TO_STOP)
    logging.shutdown()
    os._exit(EX_FAILURE)


class Beat(beat.Beat):  # type: ignore[misc]  # Celery comes without types
    """Celery beat that shuts down reliably on SIGTERM.

    Python drops an exception raised by a signal handler while a weak reference is cleared, as after each import.
    Celery's own beat would then continue, with a closed schedule, until it is killed.
    """

    def install_sync_handler(self, service: Service) -> None:
        """Stop the service on SIGTERM and SIGINT; it saves its schedule as it ends."""

        def end(_number: int, _frame: FrameType | None) -> None:
            service.stop()
            raise SystemExit

        signals.update(SIGTERM=end, SIGINT=end)


class Scheduler(PersistentScheduler):  # type: ignore[misc]  # Celery comes without types
    """Celery's scheduler, which goes on at once after the clock was set back, and with a damaged schedule file.

    Celery alone waits until the clock reaches the last runs, which its schedule file keeps across restarts. It ends
    when a disk is full, and where that or a failure of power has cut off the file, at each start again.

    Celery's format follows the Python that runs it. Those of Debian have one that writes only as it is closed: where
    beat is killed, it is lost.
    """

    known_suffixes = (".dat", ".dir", ".bak")

    def _open_schedule(self) -> Shelf[Any]:
        """Open the schedule file, in a format that every Python has."""
        file = dumb.open(self.schedule_filename, "c")  # noqa: SIM115 - until beat ends
        return Shelf(file, writeback=True)  # type: ignore[arg-type]  # its keys may be strings, too

    def _remove_db(self) -> None:
        """Move damaged files away, once: the path may be that of other files, given by mistake."""
        for file in (Path(self.schedule_filename + suffix) for suffix in self.known_suffixes):
            aside = Path(f"{file}.damaged")
            if file.is_file():  # not a folder
                file.unlink() if aside.exists() else file.rename(aside)

    def setup_schedule(self) -> None:
        """Read when tasks were last sent; if that fails, start without it, as the first time."""
        try:
            super().setup_schedule()
        except Exception as error:  # noqa: BLE001 - whatever unpickling raises
            log.warning("the schedule file %s is damaged, and is written again: %r", self.schedule_filename, error)
            with suppress(Exception):
                self._store.close()  # else it would write its index later
            try:
                self._remove_db()
                super().setup_schedule()
            except Exception as fault:  # noqa: BLE001 - whatever stands in the way
                file = self.schedule_filename
                raise SystemExit(f"ebb: The schedule file {file} cannot be used: {fault}.") from None

    def sync(self) -> None:
        """Write when tasks were last sent; where that fails, as on a full disk, try again at the next time."""
        try:
            super().sync()
        except OSError as error:
            self._store.writeback = True  # which shelve has left off
            log.warning("the schedule file %s cannot be written: %s", self.schedule_filename, error)

    def close(self) -> None:
        """Close the schedule file, which is written once more."""
        with suppress(OSError):  # `sync` has reported it
            super().close()

    def tick(self, *args: Any, **options: Any) -> float:
        """Send a due task, if any; return the seconds until the next look."""
        ahead = [entry for entry in self.schedule.values() if _seconds_ahead(entry) > AHEAD_SECONDS]
        if ahead:
            first = max(entry.last_run_at for entry in ahead)
            log.warning("beat's clock was set back from %s or later; tasks are scheduled by its present time", first)
            for entry in ahead:
                entry.last_run_at = entry.default_now()
            self._heap = None
        return float(super().tick(*args, **options))


def _seconds_ahead(entry: ScheduleEntry) -> float:
    """Return how far the last run of an entry is in the future, also within the hour that comes twice in autumn."""
    return float(entry.last_run_at.timestamp() - entry.default_now().timestamp())


class Dispatcher(EventDispatcher):  # type: ignore[misc]  # Celery comes without types
    """Celery's sender of events, without its retries.

    With them a heartbeat waits until Redis is back, in the thread of the worker's loop, which then notices no signal.
    """

    def send(self, *args: Any, **options: Any) -> Any:
        """Send an event once; if Redis is away, it is sent after the next connection."""
        return super().send(*args, **options | {"retry": False})


EVENTS_SECONDS = 0.2
"""Maximum delay of events in Flower: publishing each at once took two fifths of the CPU of an empty task."""


class Consumer(consumer.Consumer):  # type: ignore[misc]  # Celery comes without types
    """Celery's consumer, which otherwise publishes events in the next round of its loop."""

    next_flush = 0.0

    def on_send_event_buffered(self) -> None:
        """Schedule publishing the buffered events; a timer lost with a connection is replaced."""
        now = time.monotonic()
        if self.hub and now >= self.next_flush:
            self.next_flush = now + EVENTS_SECONDS
            self.hub.call_later(EVENTS_SECONDS, self._flush_events)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Connect again; to a Redis that answers, but refuses, after a pause."""
        with warnings.catch_warnings():  # of Celery, about a setting that Ebb leaves as it is: tasks may finish
            warnings.simplefilter("ignore", CPendingDeprecationWarning)
            super().on_connection_error_after_connected(exc)
        if isinstance(exc, ResponseError):
            log.warning("no message can be taken, because Redis refuses that: %s", exc)
            time.sleep(REFUSED_SECONDS)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Return Celery's handler of messages, without those that it could not take: they would end the worker."""
        handle: Callable[[Any], Any] = super().create_task_handler(*args, **options)

        def on_task_received(message: Any) -> Any:
            try:
                fault = fault_of(message.headers, message.payload)
            except ContentDisallowed as error:
                return self.on_invalid_task(None, message, error)
            except Exception as error:  # noqa: BLE001 - what decoding and decompression raise
                return self.on_decode_error(message, error)
            if fault is not None:
                return self.on_invalid_task(None, message, InvalidTaskError(fault))
            return handle(message)

        return on_task_received

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Drop a message that is not JSON, or not a task's, and answer its sender."""
        super().on_invalid_task(body, message, exc)
        self._refuse(message, exc)

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Drop a message that cannot be decoded, and answer its sender."""
        super().on_decode_error(message, exc)
        self._refuse(message, exc)

    def _refuse(self, message: Any, error: Exception) -> None:
        """Answer a sender who would wait for ever."""
        if isinstance(task_id := _id_of(message), str):
            with suppress(RedisError):  # it may be full, and the message is dropped already
                self.app.backend.mark_as_failure(task_id, error)

    def shutdown(self) -> None:
        """Shut down after the last events are published."""
        self._flush_events()
        super().shutdown()


PARTS = 3
"""Elements of the body of a message of protocol 2: args, kwargs, and `embed` with what follows the task."""


def fault_of(headers: Mapping[str, Any], payload: Any) -> str | None:
    """Return what is wrong with the form of a message: of protocol 2, whose headers have the task, or of protocol 1."""
    has_headers, is_mapping = "task" in headers, isinstance(payload, Mapping)
    if not has_headers and not (is_mapping and "task" in payload):
        return "The message names no task, neither in its headers nor in its body."
    if is_mapping:
        fields = payload | headers if has_headers else payload
        arguments, named, following = payload.get("args", []), payload.get("kwargs", {}), None
    elif isinstance(payload, list) and len(payload) == PARTS:
        fields, (arguments, named, following) = headers, payload
    else:
        return "The body of the message is no JSON list of args, kwargs and embed."
    checks = {
        "task": isinstance(fields["task"], str),
        "id": isinstance(fields.get("id"), str),
        "args": isinstance(arguments, list),
        "kwargs": isinstance(named, Mapping),
        "embed": following is None or isinstance(following, Mapping),
        "retries": isinstance(fields.get("retries"), int | None),
        "timelimit": _are_limits(fields.get("timelimit")),
    }
    wrong = [name for name, is_right in checks.items() if not is_right]
    return f"The message has no valid {', '.join(wrong)}." if wrong else None


def _are_limits(value: Any) -> bool:
    are_numbers = isinstance(value, list) and all(isinstance(limit, int | float | None) for limit in value)
    return value is None or (are_numbers and len(value) in {0, 2})


def _id_of(message: Any) -> Any:
    """Return the id of the task of a message, which protocol 1 has in the body."""
    if "id" in message.headers:
        return message.headers["id"]
    with suppress(Exception):
        return message.payload.get("id")
    return None
