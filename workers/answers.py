"""What tasks answer: plain JSON, which every door passes on as it is."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from workers.backfill import Backfilled
from workers.decay import Report
from workers.errors import InvalidInputError
from workers.recall import Recalled, Result
from workers.store import Stored


def stored(answer: Stored) -> dict[str, Any]:
    """Return what became of one given fact."""
    return {"id": str(answer.id), "action": answer.action, "embedded": answer.embedded}


def stored_many(outcomes: Sequence[Stored | InvalidInputError]) -> dict[str, Any]:
    """Return what became of each given fact, in order, or why it was not stored."""
    return {
        "results": [
            {"error": str(outcome), "index": index} if isinstance(outcome, InvalidInputError) else stored(outcome)
            for index, outcome in enumerate(outcomes)
        ]
    }


def passed(report: Report) -> dict[str, Any]:
    """Return what a pass did, in the terms of what it was for."""
    return _decayed(report) if report.work == "decay" else _pruned(report)


def _decayed(report: Report) -> dict[str, Any]:
    done = report.counters
    return {
        "processed": done.processed,
        "changed": done.changed,
        "hot": done.hot,
        "warm": done.warm,
        "cold": done.cold,
        "compressed": done.compressed,
        "fingerprinted": done.fingerprinted,
        "forgotten": done.forgotten,
        "held": done.held,
        "duration_ms": round(done.duration_ms, 1),
        "segments": done.segments,
    }


def _pruned(report: Report) -> dict[str, Any]:
    """Return how many facts had expired, and of how many soft decay halved the confidence, or deleted them (C-D11)."""
    done = report.counters
    return {
        "expired": done.expired,
        "decayed": done.decayed,
        "deleted": done.faded + done.culled,
        "held": done.held,
        "dry_run": report.dry_run,
        "duration_ms": round(done.duration_ms, 1),
        "segments": done.segments,
    }


def backfilled(done: Backfilled) -> dict[str, Any]:
    """Return how many facts got which class."""
    changes = [{"from": was, "to": now, "facts": facts} for (was, now), facts in sorted(done.changes.items())]
    return {"examined": done.examined, "changes": changes, "overdue": done.overdue}


def backfilled_so_far(answer: dict[str, Any] | None) -> Backfilled:
    """Return what an earlier part of a backfill had to answer."""
    if answer is None:
        return Backfilled()
    changes = {(change["from"], change["to"]): change["facts"] for change in answer["changes"]}
    return Backfilled(answer["examined"], Counter(changes), answer["overdue"])


def recalled(found: Recalled) -> dict[str, Any]:
    """Return what a recall found, and on request why."""
    answer: dict[str, Any] = {"results": [_result(result) for result in found.results]}
    if found.left_out is not None:
        answer |= {"left_out": found.left_out, "by_meaning": found.by_meaning}
    return answer


def _result(result: Result) -> dict[str, Any]:
    shown = asdict(result)
    if shown["explain"] is None:
        del shown["explain"]
    shown["id"] = str(result.id)
    for name in ("source_date", "created_at"):
        shown[name] = None if shown[name] is None else shown[name].isoformat().replace("+00:00", "Z")
    return shown
