"""Logging: text lines, or one JSON object per line, with the task and namespace of each record."""

import json
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from celery import current_task
from celery.utils.log import get_multiprocessing_logger

from workers import redaction
from workers.core import controls
from workers.settings import Settings

log = logging.getLogger(__name__)

FOR_PEOPLE = "%(asctime)s %(levelname)s %(processName)s %(name)s: %(message)s"
QUIET = ("celery.worker.strategy", "celery.app.trace", "httpx2")
"""Loggers that log each task or request at a level meant for rare events."""


class JsonLines(logging.Formatter):
    """Formats a record as JSON: time, level, logger, message, task and namespace."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record on one line."""
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": record.processName,
            "message": _redacted(record.getMessage(), _errors(record), record.name),
            **_about(record),
        }
        if record.exc_info:
            fields["exception"] = _redacted(self.formatException(record.exc_info), _errors(record))
        return controls.escaped_json(json.dumps(fields, ensure_ascii=False, default=str))


class Lines(logging.Formatter):
    """Formats a record as text: the message on one line, tracebacks indented; texts cannot forge a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the first line, with control characters escaped."""
        return controls.escaped(_redacted(super().formatMessage(record), _errors(record), record.name))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Return the lines of a traceback, indented."""
        said = _redacted(super().formatException(ei), [ei[1]])
        return "\n".join(f"  {controls.escaped(line)}" for line in said.split("\n"))


def configure(settings: Settings) -> None:
    """Log to stderr as the settings say, including Python warnings, and for machines what Python itself would print."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.log_format == "json" else Lines(FOR_PEOPLE))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    pool = get_multiprocessing_logger()
    pool.propagate = True  # otherwise it prints that a child was killed, without its format
    for name in (*QUIET, pool.name):
        logging.getLogger(name).setLevel(logging.WARNING)
    if settings.log_format == "json":
        sys.unraisablehook, threading.excepthook = _log_ignored, _log_end_of_thread


def _log_ignored(error: "sys.UnraisableHookArgs") -> None:
    """Log an error that Python drops, such as the exit of a signal handler while an object is cleared."""
    trace = (error.exc_type, error.exc_value or error.exc_type(), error.exc_traceback)
    said = (error.err_msg or "Exception ignored in").partition(" <")[0]
    # a name, not contents; Python 3.14 has only the text, with the object in angle brackets
    name = "" if error.object is None else f": {getattr(error.object, '__qualname__', type(error.object).__name__)}"
    log.error("%s%s", said, name, exc_info=trace)


def _log_end_of_thread(error: threading.ExceptHookArgs) -> None:
    """Log an error that ended a thread."""
    if not issubclass(error.exc_type, SystemExit):
        trace = (error.exc_type, error.exc_value or error.exc_type(), error.exc_traceback)
        log.error("the thread %s ended", error.thread.name if error.thread else "", exc_info=trace)


def write_json(message: str, *_: object) -> None:
    """Write a message of Celery's signal handlers as JSON, bypassing locks that the interrupted code may hold."""
    fields = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "WARNING", "logger": "celery"}
    os.write(2, f"{json.dumps(fields | {'message': message.strip()})}\n".encode())


def _redacted(text: str, errors: Iterable[BaseException], logger: str = "") -> str:
    """Return a text without the rows and the messages of tasks that it quotes, unless the level is debug."""
    if logging.root.isEnabledFor(logging.DEBUG):
        return text
    return redaction.without_rows(redaction.without_contents(text, logger), errors)


def _errors(record: logging.LogRecord) -> Iterator[BaseException]:
    """Yield the errors that a record reports or quotes."""
    if record.exc_info and record.exc_info[1]:
        yield record.exc_info[1]
    quoted = record.args if isinstance(record.args, tuple) else ()
    yield from (one for one in quoted if isinstance(one, BaseException))


def _about(record: logging.LogRecord) -> dict[str, Any]:
    """Return task and namespace of the record, else of the running task."""
    request = current_task.request if current_task else None
    arguments = getattr(request, "kwargs", None) or {}
    known = {
        "task": getattr(record, "task", None) or getattr(request, "id", None),
        "task_name": current_task.name if current_task else None,
        "namespace": getattr(record, "namespace", None) or arguments.get("namespace"),
    }
    more = {name: getattr(record, name, None) for name in ("method", "path", "status", "milliseconds", "key")}
    return {name: value for name, value in (known | more).items() if value is not None}
