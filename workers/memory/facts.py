"""Facts by id or in pages, in the format of an export, and the list of forgotten facts."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.reports import ListFacts
from ebb.contract.retention import Forgotten, ForgottenFact
from ebb.contract.values import REQUESTED

from workers.context import Context
from workers.core import confidence, episodes, fading, fidelity, summary, tiers
from workers.core.arrays import Floats
from workers.core.cost import check_size
from workers.core.fading import Anchors
from workers.core.hygiene import Hygiene
from workers.core.tiers import Tier
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.lifetime import endings_at, instant_at
from workers.memory.namespace_settings import hygiene, rules_of_each
from workers.storage import exports, supersession, tombstones, visible
from workers.storage import facts as stored
from workers.storage import namespaces as tenants
from workers.storage.activity import KINDS, anchors_of
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, reading, transaction
from workers.storage.tombstones import Cursor as ForgottenCursor
from workers.storage.tombstones import Selection, Tombstone
from workers.storage.visible import Place
from workers.validation import cursors

AS_STORED = (
    "id", "namespace", "kind", "text", "summary", "session", "turn", "role", "source_date", "created_at", "category",
    "entity", "key", "value", "tags", "importance", "source", "metadata", "decay_class", "decay_class_source",
    "confidence", "coactivations", "durability", "occurred", "normalized_hash", "recall_count", "last_accessed",
    "last_accessed_at", "valid_from", "valid_until", "superseded_at", "superseded_by", "supersedes_id",
    "content_salience",
)  # fmt: skip


def show(context: Context, namespace: str, id_: UUID, now: datetime, *, latest: bool = False) -> dict[str, Any]:
    """Return a fact, or with `latest` what superseded it, as of `now`, in the format of an export; this is no access.

    Raises:
        NotFoundError: the namespace has no such live fact.
    """
    with reading(context.read_url) as db:
        id_ = supersession.latest(db, tenants.id_of(db, namespace), id_) if latest else id_
        row = exports.shown(db, namespace, [id_], now).get(id_)
    if row is None:
        raise NotFoundError(
            f"id: no live fact {id_} is in namespace {namespace!r}; if one was, its history says what became of it."
        )
    return _shaped([row], now, context)[0]


def page(context: Context, asked: ListFacts, now: datetime) -> tuple[list[dict[str, Any]], Place | None]:
    """Return the visible facts of `ids`, or the next page that matches the filters, newest first, and its last place.

    They are in the format of an export; this does not count as access.

    Raises:
        InvalidInputError: the cursor belongs to another listing, there is no fact `before`, both ids and filters are
            given, or the facts are too large together.
    """
    scope = Scope(now, asked)
    if asked.ids is not None and scope.selects:
        raise InvalidInputError("ids: these facts alone are shown; leave out the filters, or the ids.")
    with reading(context.read_url) as db:
        tenant = tenants.id_of(db, asked.namespace)
        found = _page(db, tenant, asked, scope) if asked.ids is None else []
        ids = [one.id for one in found[: asked.limit]] if asked.ids is None else asked.ids
        check_size(stored.size(db, tenant, [id_.bytes for id_ in ids]))
        rows = exports.shown(db, asked.namespace, ids, now)
    rest = found[asked.limit - 1] if len(found) > asked.limit else None
    return _shaped([rows[id_] for id_ in ids if id_ in rows], now, context), rest


def _page(db: Connection, tenant: int, asked: ListFacts, scope: Scope) -> list[Place]:
    """Return the places of a page, and one more if there is a next page; it begins after the cursor and `before`."""
    after = cursors.place(asked.cursor, Place)
    if asked.before is not None:
        before = visible.place_of(db, tenant, asked.before)
        if before is None and after is None:
            raise InvalidInputError(
                f"before: no fact {asked.before} is in this namespace; leave it out to begin again."
            )
        after = min((place for place in (after, before) if place), key=attrgetter("created_at", "turn", "id"))
    return visible.page(db, tenant, scope, asked.limit + 1, after=after, offset=asked.offset)


def namespaces(context: Context, prefix: str, limit: int) -> list[str]:
    """Return the names of namespaces that begin with a prefix, in order."""
    found: list[str] = []
    for _ in context.each_shard():
        with transaction(context.read_url) as db:
            found += tenants.with_prefix(db, prefix, limit)
    return sorted({*found})[:limit]  # one that moves meanwhile may be on two shards


def _shaped(rows: list[dict[str, Any]], now: datetime, context: Context) -> list[dict[str, Any]]:
    """Return rows of `exports.shown` as facts, with the other places where they were said."""
    found = shaped(rows, now, context) if rows else ()
    again = [{"said_again": row["said_again"]} if row["said_again"] else {} for row in rows]
    return [fact | more for fact, more in zip(found, again, strict=True)]


def shaped(rows: list[dict[str, Any]], now: datetime, context: Context) -> Iterator[dict[str, Any]]:
    """Yield facts as of `now`, in the format of an export, from rows of `exports`."""
    instant, anchors = now.timestamp(), _anchors(rows)
    strength = tiers.strength(anchors.base, anchors.coactivations)
    curve = tiers.curve(strength, anchors.coactivations)
    age_days = (instant - np.minimum(fading.with_pins(anchors).last_seen_at, instant)) / confidence.DAY
    retention, tier = tiers.retention(curve, age_days), tiers.tier(curve, age_days)
    own = [hygiene(context, row["settings"]) for row in rows]
    believed = _effective_confidence(rows, anchors, instant, own)
    ends = endings_at(*fading.ends(anchors, rules_of_each(context, own)))
    for i, row in enumerate(rows):
        yield {name: row[name] for name in AS_STORED} | {
            "access_count": row["recall_count"],
            "last_confirmed_at": instant_at(row["confirmed_at"]),
            "last_seen_at": instant_at(row["last_seen_at"]),
            "strength": float(strength[i]),
            "tier": Tier(tier[i]).name.lower(),
            "fidelity": fidelity.name(row["fidelity"]),
            "dims": row["dims"] or 0,
            "salience": float(strength[i] * retention[i]),
            "retention": float(retention[i]),
            "effective_confidence": float(believed[i]),
            "decay_summary": _summary(row, float(retention[i]), context.settings.summary_layers),
            "expires_at": instant_at(row["expires_at"]),
            "ends_at": None if row["retired"] else ends[i].at,
            "ends_for": None if row["retired"] else ends[i].reason,
            "due_at": instant_at(row["due_at"]),
            "stale": _is_stale(row, own[i], instant),
            "pinned": row["pinned_until"] > instant,
            "pinned_until": instant_at(row["pinned_until"]),
            "forgotten_at": row["forgotten_at"],
            "forgotten_reason": row["forgotten_reason"],
            "forgotten_by": row["forgotten_by"],
            "tombstone_at": row["tombstone_at"],
        }


def _anchors(rows: list[dict[str, Any]]) -> Anchors:
    """Return the anchors of rows; staleness is left out, as it does not affect when they end."""
    columns = {name: [row[name] for row in rows] for name in ("decay_class", *KINDS) if name != "stale"}
    return anchors_of(columns | {"stale": [False] * len(rows)}, np.array(columns["last_seen_at"], dtype=np.float64))


def _is_stale(row: dict[str, Any], own: Hygiene, instant: float) -> bool:
    """Return whether a permanent episode was neither stated nor recalled for too long."""
    if row["durability"] != "permanent":
        return False
    since = np.array([max(row["silent_since"], row["pinned_until"])])
    return bool(episodes.stale_at(since, own.stale_days)[0] <= instant)


def _effective_confidence(
    rows: list[dict[str, Any]], anchors: Anchors, instant: float, own: Sequence[Hygiene]
) -> Floats:
    """Return the confidence at an instant, with soft decay and, for semantic facts, the half-life."""
    semantic = np.array([row["kind"] == "semantic" for row in rows])
    half_life = np.where(semantic, [one.half_life for one in own], np.inf)
    confirmed_at = np.maximum(anchors.confirmed_at, np.minimum(anchors.pinned_until, instant))
    expires_at = fading.softens_until(anchors.branch, anchors.expires_at)
    softened = confidence.softened(anchors.confidence, confirmed_at, expires_at, instant)
    return confidence.effective_confidence(softened, (instant - confirmed_at) / confidence.DAY, half_life)


def _summary(row: dict[str, Any], retention: float, layers: int) -> str | None:
    """Return the shortened text of a faded fact; None while it has not faded."""
    if row["fidelity"] == fidelity.FINGERPRINT:
        return summary.fingerprint(row["text"])
    return summary.summarise(row["text"], retention, layers) if retention < fidelity.POOL_BELOW else None


def forgotten(
    context: Context, namespace: str, selection: Selection, limit: int, behind: ForgottenCursor | None = None
) -> Forgotten:
    """Return a page of the selected tombstones with the end of their restorability, None if unlimited."""
    with reading(context.read_url) as db:
        found = tombstones.found(db, tenants.id_of(db, namespace), selection, limit + 1, behind)
    shown, following = cursors.page(found, limit, lambda one: ForgottenCursor(one.forgotten_at, one.id))
    return Forgotten(facts=[_forgotten(context, one) for one in shown], next=following)


def _forgotten(context: Context, one: Tombstone) -> ForgottenFact:
    """Return a tombstone, and when a purge may erase it, if ever; retention begins at the later of its two dates."""
    said, settings = asdict(one), context.settings
    days = settings.retention_days if one.reason in REQUESTED else settings.deep_days
    begins = max(one.forgotten_at, said.pop("tombstone_at") or one.forgotten_at)
    last = None if days is None else begins + min(timedelta(days=days), datetime.max.replace(tzinfo=UTC) - begins)
    return ForgottenFact(**said, restorable_until=last)
