"""Statements: the facts that make them, and statements forgotten on request that must not be stored again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias
from uuid import UUID

from ebb.contract.values import REQUESTED
from psycopg.rows import class_row

from workers.core import text
from workers.storage import columns, merged_texts
from workers.storage.connection import Connection, fetch_all, number


@dataclass(frozen=True, slots=True)
class Stated:
    """A live fact and the statement that it makes; the text is read only where the hash is of an earlier version."""

    id: UUID
    hash: bytes
    created_at: datetime
    kind: str
    text: str | None
    entity: str | None
    key: str | None
    value: str | None

    @property
    def identity(self) -> bytes:
        """Return the identity of the statement, whichever version stored it."""
        if self.text is None or self.kind not in TEXTUAL:
            return self.hash
        return text.statement_digest(self.text, self.entity, self.key, self.value)


Known: TypeAlias = Mapping[bytes, Sequence[Stated]]
"""Live facts by the digest of their text."""

TEXTUAL = ("semantic", "episodic")
"""Kinds of facts that are identified by their texts, not by their place in a document or store."""

LAST = b"\xff" * (text.MARK * text.MARKS + 1)
"""Upper bound of the identities that begin with the digest of a text."""

MOST_OF_ONE_TEXT = 1_000
"""Maximum number of statements with one text that are compared with a new one."""

# An identity begins with the digest of its text, so statements with one text are adjacent in the index. The text is
# read for facts of an earlier version, whose identity is only that digest. As to `select`, see `server.OUTDATED`.
KNOWN_BY_HASH = """
    select known.id, known.hash, known.created_at, known.kind,
        case when length(known.hash) = 32 then text end as text, entity, key, value
    from unnest(%(stems)b::bytea[]) as said (stem)
    cross join lateral (
        select id, hash, created_at, kind, text, entity, key, value from facts
        where namespace = (select %(namespace)s::int) and hash >= stem and hash <= stem || %(last)b
            and forgotten_at is null and superseded_at is null
        order by hash
        limit %(most)s
    ) as known
"""

# Of a text with more statements than are compared: those that a new one may equal, whatever their order.
KNOWN_EXACTLY = """
    select id, hash, created_at, kind, case when length(hash) = 32 then text end as text, entity, key, value
    from facts
    where namespace = %(namespace)s and hash = any(%(hashes)b) and forgotten_at is null and superseded_at is null
"""

EARLIER = """
    select id, hash, created_at, kind, text, entity, key, value from facts
    where namespace = %(namespace)s and id = any(%(ids)b) and length(hash) = 32
"""

# Unless another live fact has the identity, which is unique, or an edit has changed it meanwhile.
IDENTIFY = """
    update facts set hash = new.hash
    from unnest(%(ids)b::uuid[], %(hashes)b::bytea[]) as new (id, hash)
    where facts.namespace = %(namespace)s and facts.id = new.id and length(facts.hash) = 32
        and not exists (
            select from facts as other
            where other.namespace = %(namespace)s and other.hash = new.hash
                and other.forgotten_at is null and other.superseded_at is null
        )
"""


def known_by_hash(db: Connection, namespace: int, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return the live fact that makes each statement, if any; the newest of several."""
    return matches(hashes, ask(db, namespace, hashes)())


def known_with_other_detail(hashes: Sequence[bytes], known: Known) -> dict[bytes, UUID]:
    """Return the live fact that makes each statement with more or less detail, which the unique index does not find."""
    found = {hash_: _match(hash_, known.get(text.text_digest(hash_), [])) for hash_ in hashes}
    return {hash_: one.id for hash_, one in found.items() if one is not None and one.hash != hash_}


