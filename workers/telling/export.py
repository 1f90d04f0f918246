"""Export: every fact of a namespace as what `import` takes, with what has become of it by an instant."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np

from workers.context import Context
from workers.core import confidence, episodes, fading, fidelity, summary, tiers
from workers.core.arrays import Floats
from workers.core.fading import Anchors
from workers.core.hygiene import Hygiene
from workers.core.tiers import Tier
from workers.errors import DamagedError
from workers.forgetting.ending import endings_at
from workers.forgetting.terms import hygiene, rules_of_each
from workers.storage import archives, exports, lenient
from workers.storage.activity import PERMANENT
from workers.storage.connection import snapshot

BATCH = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = lenient.FIRST.timestamp(), lenient.LAST.timestamp()
AS_STORED = (
    "id", "namespace", "kind", "text", "summary", "session", "turn", "source_date", "created_at", "category",
    "entity", "key", "value", "tags", "importance", "source", "metadata", "decay_class", "decay_class_source",
    "confidence", "coactivations", "durability", "occurred", "normalized_hash", "recall_count", "last_accessed",
    "last_accessed_at", "valid_from", "valid_until", "superseded_at", "superseded_by", "supersedes_id",
)  # fmt: skip


def export(context: Context, namespace: str | None, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield each fact of a namespace, or of all, as of `now`, then all that these have beside facts.

    All of it is from one unchanging state of the database. What is no fact stands under its kind: `own` (what a
    namespace has of its own), `link`, `contradiction`, `relation` and `wish`, beside `namespace`.

    Raises:
        UnavailableError: the database does not answer.
        DamagedError: facts would be missing, because rows of them are.
    """
    with snapshot(context.database_url) as db:
        if lacking := exports.without_activity(db, namespace):
            raise DamagedError(
                f"{lacking} facts have no activity, and would be missing; run `ebb doctor --all --mend` first."
            )
        rows = exports.rows(db, namespace, BATCH)
        while batch := list(islice(rows, BATCH)):
            noted: list[list[dict[str, Any]]] = [[] for _ in batch]
            for place, at, what, details in exports.events(
                db, [row["namespace"] for row in batch], [row["id"] for row in batch]
            ):
                noted[place].append({"at": at, "what": what, "details": details})
            for row, fact, events in zip(batch, shaped(batch, now, context), noted, strict=True):
                yield fact | {"state": row["state"], "events": events}
        for kind, row in archives.beside_facts(db, namespace, BATCH):
            yield {"namespace": row.pop("namespace"), kind: row}


def shaped(rows: list[dict[str, Any]], now: datetime, context: Context) -> Iterator[dict[str, Any]]:
    """Yield rows of facts with their activity as facts are as of `now`."""
    instant = now.timestamp()
    coactivations = np.array([row["coactivations"] for row in rows], dtype=np.int64)
    strength = tiers.strength(np.array([row["base"] for row in rows]), coactivations)
    curve = tiers.curve(strength, coactivations)
    age_days = (instant - _sustained(rows, "last_seen_at", instant)) / confidence.DAY
    retention, tier = tiers.retention(curve, age_days), tiers.tier(curve, age_days)
    own = [hygiene(context, row["settings"]) for row in rows]
    believed = _effective_confidence(rows, instant, own)
    ends = endings_at(*fading.ends(_anchors(rows), rules_of_each(context, own)))
    for i, row in enumerate(rows):
        yield {name: row[name] for name in AS_STORED} | {
            "access_count": row["recall_count"],
            "last_confirmed_at": _instant(row["confirmed_at"]),
            "last_seen_at": _instant(row["last_seen_at"]),
            "strength": float(strength[i]),
            "tier": Tier(tier[i]).name.lower(),
            "fidelity": fidelity.name(row["fidelity"]),
            "dims": row["dims"] or 0,
            "salience": float(strength[i] * retention[i]),
            "retention": float(retention[i]),
            "effective_confidence": float(believed[i]),
            "decay_summary": _summary(row["text"], float(retention[i]), context.settings.summary_layers),
            "expires_at": _instant(row["expires_at"]),
            "ends_at": None if row["retired"] else ends[i].at,
            "ends_for": None if row["retired"] else ends[i].reason,
            "due_at": _instant(row["due_at"]),
            "stale": _is_stale(row, own[i], instant),
            "pinned": row["pinned_until"] > instant,
            "pinned_until": _instant(row["pinned_until"]),
            "forgotten_at": row["forgotten_at"],
            "forgotten_reason": row["forgotten_reason"],
            "forgotten_by": row["forgotten_by"],
            "tombstone_at": row["tombstone_at"],
        }


def _anchors(rows: list[dict[str, Any]]) -> Anchors:
    """Return what facts were at their last use; their vectors and staleness do not say when they end."""
    given: dict[str, Any] = {
        name: np.array([row[name] for row in rows])
        for name in (
            "base", "coactivations", "last_seen_at", "confidence", "confirmed_at", "expires_at", "fidelity",
            "pinned_until", "halvings", "branch", "encoded_at", "outrun_at",
        )
    }  # fmt: skip
    permanent = np.array([row["decay_class"] == PERMANENT for row in rows], dtype=np.bool_)
    return Anchors(
        **given,
        permanent=permanent | (given["branch"] == episodes.Branch.PERMANENT),
        silent_since=given["last_seen_at"],
        stale=np.zeros(len(rows), dtype=np.bool_),
    )


def _is_stale(row: dict[str, Any], own: Hygiene, instant: float) -> bool:
    """Return whether an episode is permanent and nobody has heard of it for too long."""
    if row["durability"] != "permanent":
        return False
    since = np.array([max(row["silent_since"], row["pinned_until"])])
    return bool(episodes.stale_at(since, own.stale_days)[0] <= instant)


def _effective_confidence(rows: list[dict[str, Any]], instant: float, own: Sequence[Hygiene]) -> Floats:
    """Return belief as of an instant: the soft-decay halvings and, of semantic facts, the half-life together (C-X1)."""
    semantic = np.array([row["kind"] == "semantic" for row in rows])
    half_life = np.where(semantic, [one.half_life for one in own], np.inf)
    believed = np.array([row["confidence"] for row in rows])
    confirmed_at = _sustained(rows, "confirmed_at", instant)
    expires_at = np.array([row["expires_at"] for row in rows])
    halvings = confidence.soft_decay_halvings(confirmed_at, expires_at, instant)
    halved = believed * confidence.HALF ** confidence.halvings_applied(believed, halvings)
    return confidence.effective_confidence(halved, (instant - confirmed_at) / confidence.DAY, half_life)


def _sustained(rows: list[dict[str, Any]], name: str, instant: float) -> Floats:
    """Return when facts were last seen or confirmed as of an instant: a pin counts as use until it ends."""
    pinned_until = np.array([row["pinned_until"] for row in rows])
    told: Floats = np.maximum([row[name] for row in rows], np.minimum(pinned_until, instant))
    return told


def _summary(text: str, retention: float, layers: int) -> str | None:
    """Return the text as remembered, once it is no longer remembered whole (C-O14)."""
    return summary.summarise(text, retention, layers) if retention < fidelity.POOL_BELOW else None


def _instant(seconds: float) -> datetime | None:
    """Return an instant, or the end of the calendar that it lies beyond."""
    return EPOCH + timedelta(seconds=min(max(seconds, EARLIEST), LATEST)) if np.isfinite(seconds) else None
