"""Unpack: facts leave deep memory as tombstones that know when they ended."""

from collections.abc import Callable, Collection, Mapping, Sequence
from uuid import UUID

from workers.context import Context
from workers.memory.lifetime import date_ends
from workers.storage import deep, events, facts, imports, merged_texts, statements
from workers.storage.connection import Connection
from workers.storage.facts import Known


def unpack(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], *, waits: bool = True) -> None:
    """Move facts from deep memory back to tombstones, see `deep.promote`; without `waits`, do not wait for locks."""
    if ids:
        date_ends(context, db, tenant, deep.promote(db, tenant, ids, waits=waits))


def know_merged(context: Context, db: Connection, tenant: int, ids: Collection[UUID]) -> None:
    """Record which fact each merged text is known by, for these facts and all that they were merged with.

    Deep memory and archives do not keep that. Facts that were merged with these leave deep memory.
    """
    those = new = set(ids)
    while new := {*events.merged_into(db, tenant, new), *events.took_in(db, tenant, new)} - those:
        unpack(context, db, tenant, [*new], waits=False)
        those = those | new
    into = events.still_merged(db, tenant, those, those)
    last = last_kept(into)
    statements.identify(db, tenant, [*into])
    imports.lock_facts(db, tenant, {*last.values()})
    merged_texts.add_missing(db, tenant, last)


def last_kept(into: Mapping[UUID, UUID]) -> Mapping[UUID, UUID]:
    """Return the fact that each merged fact is part of at last, by the one that it was merged into itself."""
    last = into
    for _ in range(len(into).bit_length()):  # each follows twice as many merges; imported ones may be circular
        last = {gone: last.get(kept, kept) for gone, kept in last.items()}
    return last


def known_by_id(context: Context, db: Connection, tenant: int, ids: Sequence[UUID]) -> dict[UUID, Known]:
    """Return the existing facts among these ids; those in deep memory become tombstones."""
    return ask_known_by_id(context, db, tenant, ids)()


def ask_known_by_id(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID]
) -> Callable[[], dict[UUID, Known]]:
    """Send the query of `known_by_id`; return its reader."""
    asked = facts.ask_known_by_id(db, tenant, ids)

    def read() -> dict[UUID, Known]:
        known, unpacked = asked()
        date_ends(context, db, tenant, unpacked)
        return known

    return read
