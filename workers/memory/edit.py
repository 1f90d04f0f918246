"""Edit: change the fields of a fact other than its text, and record the old values in its history."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.facts import EDITABLE, Edit, Edited
from ebb.contract.values import MOST_TAGS

from workers.context import Context
from workers.core import lifetime
from workers.core.episodes import OF_DOCUMENTS, Branch
from workers.core.fading import as_written, expiries
from workers.core.text import statement_digest
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.lifetime import UNKNOWN, lives
from workers.memory.namespace_settings import careful, rules_for
from workers.storage import activity, duplicate_pairs, edits, events, namespaces, statements, supersession, tombstones
from workers.storage.activity import PERMANENT, Activity
from workers.storage.connection import Connection, transaction
from workers.storage.edits import Editable
from workers.validation.facts import check_validity

IDENTIFYING = ("entity", "key", "value")
DISTINGUISHING = (*IDENTIFYING, "valid_until")
"""Fields in which near-duplicates agree."""

DECAY_FIELDS = ("decay_class", "confidence")
VALIDITY = ("valid_from", "valid_until")


@dataclass(frozen=True, slots=True)
class Change:
    """A fact before an edit, its new values, and the new source of its decay class."""

    before: Editable
    new: dict[str, Any]
    source: str | None

    def now(self, name: str) -> Any:
        """Return the value of a field after the edit."""
        return self.new.get(name, getattr(self.before, name))

    @property
    def fields(self) -> list[str]:
        """Return the names of the fields that change."""
        return [name for name in EDITABLE if name in self.new]

    @property
    def hash(self) -> bytes:
        """Return the identity of the fact after the edit."""
        return statement_digest(self.before.text, self.now("entity"), self.now("key"), self.now("value"))


def edit(context: Context, asked: Edit, now: datetime) -> Edited:
    """Change the fields of a live fact other than its text; idempotent. Given tags replace existing ones.

    A new decay class or confidence confirms the fact and restarts its lifetime. Edits may arrive in any order: fields
    that were edited after `now` stay as they are.

    Raises:
        NotFoundError: there is no such live fact.
        InvalidInputError: the fact is part of a document, it would equal another fact, or all given fields were edited
            after `now`.
    """
    wanted, namespace, id_ = _wanted(asked), asked.namespace, asked.id
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        rows = None if tenant is None else activity.lock(db, tenant.id, [id_])
        state = None if tenant is None else tombstones.standings(db, tenant.id, [id_], now).get(id_)
        if tenant is None or rows is None or state is None or not state.current:
            raise NotFoundError(
                f"id: no live fact {id_} is in namespace {namespace!r}; `ebb history` says what became of it."
            )
        later = _edited_later(context, db, tenant.id, [id_], now).get(id_)
        if later is not None and later.fields.issuperset(wanted):
            raise InvalidInputError(f"id: {id_} was edited at {later.at}, later than this was asked; ask again.")
        changed = edit_within(context, db, tenant.id, {id_: wanted}, now, strict=True).get(id_, [])
        life = lives(context, db, tenant, {}, [id_], now).get(id_, UNKNOWN)
        if not set(changed).isdisjoint(IDENTIFYING):
            supersession.find_contradictions(db, tenant.id, [id_], now)
    return Edited(id=id_, action="updated" if changed else "unchanged", changed=changed, **life.fields)


def _edited_later(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime
) -> dict[UUID, events.Edits]:
    later = events.edited_later(db, tenant, ids, now)
    return {id_: one for id_, one in later.items() if context.may_be_later(db, one.at)}


def _wanted(asked: Edit) -> dict[str, Any]:
    wanted = asked.changes
    return wanted | ({"tags": wanted["tags"] or []} if "tags" in wanted else {})


def edit_within(
    context: Context,
    db: Connection,
    tenant: int,
    wanted: Mapping[UUID, Mapping[str, Any]],
    now: datetime,
    *,
    strict: bool = False,
) -> dict[UUID, list[str]]:
    """Change live facts by id; return the names of the fields that changed, by id.

    Fields edited after `now` are left unchanged, and tags that such an edit removed; unless `strict`, the given tags
    include the known ones, and others are added. A change that would make a fact equal to another, or its validity end
    before it begins, raises if `strict`, else it is skipped.
    """
    rows = activity.lock(db, tenant, list(wanted))
    known = edits.read(db, tenant, rows.ids)
    later = _edited_later(context, db, tenant, list(known), now)
    is_careful = careful(context, namespaces.settings_of(db, [tenant])[tenant][0])
    planned = [
        _change(
            known[id_],
            _still(wanted[id_], known[id_], later.get(id_), strict=strict),
            strict=strict,
            careful=is_careful,
        )
        for id_ in rows.ids
        if id_ in known
    ]
    changes = _without_doubles(db, tenant, [one for one in planned if one.new], strict=strict)
    if not changes:
        return {}
    _write_facts(db, tenant, changes)
    _write_decay_state(context, db, tenant, rows, changes, now)
    noted = [(one.before.id, "edited", {"was": _values(one, before=True), "is": _values(one)}) for one in changes]
    events.add_many(db, tenant, now, noted)
    return {one.before.id: one.fields for one in changes}


def union_of_tags(*each: Sequence[str]) -> list[str]:
    """Return the union of tags, in order."""
    return list(dict.fromkeys(chain.from_iterable(each)))[:MOST_TAGS]


def _still(
    wanted: Mapping[str, Any], known: Editable, later: events.Edits | None, *, strict: bool
) -> Mapping[str, Any]:
    """Return what of an edit still applies after later ones."""
    if later is None:
        return wanted
    left = {name: value for name, value in wanted.items() if name not in later.fields}
    if "tags" in wanted and "tags" in later.fields and not strict:
        left["tags"] = union_of_tags(known.tags, [tag for tag in wanted["tags"] if tag not in later.tags])
    return left


def _change(before: Editable, wanted: Mapping[str, Any], *, strict: bool, careful: bool) -> Change:
    """Return the differences between an edit and a fact; a decay class derived from words is derived again."""
    if before.kind in OF_DOCUMENTS:
        if strict:
            raise InvalidInputError(f"id: {before.id} is of kind {before.kind}; change it where it comes from.")
        return Change(before, {}, before.decay_class_source)
    new = {name: value for name, value in wanted.items() if value != getattr(before, name)}
    begins, ends = (new.get(name, getattr(before, name)) for name in VALIDITY)
    if strict:
        check_validity(begins, ends)
    elif ends is not None and ends <= begins:
        new = {name: value for name, value in new.items() if name not in VALIDITY}
    decay_class, source = _classed(before, wanted, new, careful=careful)
    new.pop("decay_class", None)
    if (decay_class, source) != (before.decay_class, before.decay_class_source):
        new["decay_class"] = decay_class
    return Change(before, new, source)


def _classed(
    before: Editable, wanted: Mapping[str, Any], new: Mapping[str, Any], *, careful: bool
) -> tuple[str | None, str | None]:
    """Return the decay class of a fact after an edit, and its source: `explicit`, `auto` or None."""
    if wanted.get("decay_class") is not None:
        return wanted["decay_class"], "explicit"
    is_removed = "decay_class" in wanted
    decides_again = before.decay_class_source == "auto" and not set(new).isdisjoint(IDENTIFYING)
    if decides_again or (is_removed and before.kind == "semantic"):
        said = {name: new.get(name, getattr(before, name)) for name in IDENTIFYING}
        decay_class = lifetime.classify_decay(**said, text=before.text, careful=careful)
        return decay_class, None if decay_class is None else "auto"
    return (None, None) if is_removed else (before.decay_class, before.decay_class_source)


def _without_doubles(db: Connection, tenant: int, changes: Sequence[Change], *, strict: bool) -> list[Change]:
    """Return the changes; one that would make a fact equal to another loses the fields that identify the fact.

    Raises:
        InvalidInputError: there is such a change, and `strict` is true.
    """
    taken = statements.known_exactly(db, tenant, [one.hash for one in changes if one.hash != one.before.hash])
    kept = list[Change]()
    for one in changes:
        other = taken.get(one.hash, one.before.id)
        is_double = one.hash != one.before.hash and other != one.before.id
        if is_double and strict:
            raise InvalidInputError(f"id: {one.before.id} would say the same as fact {other}; forget that one first.")
        others = {name: new for name, new in one.new.items() if name not in IDENTIFYING}
        kept.append(replace(one, new=others) if is_double else one)
        taken[kept[-1].hash] = one.before.id
    return [one for one in kept if one.new]


def _write_facts(db: Connection, tenant: int, changes: Sequence[Change]) -> None:
    columns = [name for name in EDITABLE if name not in DECAY_FIELDS]
    rows = [
        {"id": one.before.id, "hash": one.hash} | {name: one.now(name) for name in columns}
        for one in changes
        if not set(one.new) <= set(DECAY_FIELDS)
    ]
    if rows:
        edits.write(db, tenant, rows)
        activity.update_worth(db, tenant, [one.before.id for one in changes])
        moved = [one.before.id for one in changes if not set(one.new).isdisjoint(DISTINGUISHING)]
        if moved:
            duplicate_pairs.compare_again(db, tenant, moved)


def _write_decay_state(
    context: Context, db: Connection, tenant: int, rows: Activity, changes: Sequence[Change], now: datetime
) -> None:
    """Write changed decay classes and confidence, which confirms the facts and restarts their lifetimes."""
    by_id = {one.before.id: one for one in changes if not set(one.new).isdisjoint(DECAY_FIELDS)}
    if not by_id:
        return
    own = rows.among(by_id)
    changed = [by_id[id_] for id_ in own.ids]
    classes = [one.now("decay_class") for one in changed]
    confirmed = _confirmed(own, changed, classes, now.timestamp())
    faded = as_written(confirmed.anchors, now.timestamp(), rules_for(context, db, own.namespaces))
    lifetimes = [lifetime.expiry(name, 0.0) for name in classes]
    edits.write_decay_state(db, tenant, confirmed, [one.source or "" for one in changed], lifetimes, faded)


def _confirmed(rows: Activity, changed: Sequence[Change], classes: Sequence[str | None], instant: float) -> Activity:
    """Return facts with their decay classes and confidence after an edit, and their lifetimes restarted."""
    permanent = np.array([name == PERMANENT for name in classes], dtype=np.bool_)
    branch = _branches(rows, permanent)
    anchors = replace(
        rows.anchors,
        confidence=np.array([one.now("confidence") for one in changed], dtype=np.float64),
        confirmed_at=np.maximum(rows.anchors.confirmed_at, instant),
        expires_at=expiries(classes, np.maximum(rows.anchors.pinned_until, instant)),
        halvings=np.zeros_like(rows.anchors.halvings),
        permanent=permanent | (branch == Branch.PERMANENT),
        branch=branch,
    )
    return replace(rows, anchors=anchors, decay_classes=[name or "" for name in classes])


def _branches(rows: Activity, permanent: Any) -> Any:
    """Return the branches of facts: an episode is permanent if its decay class is, else persistent."""
    branch = rows.anchors.branch
    episode = (branch == Branch.PERSISTENT) | (branch == Branch.PERMANENT)
    return np.where(episode, np.where(permanent, int(Branch.PERMANENT), int(Branch.PERSISTENT)), branch)


def _values(change: Change, *, before: bool = False) -> dict[str, Any]:
    """Return the old or new values of the changed fields, for the history."""
    fields = asdict(change.before) if before else change.new
    shown = {name: fields[name] for name in change.fields}
    return {name: one.isoformat() if isinstance(one, datetime) else one for name, one in shown.items()}
