"""Deep memory: facts that ended by decay or expiry, packed, until they are restored or erased."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Bit
from psycopg.rows import class_row
from psycopg.types.json import Json, Jsonb

from workers.core import decay_intervals, tiers
from workers.core.arrays import Bytes
from workers.core.text import identity
from workers.storage import activity, columns, imports, merged_texts, packing
from workers.storage.branches import BETWEEN_FACTS, DATED_EVENTS, Branch, older_details
from workers.storage.candidates import WITHOUT_WORDS
from workers.storage.connection import Connection, fetch_all, number

FINGERPRINT = 32767

MOST_WORDS = 8
"""Number of a query's stems that are searched for, the rarest ones."""

AT_ONCE = 1_000
"""Facts that are unpacked at once."""

# Only stems, as queries are stemmed too.
WORDS = f"""case when {WITHOUT_WORDS} then '{{}}'
            else tsvector_to_array(stems(concat_ws(' ', text, category, entity, key, value))) end as words"""

READ = f"""
    select facts.namespace, facts.id, row_to_json(facts) as fact,
        row_to_json(activity) as state,
        {WORDS},
        (
            select json_agg(json_build_object('at', at, 'what', what, 'details', details) order by events.id)
            from events where events.namespace = facts.namespace and events.fact = facts.id
        ) as events,
        (
            select json_agg(json_build_object('source', source, 'target', target, 'type', type, 'strength', strength,
                'created_at', created_at))
            from links where links.namespace = facts.namespace and facts.id in (source, target)
        ) as links,
        (
            select json_agg(json_build_object('fact', fact, 'other', other, 'found_at', found_at,
                'accepted_at', accepted_at))
            from contradictions where contradictions.namespace = facts.namespace and facts.id in (fact, other)
        ) as contradictions,
        (
            select json_agg(json_build_object('fact', fact, 'other', other, 'similarity', similarity,
                'found_at', found_at, 'apart_at', apart_at))
            from likenesses where likenesses.namespace = facts.namespace and facts.id in (fact, other)
        ) as likenesses,
        (
            select json_agg(json_build_object('fact', fact, 'id', occurrences.id, 'session', occurrences.session,
                'turn', occurrences.turn, 'role', occurrences.role, 'said_at', said_at) order by occurrences.session)
            from occurrences where occurrences.namespace = facts.namespace and fact = facts.id
        ) as occurrences
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as wanted (namespace, id)
    join facts on facts.namespace = wanted.namespace and facts.id = wanted.id
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
"""

DEMOTE = f"""
    insert into deep (forgotten_at, namespace, signature, id, words, body)
    select forgotten_at, facts.namespace, case when not {WITHOUT_WORDS} then signature end, facts.id,
        new.words::bit varying, new.body
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[], %(words)s::text[], %(bodies)s::bytea[])
        as new (namespace, id, words, body)
    join facts on facts.namespace = new.namespace and facts.id = new.id
    left join signatures on signatures.namespace = facts.namespace and signatures.fact = facts.id
"""

# Foreign keys delete the rows of other tables.
LEAVE = """
    delete from facts using unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    where facts.namespace = gone.namespace and facts.id = gone.id
"""

# Only the hash of an id is indexed.
THESE = """
    where namespace = %(namespace)s and id = any(%(ids)b::uuid[])
        and uuid_hash(id) = any(array(select uuid_hash(one) from unnest(%(ids)b::uuid[]) as one))
"""

TAKE = f"""
    delete from deep {THESE}
    returning namespace, id, forgotten_at, body, signature is not null as signed, signature::text
"""

# In order, to avoid deadlocks.
LOCK = f"select from deep {THESE} order by id for update"

SIGN = """
    insert into signatures (namespace, fact, live, signature)
    select %(namespace)s, fact, false, signature::bit(1024)
    from unnest(%(ids)s::uuid[], %(signatures)s::text[]) as new (fact, signature)
    where signature is not null
"""

DEEP = "select namespace, id, forgotten_at, body, signature is not null as signed from deep"
"""The columns of `Deep`."""

