"""Compatibility with workers of an older version during an upgrade, when doors are upgraded first.

Doors read fields missing in their answers as unknown. Arguments that they do not know, they refuse.
"""

import re
from typing import Any

from celery.exceptions import NotRegistered

from workers.errors import InvalidInputError, OlderWorkersError

FAULT = re.compile(r"(\w+): is no (?:argument of ([\w.]+)|field)")
"""Message with which workers refuse an argument of a task, or a field of a fact."""

SCOPED = ("namespace", "everywhere")
LATER = frozenset(
    {(name, task) for task in ("decay.prune", "memory.purge") for name in SCOPED}
    | {
        ("everywhere", task)
        for task in (
            "decay.plan", "decay.backfill", "relations.decay", "memory.consolidate", "memory.doctor", "memory.janitor"
        )
    }
    | {(name, "memory.restore") for name in ("since", "until", "reason", "run", "dry_run")}
    | {("count_turns", ""), ("count_turns", "memory.store"), ("count_turns", "memory.store_many")}
    | {("role", task) for task in ("", "memory.store", "memory.store_many", "memory.recall", "memory.context")}
    | {("content_salience", "")}
    | {(name, "memory.forecast") for name in ("set", "ending", "by")}
)  # fmt: skip
"""Arguments sent by doors that the previous version does not know, with their tasks."""

COMPUTED = ("ends_at", "ends_for")
NULLABLE = ("forgotten_by", "tombstone_at", "role", "content_salience")
"""Fields of an archive that the previous version does not know."""


def refusal(error: Exception) -> OlderWorkersError | None:
    """Return the error to raise if workers failed only because they are of an older version."""
    if isinstance(error, NotRegistered):
        return _cannot(f"they do not know the task {error}")
    if isinstance(error, InvalidInputError):
        unknown = [fault for fault in FAULT.findall(str(error)) if fault in LATER]
        if unknown:
            return _cannot(f"they do not know the argument {', '.join(repr(name) for name, _ in unknown)}")
    return None


def _cannot(what: str) -> OlderWorkersError:
    return OlderWorkersError(
        f"The workers are of an older version: {what}. Nothing was done; upgrade the workers, then try again."
    )


def readable(record: Any) -> Any:
    """Return a line of an archive without computed and null fields that older workers refuse."""
    if not isinstance(record, dict):
        return record
    left_out = {*COMPUTED, *(name for name in NULLABLE if record.get(name) is None)}
    return {name: value for name, value in record.items() if name not in left_out}
