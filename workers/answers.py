"""What tasks answer: plain JSON, which every door passes on as it is."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workers.core.fading import REASONS
from workers.decay import Report
from workers.errors import InvalidInputError
from workers.forecast import CHANGES, Day
from workers.recall import Recalled, Result
from workers.storage.contradictions import Contradiction
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


def foreseen(ahead: Sequence[Day]) -> dict[str, Any]:
    """Return what passes will do day by day; `forgotten` has all reasons, less what the forget limit holds back."""
    return {"days": [_day(day) for day in ahead]}


def _day(day: Day) -> dict[str, Any]:
    counts = {change: day.counts[change] for change in CHANGES}
    forgotten = sum(day.counts[reason] for reason in REASONS) - day.held
    facts = [{"id": str(fact.id), "change": fact.change, "text": fact.text} for fact in day.facts]
    return {
        "at": day.at.isoformat().replace("+00:00", "Z"),
        **counts,
        "forgotten": forgotten,
        "held": day.held,
        "facts": facts,
    }


def contradicting(found: Sequence[Contradiction], total: int) -> dict[str, Any]:
    """Return pairs of facts that contradict each other, the older one first, and how many there are in all."""
    return {"contradictions": [_contradiction(one) for one in found], "total": total}


def _contradiction(one: Contradiction) -> dict[str, Any]:
    facts = [
        {"id": str(id_), "value": value, "text": text, "created_at": _shown(at)}
        for at, id_, value, text in sorted(zip(one.created_at, one.ids, one.values, one.texts, strict=True))
    ]
    return {"entity": one.entity, "key": one.key, "found_at": _shown(one.found_at), "facts": facts}


def _shown(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def _result(result: Result) -> dict[str, Any]:
    shown = {name: getattr(result, name) for name in Result.__slots__}
    if shown["explain"] is None:
        del shown["explain"]
    shown["id"] = str(result.id)
    for name in ("source_date", "created_at"):
        shown[name] = None if shown[name] is None else _shown(shown[name])
    return shown