SELECTED = """
    where namespace = %(namespace)s and get_byte(body, 8) = any(%(reason_numbers)s)
        and (%(run)s::uuid is null or substring(body from 18 for 16) = uuid_send(%(run)s))
        and (%(since)s::timestamptz is null or forgotten_at >= %(since)s)
        and (%(until)s::timestamptz is null or forgotten_at < %(until)s)
"""

FOUND = f"""
    {DEEP}
    {SELECTED}
        and (%(at)s::timestamptz is null or (forgotten_at, id) < (%(at)s, %(fact)s::uuid))
    order by forgotten_at desc, id desc
    limit %(limit)s
"""

OLD = "where forgotten_at < %(before)s and (%(namespace)s::int is null or namespace = %(namespace)s)"

# With the bodies of merged facts; 4 is the index of `merged` in `packing.REASONS`.
CLAIM_OLD = f"""
    select namespace, id, forgotten_at, case when get_byte(body, 8) = 4 then body end from deep
    {OLD} and (%(in_gaps)s or not exists (
        select from namespaces where namespaces.id = deep.namespace and gap_until is not null
    ))
    limit %(limit)s
    for update skip locked
"""

ERASE = """
    delete from deep using unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    where deep.namespace = gone.namespace and uuid_hash(deep.id) = uuid_hash(gone.id) and deep.id = gone.id
"""

# Prefix for statements on facts and activity, which then read the unpacked rows instead of the tables. They are
# materialized, as a nested loop would unpack every row of activity again for each fact.
UNPACKED = """
    with facts as materialized (
        select one.* from json_array_elements(%(facts)s::json) as unpacked (row),
            lateral json_populate_record(null::facts, row) as one
    ),
    activity as materialized (
        select one.* from jsonb_array_elements(%(activity)s::jsonb) as unpacked (row),
            lateral jsonb_populate_record(null::activity, row) as one
    ),
    vectors as (select * from vectors where false)
"""

LOCK_ALL = "lock table deep in exclusive mode"

STEMMED = f"{UNPACKED} select id::text, {WORDS} from facts"

STEM = """
    update deep set words = new.words::bit varying
    from unnest(%(ids)s::uuid[], %(words)s::text[]) as new (id, words)
    where namespace = %(namespace)s and uuid_hash(deep.id) = uuid_hash(new.id) and deep.id = new.id
"""

ANY = "select exists (select from deep where namespace = %(namespace)s)"

# One scan of the namespace; returns the best by each of the two measures. Merged facts (4) are left out.
SEARCH = """
    with measured as materialized (
        select id, signature <~> %(query)s as bits, marked(words, %(places)s, %(weights)s) as said,
            octet_length(body) as size
        from deep where namespace = %(namespace)s and get_byte(body, 8) <> 4
    )
    select distinct id, bits, said, size
    from (
        (select * from measured where bits is not null order by bits limit %(limit)s)
        union all
        (select * from measured where said > 0 order by said desc limit %(limit)s)
    ) as best
"""

CONTAINING = """
    select array(
        select (stem = any(held.lexemes))::int from unnest(%(stems)s::text[]) with ordinality as asked (stem, place)
        order by place
    )
    from unnest(%(texts)s::text[]) with ordinality as given (body, number)
    cross join lateral (select tsvector_to_array(stems(body)) as lexemes) as held
    order by number
"""

BODIES = f"{DEEP} {THESE}"

# The last condition is the costliest, and few facts meet the other.
LINKED = f"""
    {DEEP}
    where namespace = %(namespace)s
        and marked(words, %(places)s, %(weights)s) = %(all)s
        and exists (
            select from unnest(%(others)s::int[]) as place where get_bit(words, mod(place, length(words))) = 1
        )
"""

IDS = "select id from deep where namespace = %(namespace)s order by id"

LOCKED = f"{BODIES} order by id for update"

LENGTHS = f"select id, length(words) from deep {THESE}"

REWRITE = """
    update deep set body = new.body, words = coalesce(deep.words | new.words::bit varying, deep.words)
    from unnest(%(ids)s::uuid[], %(words)s::text[], %(bodies)s::bytea[]) as new (id, words, body)
    where namespace = %(namespace)s and uuid_hash(deep.id) = uuid_hash(new.id) and deep.id = new.id
"""

