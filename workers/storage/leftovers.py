"""Leftovers: rows of facts that are gone. Foreign keys forbid them, but a restore or an operator may pass these by."""

from collections.abc import Sequence
from uuid import UUID

from workers.storage.connection import Connection

Range = tuple[int, UUID, UUID]
"""A namespace, and behind which fact of it to look, up to which."""

# Every table is read by an index on namespace and fact, and each range is as short as what the doctor takes at once.
FIND = """
    with wanted as materialized (
        select * from unnest(%(namespaces)b::int[], %(after)b::uuid[], %(upto)b::uuid[])
            as wanted (namespace, after, upto)
    ),
    named as (
        select activity.namespace, activity.fact from wanted
        join activity on activity.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select vectors.namespace, vectors.fact from wanted
        join vectors on vectors.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select signatures.namespace, signatures.fact from wanted
        join signatures on signatures.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select events.namespace, events.fact from wanted
        join events on events.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select links.namespace, source from wanted
        join links on links.namespace = wanted.namespace and source > after and source <= upto
        union all
        select links.namespace, target from wanted
        join links on links.namespace = wanted.namespace and target > after and target <= upto
        union all
        select contradictions.namespace, fact from wanted
        join contradictions on contradictions.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select contradictions.namespace, other from wanted
        join contradictions on contradictions.namespace = wanted.namespace and other > after and other <= upto
        union all
        select likenesses.namespace, fact from wanted
        join likenesses on likenesses.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select likenesses.namespace, other from wanted
        join likenesses on likenesses.namespace = wanted.namespace and other > after and other <= upto
    )
    select distinct namespace, fact from named
    where not exists (select from facts where facts.namespace = named.namespace and facts.id = named.fact)
    order by namespace, fact
"""

DELETE = """
    with gone as (select * from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)),
    of_vectors as (
        delete from vectors using gone where vectors.namespace = gone.namespace and fact = gone.id
    ),
    of_signatures as (
        delete from signatures using gone where signatures.namespace = gone.namespace and fact = gone.id
    ),
    of_events as (
        delete from events using gone where events.namespace = gone.namespace and fact = gone.id
    ),
    of_links as (
        delete from links using gone where links.namespace = gone.namespace and gone.id in (source, target)
    ),
    of_contradictions as (
        delete from contradictions using gone
        where contradictions.namespace = gone.namespace and gone.id in (fact, other)
    ),
    of_likenesses as (
        delete from likenesses using gone where likenesses.namespace = gone.namespace and gone.id in (fact, other)
    )
    delete from activity using gone where activity.namespace = gone.namespace and fact = gone.id
"""

EMPTY = """
    select id from namespaces
    where (%(own)s::int is null or id = %(own)s)
        and not exists (select from facts where facts.namespace = namespaces.id)
    order by id
"""


def find(db: Connection, ranges: Sequence[Range]) -> list[tuple[int, UUID]]:
    """Return the namespace and id of each fact of these ranges that is gone, and of which some row is left."""
    given = {
        "namespaces": [namespace for namespace, _, _ in ranges],
        "after": [after for _, after, _ in ranges],
        "upto": [upto for _, _, upto in ranges],
    }
    return db.execute(FIND, given, binary=True).fetchall()


def delete(db: Connection, gone: Sequence[tuple[int, UUID]]) -> None:
    """Delete whatever is left of facts that are gone."""
    db.execute(DELETE, {"namespaces": [tenant for tenant, _ in gone], "ids": [id_ for _, id_ in gone]})


def empty_namespaces(db: Connection, own: int | None) -> list[int]:
    """Return which namespaces, or whether this one, hold no fact."""
    return [id_ for (id_,) in db.execute(EMPTY, {"own": own})]
