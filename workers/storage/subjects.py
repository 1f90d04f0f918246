"""Subjects: all facts about something, live or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ebb.contract.recall import Filters

from workers.core.names import folded
from workers.storage import columns, deep
from workers.storage.candidates import FILTERED, Scope, quoted
from workers.storage.connection import Connection, scalar

IN_ANY_CASE = ("entity", "key")

CONTENT_FILTERS = ("tag", "category", "kind", "role", "entity", "key", "session", "source")
"""The filters on what a fact says."""

STEMS = "select tsvector_to_array(stems(%(query)s))"

# Facts forgotten on request are included only for erasing. Tags and stems are looked up in the text index.
FITTING = f"""
    from facts
    where facts.namespace = %(namespace)s and {FILTERED}
        and (%(words)s::tsquery is null or facts.search @@ %(words)s::tsquery)
        and (%(erasing)s or forgotten_reason is null or forgotten_reason not in ('asked', 'retracted'))
"""

# All at once: for some filters there is no index, so that each batch would read the whole namespace.
IDS = f"select facts.id {FITTING} order by facts.id"

MATCHING = f"select facts.id, facts.text {FITTING} and facts.id = any(%(ids)b::uuid[]) order by facts.id"


def stems(db: Connection, query: str) -> list[str]:
    """Return the stems of a query's words, without stop words."""
    return list(scalar(db, STEMS, {"query": query}))


@dataclass(frozen=True, slots=True)
class Subject:
    """What facts are about: fields with their values, and stems that their texts must contain, if any.

    `erasing` includes facts that are forgotten on request already.
    """

    fields: Mapping[str, Any]
    stems: Sequence[str] | None = None
    erasing: bool = False

    def parameters(self, namespace: int, now: datetime) -> dict[str, Any]:
        """Return the parameters of SQL statements with `FITTING`."""
        tags = [f"tag {self.fields['tag']}"] if "tag" in self.fields else []
        words = [f"namespace {namespace}", *tags, *(self.stems or ())] if tags or self.stems else []
        scope = Scope(now, Filters(**self.fields, documents="source" in self.fields))
        given = {"namespace": namespace, "erasing": self.erasing}
        return scope.parameters | given | {"words": " & ".join(map(quoted, words)) or None}


def ids(db: Connection, namespace: int, subject: Subject, now: datetime) -> list[UUID]:
    """Return all facts that match a subject, in order."""
    return [id_ for (id_,) in db.execute(IDS, subject.parameters(namespace, now), binary=True, prepare=False)]


def matching(db: Connection, namespace: int, subject: Subject, among: Sequence[UUID], now: datetime) -> dict[UUID, str]:
    """Return the texts of those among some facts that still match a subject, by id."""
    given = subject.parameters(namespace, now) | {"ids": columns.uuids(among)}
    return dict(db.execute(MATCHING, given, binary=True).fetchall())


def matching_deep(db: Connection, namespace: int, subject: Subject, among: Sequence[UUID]) -> dict[UUID, str]:
    """Return the texts of those among some facts that are in deep memory and match a subject, by id."""
    found = deep.said(db, namespace, among)
    fitting = [
        id_ for id_, fact in found.items() if all(_fits(fact, name, one) for name, one in subject.fields.items())
    ]
    if subject.stems is not None and fitting:
        held = deep.containing(db, [found[id_] for id_ in fitting], subject.stems)
        fitting = [id_ for id_, said in zip(fitting, held, strict=True) if all(said)]
    return {id_: str(found[id_]["text"]) for id_ in fitting}


def passes_filters(fact: Mapping[str, Any], filters: Filters) -> bool:
    """Return whether a fact in deep memory passes filters, except those on tier, pins and documents.

    These depend on more than what it says, and are applied when it is unpacked.
    """
    given = filters.filters()
    return all(_fits(fact, name, given[name]) for name in CONTENT_FILTERS if given[name] is not None)


def _fits(fact: Mapping[str, Any], name: str, wanted: Any) -> bool:
    if name == "tag":
        return wanted in fact["tags"]
    if name == "session":
        return any(one is not None and str(one) == str(wanted) for one in fact["sessions"])
    if name in IN_ANY_CASE:
        return fact[name] is not None and folded(fact[name]) == folded(wanted)
    return bool(fact[name] == wanted)