COUNT_OLD = f"select count(*) from deep {OLD}"

COUNT_SELECTED = f"select count(*) from deep {SELECTED}"

EXPORT = """
    select deep.namespace, deep.id, forgotten_at, body, signature is not null as signed
    from deep join namespaces on namespaces.id = deep.namespace
    where %(namespace)s::text is null and position(' ' in namespaces.name) = 0 or namespaces.name = %(namespace)s
    order by deep.namespace, deep.id
"""

ENDED_STATE = {
    "held": False, "retired": True, "compared": False, "due_at": "infinity", "ends_at": "infinity", "worth": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Deep:
    """A row of deep memory without its words; `signed` if it has a signature."""

    namespace: int
    id: UUID
    forgotten_at: datetime
    body: bytes
    signed: bool

    @property
    def hash(self) -> bytes:
        """Return the identity of its statement."""
        return bytes.fromhex(self.rows()[0]["hash"].removeprefix("\\x"))

    def rows(self) -> packing.Unpacked:
        """Return its rows of `facts` and `activity`, and its rows of other tables by table name."""
        fact, state, beside = packing.unpack(self.body)
        own = {"namespace": self.namespace, "id": str(self.id)}
        when = {"forgotten_at": self.forgotten_at.isoformat(), "tombstone_at": None}
        fact |= own | when | {"hash": fact["hash"] or f"\\x{_identity(fact).hex()}"}
        if state["tier"] is None:
            state["tier"] = _tier(state, self.forgotten_at)
        state |= {"namespace": self.namespace, "fact": str(self.id), "fidelity": FINGERPRINT if self.signed else 0}
        state |= ENDED_STATE
        beside.setdefault("events", [_forgotten(fact)])
        return fact, state, beside


def demote(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> int:
    """Move locked tombstones into deep memory; return how many."""
    found = fetch_all(db, dict[str, Any], READ, {"namespaces": list(namespaces), "ids": list(ids)})
    given = {"namespaces": [one["namespace"] for one in found], "ids": [one["id"] for one in found]}
    words = [packing.marks([*one["words"], *_marks_of_links(one["fact"], one["links"] or [])]) for one in found]
    db.execute(DEMOTE, given | {"words": words, "bodies": [_packed(one) for one in found]})
    return db.execute(LEAVE, given).rowcount


def lock(db: Connection) -> None:
    """Keep facts from entering and leaving deep memory until the commit; searches go on."""
    db.execute(LOCK_ALL)


def stem(db: Connection, namespace: int) -> None:
    """Compute the words of a namespace's facts again, after a change of the language."""
    every = ids(db, namespace)
    for begin in range(0, len(every), AT_ONCE):
        facts, links = list[packing.Columns](), list[list[packing.Columns]]()
        for one in fetch_all(db, Deep, BODIES, {"namespace": namespace, "ids": every[begin : begin + AT_ONCE]}):
            fact, _, beside = packing.unpack(one.body)
            facts.append(fact | {"id": str(one.id)})
            links.append(beside.get("links", []))
        stems: dict[str, list[str]] = dict(
            db.execute(STEMMED, {"facts": Json(facts), "activity": Jsonb([])}).fetchall()
        )
        marked = [[*stems[one["id"]], *_marks_of_links(one, own)] for one, own in zip(facts, links, strict=True)]
        given = {"namespace": namespace, "ids": [one["id"] for one in facts]}
        db.execute(STEM, given | {"words": list(map(packing.marks, marked))})


def _marks_of_links(fact: packing.Columns, links: Sequence[packing.Columns]) -> list[str]:
    turns, parts = packing.drawn_from(fact, _from(links, fact["id"])), _parts(links, fact["id"])
    return [*(packing.DRAWN if turns else ()), *turns, *(packing.STATING if parts else ()), *parts]


def _from(links: Sequence[packing.Columns], id_: str) -> list[packing.Columns]:
    return [one for one in links if one["source"] == id_]


def _parts(links: Sequence[packing.Columns], id_: str) -> set[str]:
    return {one["source"] for one in links if one["target"] == id_ and one["type"] == "PART_OF"}


def drawn_from(db: Connection, namespace: int, turns: Sequence[UUID]) -> list[UUID]:
    """Return the facts in deep memory that were extracted from any of these turns. It reads the whole namespace."""
    wanted = {str(one) for one in turns}
    found = _linked(db, namespace, packing.DRAWN, wanted)
    return [id_ for id_, fact, links in found if wanted & packing.drawn_from(fact, _from(links, str(id_)))]


def stated(db: Connection, namespace: int, facts: Sequence[UUID]) -> set[UUID]:
    """Return those among facts that turns in deep memory state too. It reads the whole namespace."""
    wanted = {str(one) for one in facts}
    found = _linked(db, namespace, packing.STATING, wanted)
    return {UUID(part) for id_, _, links in found for part in wanted & _parts(links, str(id_))}


def _linked(
    db: Connection, namespace: int, marks: Sequence[str], others: Iterable[str]
) -> Iterator[tuple[UUID, packing.Columns, Sequence[packing.Columns]]]:
    """Yield the facts with all marks and one of some others, and a few more; with their columns and links."""
    given = _marked(marks, [1.0] * len(marks)) | {"all": len(marks), "others": packing.places(others)}
    for one in fetch_all(db, Deep, LINKED, given | {"namespace": namespace}):
        fact, _, beside = packing.unpack(one.body)
        yield one.id, fact, beside.get("links", [])


def promote(db: Connection, namespace: int, ids: Sequence[UUID], *, waits: bool = True) -> list[UUID]:
    """Move facts from deep memory back to tombstones; return them.

    A link, contradiction or near-duplicate returns when both of its facts have returned. If it `waits`, a lock does so
    until facts that are just being moved into deep memory are there. Those that are there are locked before, as a
    promotion locks the facts that are linked with its own.
    """
    db.execute(LOCK, {"namespace": namespace, "ids": list(ids)})
    if waits:
        activity.ask_lock(db, namespace, ids)
    taken = db.execute(TAKE, {"namespace": namespace, "ids": columns.uuids(ids)}).fetchall()
    if not taken:
        return []
    unpacked = [Deep(*one[:-1]).rows() for one in taken]
    imports.add_facts(db, namespace, [fact for fact, _, _ in unpacked])
    imports.add(db, imports.ADD_ACTIVITY, namespace, [state for _, state, _ in unpacked])
    given = {"namespace": namespace, "ids": [one[1] for one in taken], "signatures": [one[-1] for one in taken]}
    db.execute(SIGN, given)
    events = [{"fact": fact["id"], **event} for fact, _, beside in unpacked for event in beside["events"]]
    imports.add(db, imports.ADD_EVENTS, namespace, events)
    imports.add(db, imports.ADD_OCCURRENCES, namespace, _beside(unpacked, "occurrences"))
    _hand_over(db, namespace, unpacked)
    if links := imports.add_links(db, namespace, _beside(unpacked, "links")):
        ends = {id_ for source, target, _ in links for id_ in (source, target)}
        activity.update_worth(db, namespace, ends.intersection(one[1] for one in taken))
    imports.add(db, imports.ADD_CONTRADICTIONS, namespace, _beside(unpacked, "contradictions"))
    imports.add(db, imports.ADD_LIKENESSES, namespace, _beside(unpacked, "likenesses"))
    return [one[1] for one in taken]


def is_used(db: Connection, namespace: int) -> bool:
    """Return whether a namespace has facts in deep memory."""
    return bool(number(db, ANY, {"namespace": namespace}))


def search(
    db: Connection, namespace: int, query: Bytes | None, stems: Sequence[str], weights: Sequence[float], limit: int
) -> list[tuple[UUID, float | None, float, int]]:
    """Return the facts nearest to the (128,) query by signature, and those with the highest weight of matching stems.

    Each has the Hamming distance of its signature, if there is one, the sum of the weights of matching stems, which may
    include false positives, and the size of its body in bytes. At most `MOST_WORDS` stems are allowed.
    """
    given = {"namespace": namespace, "query": None if query is None else Bit(query.tobytes()), "limit": limit}
    given |= _marked(stems, weights)
    return db.execute(SEARCH, given).fetchall()


def _marked(words: Sequence[str], weights: Sequence[float]) -> dict[str, Any]:
    missing = MOST_WORDS - len(words)
    return {"places": [*packing.places(words), *[0] * missing], "weights": [*weights, *[0.0] * missing]}


def containing(db: Connection, facts: Iterable[packing.Columns], stems: Sequence[str]) -> list[list[int]]:
    """Return for each fact a 0 or 1 for each of n stems: whether its text contains it."""
    texts = [searched_text(one) for one in facts]
    return [held for (held,) in db.execute(CONTAINING, {"texts": texts, "stems": list(stems)})]


def ids(db: Connection, namespace: int) -> list[UUID]:
    """Return all facts in deep memory, in order."""
    return [id_ for (id_,) in db.execute(IDS, {"namespace": namespace})]


def said(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, packing.Columns]:
    """Return what those of some facts that are in deep memory say, see `packing.said`."""
    rows = fetch_all(db, Deep, BODIES, {"namespace": namespace, "ids": list(ids)})
    return {one.id: packing.said(one.body) for one in rows}


def searched_text(fact: packing.Columns) -> str:
    """Return what is searched of a fact: its text, and what it is about."""
    return " ".join(fact[name] or "" for name in ("text", "category", "entity", "key", "value"))


def statement(fact: packing.Columns) -> tuple[bytes, str | None]:
    """Return what is equal for facts that say the same, see `candidates.repeats`."""
    return _identity(fact), fact["text"] if fact["kind"] == "item" else None


def found(db: Connection, given: dict[str, Any]) -> list[Deep]:
    """Return the facts that a selection of `tombstones` matches, newest first."""
    return fetch_all(db, Deep, FOUND, given | _numbers(given))


def count_found(db: Connection, given: dict[str, Any]) -> int:
    """Return the number of facts that a selection of `tombstones` matches."""
    return number(db, COUNT_SELECTED, given | _numbers(given))


def erase(db: Connection, before: datetime, limit: int, namespace: int | None, *, in_gaps: bool) -> list[int]:
    """Erase facts of one namespace, or all, that ended before an instant; return the namespace of each.

    A digest by which the fact that one was merged into is known goes with it.
    """
    given = {"before": before, "limit": limit, "namespace": namespace, "in_gaps": in_gaps}
    old = db.execute(CLAIM_OLD, given).fetchall()
    owners = [own for own, *_ in old]
    db.execute(ERASE, {"namespaces": owners, "ids": [id_ for _, id_, *_ in old]})
    merged = [Deep(own, id_, at, body, signed=False) for own, id_, at, body in old if body is not None]
    for tenant in sorted({one.namespace for one in merged}):
        merged_texts.drop_stated(db, tenant, [one.hash for one in merged if one.namespace == tenant])
    return owners


def count_old(db: Connection, before: datetime, namespace: int | None) -> int:
    """Return the number of deep facts of one namespace, or all, that ended before an instant."""
    return number(db, COUNT_OLD, {"before": before, "namespace": namespace})


def rows(db: Connection, namespace: str | None, batch: int) -> Iterator[Deep]:
    """Yield the deep facts of one namespace, or all, with a server-side cursor of `batch` rows."""
    with db.cursor("export_deep", row_factory=class_row(Deep)) as cursor:
        cursor.itersize = batch
        yield from cursor.execute(EXPORT, {"namespace": namespace})


def parameters(those: Sequence[Deep]) -> dict[str, Any]:
    """Return the parameters of `UNPACKED`."""
    unpacked = [one.rows() for one in those]
    return {"facts": Json([fact for fact, _, _ in unpacked]), "activity": Jsonb([state for _, state, _ in unpacked])}


def _numbers(given: dict[str, Any]) -> dict[str, list[int]]:
    return {"reason_numbers": [number for number, one in enumerate(packing.REASONS) if one in given["reasons"]]}


def _packed(one: dict[str, Any]) -> bytes:
    fact = one["fact"]
    if fact["hash"] == f"\\x{_identity(fact).hex()}":
        fact["hash"] = None
    beside = {name: one[name] for name in ("events", "links", "contradictions", "likenesses", "occurrences")}
    if beside["events"] == [_forgotten(fact)]:
        beside["events"] = None
    state = one["state"]
    if state["tier"] == _tier(state, packing.instant(fact["forgotten_at"])):
        state["tier"] = None
    return packing.pack(fact, state, beside)


def _tier(state: packing.Columns, at: datetime) -> int:
    used = [one for one in (state["last_seen_at"], state["pinned_until"]) if one not in (None, "infinity", "-infinity")]
    seen = max(map(packing.instant, used))
    times = np.array([state["coactivations"]])
    strength = tiers.strength(np.array([state["base"]]), times)
    return int(tiers.tier(tiers.curve(strength, times), np.array([(at - seen) / timedelta(days=1)]))[0])


def _identity(fact: packing.Columns) -> bytes:
    return identity(fact["kind"], fact["text"], (fact["entity"], fact["key"], fact["value"]), fact["source"])


def _forgotten(fact: packing.Columns) -> packing.Columns:
    """Return the event of being forgotten, the only one of most facts, which is not stored."""
    run = {"run": fact["forgotten_by"]} if fact["forgotten_by"] else {}
    details = run | {"reason": fact["forgotten_reason"]}
    return {"at": fact["forgotten_at"], "what": "forgotten", "details": details}


def age(db: Connection, branch: Branch, ids: Sequence[UUID]) -> None:
    """Shift the instants of copied facts that are not packed relative to their creation, as others of a branch are."""
    if not branch.age:
        return
    for begin in range(0, len(ids), AT_ONCE):
        bodies = {}
        for one in fetch_all(db, Deep, BODIES, {"namespace": branch.id, "ids": ids[begin : begin + AT_ONCE]}):
            if not packing.is_dated(one.body, DATED_EVENTS):
                continue
            fact, state, beside = packing.unpack(one.body)
            for event in beside.get("events", []):
                if event["what"] in DATED_EVENTS:
                    event["details"] = older_details(event["details"], branch.age)
            if state["spells"] is not None:
                packed = bytes.fromhex(state["spells"].removeprefix("\\x"))
                state["spells"] = f"\\x{decay_intervals.older(packed, branch.age.total_seconds()).hex()}"
            bodies[one.id] = packing.pack(fact, state, beside)
        given = {"namespace": branch.id, "ids": [*bodies], "bodies": [*bodies.values()]}
        db.execute(REWRITE, given | {"words": [None] * len(bodies)})


def _hand_over(db: Connection, namespace: int, rows: Sequence[packing.Unpacked]) -> None:
    """Move rows between a returning fact and a fact that stays deep into the latter's body.

    The other facts are locked, as one that is just being moved into deep memory, or erased, would violate foreign keys.
    """
    handed: dict[str, list[tuple[str, packing.Columns]]] = {}
    for table, ends in BETWEEN_FACTS.items():
        for row in _beside(rows, table):
            for end in ends:
                handed.setdefault(row[end], []).append((table, row))
    if not handed:
        return
    activity.ask_lock(db, namespace, [UUID(one) for one in sorted(handed)])()
    given = {"namespace": namespace, "ids": list(handed)}
    others = fetch_all(db, Deep, LOCKED, given)
    lengths: dict[UUID, int] = dict(db.execute(LENGTHS, given).fetchall())
    words, bodies = [], []
    for one in others:
        fact, state, beside = packing.unpack(one.body)
        for table, row in handed[str(one.id)]:
            beside.setdefault(table, []).append(row)
        turns = _marks_of_links({**fact, "id": str(one.id)}, beside.get("links", []))
        words.append(packing.marks(turns, lengths[one.id]))
        bodies.append(packing.pack(fact, state, beside))
    given = {"namespace": namespace, "ids": [one.id for one in others]}
    db.execute(REWRITE, given | {"words": words, "bodies": bodies})


def _beside(rows: Sequence[packing.Unpacked], table: str) -> list[packing.Columns]:
    return [row for _, _, beside in rows for row in beside.get(table, [])]
