"""Subjects: all facts about something, live or not."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ebb.contract.recall import Filters

from workers.core.names import folded
from workers.storage import deep
from workers.storage.candidates import FILTERED, Scope
from workers.storage.connection import Connection, scalar

IN_ANY_CASE = ("entity", "key")

STEMS = "select tsvector_to_array(stems(%(query)s))"

# Facts forgotten on request are included only for erasing.
MATCHING = f"""
    select facts.id, facts.text from facts
    where facts.namespace = %(namespace)s and {FILTERED}
        and (%(after)s::uuid is null or facts.id > %(after)s)
        and (%(stems)s::text[] is null or tsvector_to_array(facts.search) @> %(stems)s::text[])
        and (%(erasing)s or forgotten_reason is null or forgotten_reason not in ('asked', 'retracted'))
    order by facts.id
    limit %(limit)s
"""


def stems(db: Connection, query: str) -> list[str]:
    """Return the stems of a query's words, without stop words."""
    return list(scalar(db, STEMS, {"query": query}))


def matching(
    db: Connection,
    namespace: int,
    subject: Mapping[str, Any],
    wanted: Sequence[str] | None,
    now: datetime,
    after: UUID | None,
    limit: int,
    *,
    erasing: bool,
) -> dict[UUID, str]:
    """Return the texts of the next facts that match a subject and contain all stems, by id."""
    scope = Scope(now, Filters(**subject, documents="source" in subject))
    given: dict[str, Any] = {"namespace": namespace, "after": after, "limit": limit, "erasing": erasing}
    given |= {"stems": None if wanted is None else list(wanted)}
    return dict(db.execute(MATCHING, scope.parameters | given).fetchall())


def matching_deep(
    db: Connection,
    namespace: int,
    subject: Mapping[str, Any],
    wanted: Sequence[str] | None,
    after: UUID | None,
    limit: int,
) -> tuple[dict[UUID, str], UUID | None]:
    """Return the texts of matching facts in the next batch of deep memory, and the id to continue after, if any."""
    found = deep.following(db, namespace, after, limit)
    fitting = [id_ for id_, fact in found.items() if all(_fits(fact, name, one) for name, one in subject.items())]
    if wanted is not None and fitting:
        held = deep.containing(db, namespace, fitting, wanted)
        fitting = [id_ for id_, said in zip(fitting, held, strict=True) if all(said)]
    return {id_: str(found[id_]["text"]) for id_ in fitting}, max(found) if len(found) == limit else None


def _fits(fact: Mapping[str, Any], name: str, wanted: Any) -> bool:
    if name == "tag":
        return wanted in fact["tags"]
    if name == "session":
        return any(one is not None and str(one) == str(wanted) for one in fact["sessions"])
    if name in IN_ANY_CASE:
        return fact[name] is not None and folded(fact[name]) == folded(wanted)
    return bool(fact[name] == wanted)
