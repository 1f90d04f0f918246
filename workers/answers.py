"""What tasks answer: plain JSON, which every door passes on as it is."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from workers.decay import Report
from workers.errors import InvalidInputError
from workers.forget import Fate
from workers.history import History
from workers.pin import Pinned
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


def fates(ids: Sequence[UUID], outcomes: Sequence[Fate | InvalidInputError]) -> dict[str, Any]:
    """Return what became of each fact that somebody wished forgotten or restored, in order, or why nothing did."""
    return {"results": [_fate(id_, outcome) for id_, outcome in zip(ids, outcomes, strict=True)]}


def _fate(id_: UUID, outcome: Fate | InvalidInputError) -> dict[str, Any]:
    if isinstance(outcome, InvalidInputError):
        return {"id": str(id_), "error": str(outcome)}
    answer: dict[str, Any] = {"id": str(id_), "action": outcome.action}
    if outcome.forgotten_at is not None:
        answer |= {"forgotten_at": shown(outcome.forgotten_at), "reason": outcome.reason}
    return answer


def pinned(done: Pinned) -> dict[str, Any]:
    """Return whether a fact is pinned now, and until when; no instant: for good."""
    until = None if done.until is None else shown(done.until)
    return {"id": str(done.id), "action": done.action, "pinned": done.pinned, "until": until}


def history(told: History) -> dict[str, Any]:
    """Return a fact as it stands, and what happened to it, oldest first."""
    return {
        "id": str(told.id),
        "text": told.text,
        "state": told.state,
        "pinned": told.pinned,
        "pinned_until": None if told.pinned_until is None else shown(told.pinned_until),
        "events": [{"at": shown(one.at), "what": one.what, "details": one.details} for one in told.happenings],
    }


def shown(instant: datetime) -> str:
    """Return an instant as every answer shows it: ISO 8601 in UTC."""
    return instant.isoformat().replace("+00:00", "Z")


def counters(report: Report) -> dict[str, Any]:
    """Return what a pass did."""
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


def recalled(found: Recalled) -> dict[str, Any]:
    """Return what a recall found, and on request why."""
    answer: dict[str, Any] = {"results": [_result(result) for result in found.results]}
    if found.left_out is not None:
        answer |= {"left_out": found.left_out, "by_meaning": found.by_meaning}
    return answer


def _result(result: Result) -> dict[str, Any]:
    told = asdict(result)
    if told["explain"] is None:
        del told["explain"]
    told["id"] = str(result.id)
    for name in ("source_date", "created_at"):
        told[name] = None if told[name] is None else shown(told[name])
    return told