def known_exactly(db: Connection, namespace: int, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return the live fact that makes exactly each statement, if any."""
    known = [one for stated in ask(db, namespace, hashes)().values() for one in stated]
    said = {one.identity: one.id for one in known}
    return {hash_: said[hash_] for hash_ in hashes if hash_ in said}


def matches_identified(db: Connection, namespace: int, hashes: Sequence[bytes], known: Known) -> dict[bytes, UUID]:
    """Return the same as `matches`, and write full identities to facts of an earlier version."""
    _identify(db, namespace, [one for stated in known.values() for one in stated])
    return matches(hashes, known)


def identify(db: Connection, namespace: int, ids: Sequence[UUID]) -> None:
    """Write full identities to facts of an earlier version, which identified statements by their texts alone."""
    _identify(db, namespace, fetch_all(db, Stated, EARLIER, {"namespace": namespace, "ids": list(ids)}, binary=True))


def _identify(db: Connection, namespace: int, known: Sequence[Stated]) -> None:
    earlier = [one for one in known if one.identity != one.hash]
    if earlier:
        given = {"ids": [one.id for one in earlier], "hashes": [one.identity for one in earlier]}
        db.execute(IDENTIFY, given | {"namespace": namespace}, binary=True)


def ask(db: Connection, namespace: int, hashes: Sequence[bytes]) -> Callable[[], Known]:
    """Send the query for the live facts with the same texts as these statements; return its reader."""
    if not hashes:
        return dict
    stems = columns.byteas(list(dict.fromkeys(map(text.text_digest, hashes))))
    given = {"namespace": namespace, "stems": stems, "last": LAST, "most": MOST_OF_ONE_TEXT}
    rows = db.cursor(row_factory=class_row(Stated)).execute(KNOWN_BY_HASH, given, binary=True)
    return partial(_known, db, namespace, hashes, rows)


def _known(db: Connection, namespace: int, hashes: Sequence[bytes], rows: Iterable[Stated]) -> Known:
    found: dict[bytes, list[Stated]] = {}
    for one in rows:
        found.setdefault(text.text_digest(one.hash), []).append(one)
    cut = [hash_ for hash_ in hashes if len(found.get(text.text_digest(hash_), ())) >= MOST_OF_ONE_TEXT]
    for one in _known_exactly(db, namespace, cut) if cut else ():
        found[text.text_digest(one.hash)].append(one)
    return found


def _known_exactly(db: Connection, namespace: int, hashes: Sequence[bytes]) -> list[Stated]:
    """Return the live facts that make these statements, with all or less of their detail."""
    variants = list(dict.fromkeys(variant for hash_ in hashes for variant in text.less_specific(hash_)))
    given = {"namespace": namespace, "hashes": columns.byteas(variants)}
    return fetch_all(db, Stated, KNOWN_EXACTLY, given, binary=True)


def matches(hashes: Sequence[bytes], known: Known) -> dict[bytes, UUID]:
    """Return the live fact that makes each statement, if any; the newest of several."""
    found = {hash_: _match(hash_, known.get(text.text_digest(hash_), [])) for hash_ in hashes}
    return {hash_: one.id for hash_, one in found.items() if one is not None}


def _match(hash_: bytes, known: Sequence[Stated]) -> Stated | None:
    """Return the fact that makes exactly that statement, else the newest that makes it with more or less detail."""
    exact = next((one for one in known if one.identity == hash_), None)
    if exact is not None:
        return exact
    like = [one for one in known if text.same_statement(one.identity, hash_)]
    return max(like, key=lambda one: (one.created_at, one.id), default=None)


MORE = b"+"
"""Suffix of a text's identity: a forgotten statement with that text had an entity, key or value."""

HASHES = """
    select facts.namespace, facts.id, hash
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    where forgotten_reason = any(%(requested)s)
"""

# What edits made of the statements, latest edit first.
EDITED = """
    select facts.namespace, facts.id, text, jsonb_build_object('entity', entity, 'key', key, 'value', value) as about,
        jsonb_agg(details -> 'was' order by events.id desc) as was
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    join events on events.namespace = facts.namespace and events.fact = facts.id
    where forgotten_reason = any(%(requested)s) and kind = any(%(kinds)s)
        and what = 'edited' and details -> 'was' ?| array['entity', 'key', 'value']
    group by facts.namespace, facts.id
"""

# Of two facts with one hash the one forgotten last is recorded, also if an import meets an earlier one after it. One
# that stated it before an edit takes no other's place, as its restoration would revoke the other's request. In key
# order, to avoid deadlocks.
ADD_FORGOTTEN = """
    insert into forgotten_hashes (namespace, digest, fact, forgotten_at, reason)
    select distinct on (1, 2) facts.namespace, sha256(uuid_send(salt) || said), facts.id, forgotten_at, forgotten_reason
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[], %(said)s::bytea[], %(edited)s::bool[])
        as gone (namespace, id, said, edited)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    join namespaces on namespaces.id = facts.namespace
    where forgotten_reason = any(%(requested)s) and not (edited and exists (
        select from forgotten_hashes as known
        where known.namespace = facts.namespace and known.digest = sha256(uuid_send(salt) || said)
            and known.fact <> facts.id
    ))
    order by 1, 2, edited, forgotten_at desc
    on conflict (namespace, digest) do update
    set fact = excluded.fact, forgotten_at = excluded.forgotten_at, reason = excluded.reason
    where excluded.forgotten_at >= forgotten_hashes.forgotten_at
"""

# The digests are computed only if the namespace has any record.
FORGOTTEN_AMONG = """
    select said.place - 1, fact
    from unnest(%(hashes)b::bytea[]) with ordinality as said (hash, place)
    join namespaces on namespaces.id = %(namespace)s
    join forgotten_hashes on forgotten_hashes.namespace = namespaces.id
        and digest = sha256(uuid_send(salt) || said.hash)
    where forgotten_hashes.namespace = %(namespace)s
        and (select exists (select from forgotten_hashes where namespace = %(namespace)s))
"""

FORGOTTEN_OF = """
    select fact, forgotten_at, reason from forgotten_hashes
    where namespace = %(namespace)s and fact = any(%(facts)s)
"""

COUNT_FORGOTTEN = """
    select count(distinct fact) from forgotten_hashes
    where namespace = %(namespace)s and forgotten_at = %(now)s and reason = 'asked'
"""

LIFT_FORGOTTEN = """
    delete from forgotten_hashes
    using unnest(%(hashes)s::bytea[]) as said (hash), namespaces
    where forgotten_hashes.namespace = %(namespace)s and namespaces.id = %(namespace)s
        and digest = sha256(uuid_send(salt) || said.hash)
"""

LIFT_FORGOTTEN_OF = "delete from forgotten_hashes where namespace = %(namespace)s and fact = any(%(facts)s)"


def add_forgotten(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Record the statements of tombstones that were forgotten on request, also as they were before edits.

    Their texts are no longer taken for statements of what they were merged into.
    """
    for tenant in set(namespaces):
        identify(db, tenant, [id_ for own, id_ in zip(namespaces, ids, strict=True) if own == tenant])
    given = {"namespaces": list(namespaces), "ids": list(ids), "requested": list(REQUESTED)}
    last, before = db.execute(HASHES, given).fetchall(), _before_edits(db, given)
    made = [*((*one, False) for one in last), *((*one, True) for one in before)]
    for tenant in {own for own, *_ in last}:
        merged_texts.drop_stated(db, tenant, [hash_ for own, _, hash_ in last if own == tenant])
    said = [(own, id_, one, edited) for own, id_, hash_, edited in made for one in _noted(hash_)]
    owners, gone, hashes, edited = map(list, zip(*said, strict=True)) if said else ([], [], [], [])
    db.execute(ADD_FORGOTTEN, given | {"namespaces": owners, "ids": gone, "said": hashes, "edited": edited})


def _before_edits(db: Connection, given: Mapping[str, object]) -> list[tuple[int, UUID, bytes]]:
    """Return (namespace, fact, identity) of what edited facts stated before, without what another live fact states."""
    found = []
    for own, id_, said, about, earlier in db.execute(EDITED, {**given, "kinds": list(TEXTUAL)}).fetchall():
        for was in (one for one in earlier if isinstance(one, dict)):
            about |= {name: one for name, one in was.items() if name in about and isinstance(one, str | None)}
            found.append((own, id_, text.statement_digest(said, **about)))
    live = {
        (own, one) for own in {own for own, *_ in found} for one in known_exactly(db, own, [one[2] for one in found])
    }
    return [(own, id_, hash_) for own, id_, hash_ in found if (own, hash_) not in live]


def forgotten_among(db: Connection, namespace: int, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return which of these statements must stay forgotten, and the fact that each was.

    Covers the exact statement, one with the same text and less detail, and any with the same text if this statement has
    no detail. A record of an earlier version, or of a statement without detail, covers all statements with its text.
    """
    return ask_forgotten_among(db, namespace, hashes)()


def ask_forgotten_among(db: Connection, namespace: int, hashes: Sequence[bytes]) -> Callable[[], dict[bytes, UUID]]:
    """Send the query of `forgotten_among`; return its reader."""
    said = [(hash_, variant) for hash_ in hashes for variant in _covering(hash_)]
    given = {"namespace": namespace, "hashes": columns.byteas([variant for _, variant in said])}
    rows = db.execute(FORGOTTEN_AMONG, given, binary=True)
    return lambda: {said[place][0]: fact for place, fact in rows}


def forgotten_of(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, tuple[datetime, str]]:
    """Return the time and reason of facts forgotten on request, including purged ones."""
    rows = db.execute(FORGOTTEN_OF, {"namespace": namespace, "facts": list(ids)})
    return {fact: (forgotten_at, reason) for fact, forgotten_at, reason in rows}


def count_forgotten(db: Connection, namespace: int, now: datetime) -> int:
    """Return how many facts were forgotten on request at an instant, including those that are erased."""
    return number(db, COUNT_FORGOTTEN, {"namespace": namespace, "now": now})


def lift_forgotten(db: Connection, namespace: int, hashes: Sequence[bytes]) -> None:
    """Allow these statements to be stored again."""
    noted = {variant for hash_ in hashes for variant in (*_covering(hash_), *_noted(hash_))}
    db.execute(LIFT_FORGOTTEN, {"namespace": namespace, "hashes": sorted(noted)})


def lift_forgotten_of(db: Connection, namespace: int, ids: Sequence[UUID]) -> None:
    """Allow all statements that were recorded for these facts to be stored again."""
    db.execute(LIFT_FORGOTTEN_OF, {"namespace": namespace, "facts": list(ids)})


def _noted(hash_: bytes) -> list[bytes]:
    """Return the hashes recorded for a forgotten statement: its own and, if it has details, that of its text."""
    plain = text.least_specific(hash_)
    return [hash_] if plain == hash_ else [hash_, plain + MORE]


def _covering(hash_: bytes) -> list[bytes]:
    """Return the hashes whose record prevents this statement from being stored."""
    plain = text.least_specific(hash_)
    more = [plain + MORE] if plain == hash_ else []
    return list(dict.fromkeys([*text.less_specific(hash_), text.text_digest(hash_), *more]))
