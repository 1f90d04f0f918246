"""Logs: lines for people, or one JSON object a line for machines, with the task and the namespace they are about."""

import json
import logging
import os
from datetime import UTC, datetime
from typing import Any

from celery import current_task

from workers.core import controls
from workers.settings import Settings

FOR_PEOPLE = "%(asctime)s %(levelname)s %(processName)s %(name)s: %(message)s"
QUIET = ("celery.worker.strategy", "celery.app.trace", "httpx2")
"""These log each task or request at a level meant for rare events."""


class JsonLines(logging.Formatter):
    """Writes a record as JSON: time, level, logger, message, task and namespace."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record on one line."""
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": record.processName,
            "message": record.getMessage(),
            **_about(record),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return controls.escaped_json(json.dumps(told, ensure_ascii=False, default=str))


class Lines(logging.Formatter):
    """Writes a record for people: on one line, what was raised below it, indented; no text can forge a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging calls it
        """Return the first line, in which control characters are escaped."""
        return controls.escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - as logging calls it
        """Return the lines of a traceback."""
        return "\n".join(f"  {controls.escaped(line)}" for line in super().formatException(ei).split("\n"))


def configure(settings: Settings) -> None:
    """Log to stderr as the settings say, warnings of Python too."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.log_format == "json" else Lines(FOR_PEOPLE))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def say(message: str, *_: object) -> None:
    """Write as JSON what Celery says while a signal ends it, past all locks that the signal may have found taken."""
    told = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "WARNING", "logger": "celery"}
    os.write(2, f"{json.dumps(told | {'message': message.strip()})}\n".encode())


def _about(record: logging.LogRecord) -> dict[str, Any]:
    """Return task and namespace: as the record says, else of the task that is at work."""
    request = current_task.request if current_task else None
    arguments = getattr(request, "kwargs", None) or {}
    known = {
        "task": getattr(record, "task", None) or getattr(request, "id", None),
        "task_name": current_task.name if current_task else None,
        "namespace": getattr(record, "namespace", None) or arguments.get("namespace"),
    }
    more = {name: getattr(record, name, None) for name in ("method", "path", "status", "milliseconds", "key")}
    return {name: value for name, value in (known | more).items() if value is not None}
