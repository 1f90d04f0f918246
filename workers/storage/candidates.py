"""Candidates: the facts that a recall scores, and the descriptions of those that it returns."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from ebb.contract.recall import Filters
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from workers.core.arrays import Floats, Key, Vectors
from workers.core.fading import Anchors
from workers.core.tiers import Tier
from workers.storage import activity, columns
from workers.storage.connection import Connection, Cursor
from workers.storage.namespaces import Namespace
from workers.storage.supersession import GIVEN_END

NO_FILTERS = Filters()
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
WITHOUT_DOCUMENTS = Filters(documents=False)

# Read once, and only if sessions are given.
SAID_THERE = """facts.id = any(array(
            select fact from occurrences
            where occurrences.namespace = %(namespace)s and occurrences.session = any(%(sessions)s::jsonb[])
        ))"""

# The filters of a scope. Applied before each statement's limit, so that rare facts are not missed. The pinned facts are
# read once; by an `exists` for each fact, the planner may read all of them for each one.
FILTERED = f"""(%(tag)s::text is null or facts.tags @> array[%(tag)s::text])
        and (%(category)s::text is null or facts.category = %(category)s)
        and (%(kind)s::text is null or facts.kind = %(kind)s)
        and (%(role)s::text is null or facts.role = %(role)s)
        and (%(entity)s::text is null
            or left(folded(facts.entity), 200) = left(folded(%(entity)s), 200)
                and folded(facts.entity) = folded(%(entity)s))
        and (%(key)s::text is null or folded(facts.key) = folded(%(key)s))
        and (%(sessions)s::jsonb[] is null or facts.session = any(%(sessions)s::jsonb[]) or {SAID_THERE})
        and (%(source)s::text is null or facts.source = %(source)s)
        and (%(documents)s or facts.kind <> 'chunk')
        and (%(pinned)s::boolean is null or %(pinned)s = (facts.id in (
            select fact from activity where activity.namespace = %(namespace)s and pinned_until > %(now)s
        )))
        and (%(tier)s::int is null or %(tier)s = (
            select tier from activity where activity.namespace = facts.namespace and activity.fact = facts.id
        ))"""

MOST_BESIDE = 50
"""Maximum number of neighbours of one fact, the nearest: many facts may have one turn."""

# The live facts at most `reach` turns before or after others in the same session. `limit` looks them up fact by fact:
# in a namespace that statistics lack, the planner would read all facts first. `coalesce` as in `MATCHES`.
NEIGHBOURS = f"""
    select beside.id
    from facts
    cross join lateral (
        select id
        from facts as other
        where other.namespace = facts.namespace and other.session = facts.session
            and other.turn between facts.turn - %(reach)s::bigint and facts.turn + %(reach)s::bigint
            and coalesce(case when not %(deep)s then other.forgotten_at end, other.superseded_at) is null
        order by abs(other.turn - facts.turn), other.turn, other.id
        limit {MOST_BESIDE}
    ) as beside
    where facts.namespace = %(namespace)s and facts.id = any(%(neighbours_of)b)
"""

# A supersession after `known_as_of` was not known then.
LATER = "coalesce(superseded_at > %(known_as_of)s and %(known_as_of)s < %(now)s, false)"

# A fact that was forgotten or superseded by `known_as_of`, and is live since a later restore or use. In the order of
# ids, as a use may be from before the pass that it undoes.
ABSENT_THEN = """case when coalesce(%(known_as_of)s < %(now)s, false) then (
                select case
                        when what = 'superseded' then what
                        when what = 'forgotten'
                            and (not %(deep)s or details ->> 'reason' in ('asked', 'retracted', 'merged'))
                            then concat('forgotten: ', details ->> 'reason')
                    end
                from events
                where events.namespace = facts.namespace and events.fact = facts.id and at <= %(known_as_of)s
                    and what in ('forgotten', 'superseded', 'restored', 'revived')
                order by events.id desc
                limit 1
            ) end"""

PINNED_UNTIL = "least(coalesce(pinned_until, '-infinity'), %(now)s)"
"""Until when a pin has counted as use and as a confirmation."""

# Earlier versions also stored items without a place.
HAS_PLACE = """entity like '"%%"/' and metadata -> 'document' is not null"""

ITEM_ENDS = f"""case when facts.kind = 'item' and {HAS_PLACE} then
            greatest(last_confirmed_at, last_seen_at, pinned_until)
                + (metadata ->> 'minutes')::float8 * interval '1 minute' end"""
"""When an item with a lifetime of its own is hidden, even if it is held; null if it has none."""

# The rule that hides a fact in a scope; it does not depend on whether a pass has run.
HIDDEN = f"""coalesce(
            hidden_because(
                case when not %(deep)s or forgotten_reason in ('asked', 'retracted', 'merged') then forgotten_at end,
                forgotten_reason, case when {LATER} then null else superseded_at end, facts.created_at, valid_from,
                case when {LATER} then ({GIVEN_END}) else valid_until end, activity.expires_at, ends_at,
                %(deep)s or is_held(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s),
                %(now)s, %(as_of)s, %(known_as_of)s
            ),
            {ABSENT_THEN},
            case when not %(deep)s and {ITEM_ENDS} <= coalesce(%(as_of)s, %(known_as_of)s, %(now)s) then 'expired' end
        )"""

# The part of `HIDDEN` that needs only the fact itself. It is applied before a statement's limit, so that facts of other
# times do not take the places of visible ones.
SEEN_THEN = f"""hidden_because(
            case when not %(deep)s or forgotten_reason in ('asked', 'retracted', 'merged') then forgotten_at end,
            forgotten_reason, case when {LATER} then null else superseded_at end, facts.created_at, valid_from,
            case when {LATER} then null else valid_until end, null, null, false,
            %(now)s, %(as_of)s, %(known_as_of)s
        ) is null"""

# An item that was put without words has its place, or the beginning of a long one, as text: no question is about it.
WITHOUT_WORDS = """(
    facts.kind = 'item' and coalesce(starts_with(facts.entity || ' ' || facts.key, facts.text), false)
)"""

SHORT = 500
"""Bytes of a text that is read with its candidate; longer ones are read only for the few that are compared."""

BEGINNING = 100
"""Characters of each text that are read, in which its first word is looked for."""

# The rule by which a filter leaves out a candidate, that no search found.
FILTERED_OUT = f"""case
            when %(tag)s::text is not null and not tags @> array[%(tag)s::text] then 'other tag'
            when category is distinct from coalesce(%(category)s, category) then 'other category'
            when facts.kind <> %(kind)s::text then 'other kind'
            when role is distinct from coalesce(%(role)s::text, role) then 'other role'
            when folded(entity) is distinct from folded(coalesce(%(entity)s::text, entity)) then 'other entity'
            when folded(key) is distinct from folded(coalesce(%(key)s::text, key)) then 'other key'
            when not coalesce(session = any(%(sessions)s::jsonb[]), %(sessions)s::jsonb[] is null) and not {SAID_THERE}
                then 'other session'
            when source is distinct from coalesce(%(source)s::text, source) then 'other source'
            when tier <> %(tier)s::int then 'other tier'
            when facts.kind = 'chunk' and not %(documents)s then 'of a document'
            when %(pinned)s::boolean <> coalesce(pinned_until > %(now)s, false) then
                case when %(pinned)s then 'not pinned' else 'pinned' end
            end"""

# Only the columns that scoring needs: hundreds are scored, ten are shown. The cosine is computed in PostgreSQL, with
# the query pooled to the vector's dimensions; a signature is read only where the full vector is gone. Numbers come as
# one array in binary, which numpy reads at once. As to `+ 0`, see `server.OUTDATED`.
READ_AMONG = f"""
    select uuid_send(facts.id), coalesce(jsonb_hash_extended(session, 0), 0) as session, coalesce(role, '') as role,
        coalesce(decay_class, '') as decay_class, coalesce(folded(entity), '') as entity,
        left(text, {BEGINNING}) as beginning,
        case when octet_length(text) <= {SHORT} then text end,
        case when cardinality(%(stems)s::tsquery[]) > 0 and octet_length(text) <= {SHORT} then array(
            select search @@ stem from unnest(%(stems)s::tsquery[]) as stem
        ) end as stems,
        case when fidelity <> 1 then (
            select bit_send(signature) from signatures
            where signatures.namespace = facts.namespace and signatures.fact = facts.id
        ) end as signature,
        coalesce({HIDDEN}, case when {WITHOUT_WORDS} then 'item without text' end, {FILTERED_OUT}) as left_out,
        array_send(array[
            case when session is null then -1 else coalesce(turn, -1) end,
            date_part('epoch', coalesce(source_date, created_at)), importance, base, coactivations,
            date_part('epoch', last_seen_at), confidence, date_part('epoch', last_confirmed_at),
            date_part('epoch', activity.expires_at), date_part('epoch', {PINNED_UNTIL}), recall_count, branch, tier,
            fidelity, coalesce(content_salience, 0.5)::float8,
            coalesce(
                -(embedding <#> (%(queries)b::halfvec[])[array_position(%(dims)b::int[], vector_dims(embedding))]),
                'nan'
            )
        ]::float8[]) as numbers
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace + 0 and vectors.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(array(
        select unnest(%(ids)b::uuid[]) union ({NEIGHBOURS})
    ))
"""
# Without filters, and in few characters: psycopg parses a longer one than 4,096 at each use.
READ = " ".join(READ_AMONG.replace(FILTERED_OUT, "null").split())

# The columns of `Description` in their order, and the anchors of a live fact.
DESCRIBE = f"""
    select id, kind, text, summary, category, entity, key, value, source, tags, importance, session, turn,
        role, source_date, created_at, nullif(valid_from, least(created_at, source_date)) as valid_from, valid_until,
        nullif(decay_class, ''), forgotten_reason as deep,
        case branch when 1 then 'persistent' when 2 then 'permanent' end as durability,
        branch = 2 and greatest(encoded_at, last_seen_at, last_accessed_at, pinned_until)
            < coalesce(date_part('epoch', %(silent_since)s::timestamptz), '-infinity'),
        case when not retired then {activity.PACKED} end
    from facts
    join anchors on anchors.namespace = facts.namespace + 0 and anchors.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)b)
"""

# The namespace is a lexeme, so the text index alone finds its matches; `+ 0` keeps the planner from intersecting them
# with all of the namespace's facts by another index. Where a namespace has nearly all facts, its lexeme is left out,
# as its posting list of a million entries took half of the time.
# `coalesce` keeps the planner from partial indexes: before the first `analyze` it expects hardly any entries there, and
# reads one of them whole.
# With all weights 1, ts_rank of a single word is the sum of 1/j² over its j occurrences, over π²/6, which determines
# the number of occurrences; divided by the rank normalised by length it gives the length, in which the namespace and
# each tag count as one. This runs in C and is several times faster than unnesting each tsvector. A copy, which setting
# the weights makes, keeps each rank of a long text from reading its stored tsvector again, which took two thirds of the
# time. Results come as arrays in binary. With `select`, one plan serves all words.
MATCHES = f"""
    select array_send(array_agg(id)), string_agg(ranks, ''), array_send(array_agg(length))
    from (
        select id,
            array_send(
                array(select ts_rank('{{1,1,1,1}}', words, term) from unnest(%(terms)s::tsquery[]) as term)::float8[]
            ) as ranks,
            ts_rank('{{1,1,1,1}}', words, %(own)s::tsquery) / ts_rank('{{1,1,1,1}}', words, %(own)s::tsquery, 2)
                - 1 - cardinality(tags)::float8 as length
        from facts
        cross join lateral (select setweight(search, 'D') as words offset 0) as copied
        where namespace + 0 = %(namespace)s
            and search @@ (select %(candidates)s::tsquery) and not {WITHOUT_WORDS}
            and (%(ever)s or coalesce(forgotten_at, superseded_at) is null and coalesce(valid_until > %(now)s, true))
        limit %(budget)s
    ) as matching
"""
MATCHES_AMONG = MATCHES.replace("limit %(budget)s", f"    and {FILTERED}\n        limit %(budget)s")
MATCHES_THEN = MATCHES_AMONG.replace("limit %(budget)s", f"    and {SEEN_THEN}\n        limit %(budget)s")

# The text's positions follow those of category, entity, key and value, which are indexed twice (`search_lexemes`);
# `before` is the last position of these. All other words are filtered out before unnesting, which would otherwise
# take ten times as long.
POSITIONS = """
    select uuid_send(id), lexeme, positions, before
    from facts
    cross join lateral (
        select case when coalesce(category, entity, key, value) is null then 0 else (
            select coalesce(2 * max(place), 0)
            from unnest(words(concat_ws(' ', category, entity, key, value))) as own (lexeme, positions, weights)
            cross join unnest(own.positions) as place
        ) end as before
    ) as named
    cross join unnest(ts_filter(setweight(search, 'A', %(stems)s::text[]), '{a}')) as word (lexeme, positions, weights)
    where namespace = %(namespace)s and id = any(%(ids)b)
"""

# Of facts that say the same, all but the live one; without a live one, all but the one that ended last. The hash of an
# item is that of its place alone.
REPEATS = """
    select uuid_send(id)
    from (
        select id, row_number() over (
            partition by hash, case kind when 'item' then text end order by forgotten_at desc nulls first, id
        ) as place
        from facts
        where namespace = %(namespace)s and id = any(%(ids)b)
    ) as said
    where place > 1
"""

TEXTS = "select uuid_send(id), text from facts where namespace = %(namespace)s and id = any(%(ids)b)"

# Planned for all matches, of which only the first are read: for a small limit the planner may read the table until it
# has found enough.
TEXTS_CONTAINING = """
    with matching as materialized (
        select text from facts
        where namespace + 0 = %(namespace)s
            and search @@ %(candidates)s::tsquery
            and (%(ever)s or coalesce(forgotten_at, superseded_at) is null)
    )
    select text from matching limit %(limit)s
"""

LEXEMES_OF = """
    select term from unnest(%(terms)s::text[]) as term
    where exists (
        select from facts where namespace = %(namespace)s and id = %(id)s and tsvector_to_array(search) @> array[term]
    )
"""


@dataclass(frozen=True)
class Scope:
    """The instant and filters of a recall, which apply in every arm.

    `ever` includes hidden facts; `deep` shows those that ended by decay or expiry.
    """

    now: datetime
    filters: Filters = NO_FILTERS
    as_of: datetime | None = None
    known_as_of: datetime | None = None
    ever: bool = False
    deep: bool = False

    @property
    def looks_back(self) -> bool:
        """Return whether forgotten and superseded facts are searched too; not for reads as of `now` or later."""
        return self.ever or self.deep or self.past

    @property
    def past(self) -> bool:
        """Return whether it is an instant before `now`."""
        return min(self.as_of or self.now, self.known_as_of or self.now) < self.now

    @cached_property
    def selects(self) -> bool:
        """Return whether any filter is set."""
        return self.filters.filters() != NO_FILTERS.filters()

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of SQL statements with `FILTERED`."""
        own = {"now": self.now, "as_of": self.as_of, "known_as_of": self.known_as_of, "ever": self.looks_back}
        own |= {"deep": self.deep}
        tier = None if self.filters.tier is None else int(Tier[self.filters.tier.upper()])
        return own | self.filters.filters() | {"tier": tier, "sessions": as_stored(self.filters.session)}


def as_stored(session: str | int | None) -> list[Jsonb] | None:
    """Return the stored forms of a session: a number also as text, and the text of a number also as that number."""
    if session is None:
        return None
    return [Jsonb(str(session))] + ([Jsonb(int(session))] if WHOLE_NUMBER.fullmatch(str(session)) else [])


OTHERS: dict[str, type[Any]] = {
    "id": object, "session": np.int64, "role": object, "decay_class": object, "entity": object, "beginning": object,
    "text": object, "stems": object, "signature": object, "left_out": object,
}  # fmt: skip
NUMBERS: dict[str, type[Any]] = {
    "turn": np.int64, "stated_at": np.float64, "importance": np.float64, "base": np.float64, "coactivations": np.int64,
    "last_seen_at": np.float64, "confidence": np.float64, "confirmed_at": np.float64, "expires_at": np.float64,
    "pinned_until": np.float64, "recall_count": np.int64, "branch": np.int64, "tier": np.int64, "fidelity": np.int64,
    "content_salience": np.float64, "cosine": np.float64,
}  # fmt: skip
"""The fields that scoring needs of a fact, in the order of `READ`; times are epoch seconds.

`id` is a `Key`; `session` is a hash, as it is only compared; `turn` is negative for a fact without a session.
`pinned_until` is at most now, and minus infinity without a pin. `cosine` is NaN where there is no vector; `signature`
has bytes where the vector is not full. `text` is None if it has more than `SHORT` bytes. `stems` says for a text of at
most as many bytes, of one passage, which of the stems asked for it contains. `left_out` names the rule that hides the
fact.
"""

RECORD = np.dtype([*OTHERS.items(), *NUMBERS.items()])
Candidates: TypeAlias = NDArray[np.void]
"""An array of records with the fields of `RECORD`."""

Candidate: TypeAlias = np.void
"""One record of `Candidates`."""


@dataclass(slots=True)  # one that is frozen takes ten times as long to create
class Description:
    """The part of a fact that answers show."""

    id: UUID
    kind: str
    text: str
    summary: str | None
    category: str | None
    entity: str | None
    key: str | None
    value: str | None
    source: str | None
    tags: list[str]
    importance: float
    session: str | int | None
    turn: int | None
    role: str | None
    source_date: datetime | None
    created_at: datetime
    valid_from: datetime | None
    valid_until: datetime | None
    decay_class: str | None
    deep: str | None
    durability: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class Described:
    """Descriptions of facts, and the ids and anchors of the live ones."""

    facts: dict[Key, Description]
    live: list[UUID]
    anchors: Anchors


@dataclass(frozen=True, slots=True)
class Matches:
    """n facts that contain any of k terms, with the (n, k) ranks (`ts_rank`) and n lengths in words."""

    ids: list[Key]
    ranks: Floats
    lengths: Floats


def ask(
    db: Connection,
    namespace: int,
    ids: Sequence[Key],
    query: Mapping[int, Vectors],
    scope: Scope,
    *,
    stems: Sequence[str] = (),
    neighbours_of: Sequence[Key] = (),
    reach: int = 0,
) -> Callable[[], Candidates]:
    """Send the query for the candidates with these ids, including those that a rule leaves out; return its reader.

    Adds the facts at most `reach` turns before or after those of `neighbours_of` in the same session. `query` maps dims
    to the query's vector, pooled as stored vectors are; it may be empty. `stems` are those to look for in short texts.
    """
    given: dict[str, Any] = {
        "namespace": namespace,
        "ids": columns.keys(ids),
        "stems": [quoted(stem) for stem in stems],
        "neighbours_of": columns.keys(neighbours_of),
        "reach": reach,
        "dims": columns.ints(list(query)),
        "queries": columns.halfvecs(db, [vector[None, :] for vector in query.values()]),
    }
    given |= scope.parameters
    return partial(_read, db.execute(READ_AMONG if scope.selects else READ, given, binary=True))


def read(db: Connection, namespace: int, ids: Sequence[Key], query: Mapping[int, Vectors], scope: Scope) -> Candidates:
    """Return the candidates with these ids, as `ask` does."""
    return ask(db, namespace, ids, query, scope)()


def _read(cursor: Cursor) -> Candidates:
    rows = sorted(cursor.fetchall(), reverse=True)  # by id, so that facts of equal scores have one order
    found = np.zeros(len(rows), RECORD)  # many times as fast as `empty`, which fills object by object
    if rows:
        *others, numbers = zip(*rows, strict=True)
        for name, values in zip(OTHERS, others, strict=True):
            found[name] = values
        for name, column in zip(NUMBERS, columns.floats_of(numbers, len(NUMBERS)).T, strict=True):
            found[name] = column
    return found


def repeats(db: Connection, namespace: int, ids: Sequence[Key]) -> set[Key]:
    """Return those of some facts that only say what another of them says, which is live or ended later."""
    given = {"namespace": namespace, "ids": columns.keys(ids)}
    return {id_ for (id_,) in db.execute(REPEATS, given, binary=True)}


def describe(
    db: Connection, namespace: int, ids: Sequence[Key], silent_since: datetime | None
) -> Callable[[], Described]:
    """Send the query for the facts' descriptions and return its reader; facts unused since `silent_since` are stale."""
    given = {"namespace": namespace, "ids": columns.keys(ids), "silent_since": silent_since}
    return partial(_described, db.execute(DESCRIBE, given, binary=True))


def _described(cursor: Cursor) -> Described:
    rows = cursor.fetchall()
    live = [(row[0], row[-1]) for row in rows if row[-1] is not None]
    return Described(
        {row[0].bytes: Description(*row[:-1]) for row in rows},
        [id_ for id_, _ in live],
        activity.unpacked([packed for _, packed in live]),
    )


def matches(
    db: Connection, namespace: Namespace, terms: Sequence[str], chosen: Sequence[str], scope: Scope, budget: int
) -> Callable[[], Matches]:
    """Send the query for facts with one of the `chosen` terms and the rank of each of `terms`; return its reader."""
    given: dict[str, Any] = {
        "namespace": namespace.id,
        "terms": [quoted(term) for term in terms],
        "own": _own(namespace),
        "candidates": _containing(namespace, chosen, scope.filters.tag),
        "budget": budget,
    }
    given |= scope.parameters
    statement = MATCHES_AMONG if scope.selects else MATCHES
    if scope.looks_back and not scope.ever:
        statement = MATCHES_THEN
    rows = db.execute(statement, given, binary=True, prepare=None if statement == MATCHES else False)
    return partial(_matches, rows, len(terms))


def _containing(namespace: Namespace, chosen: Sequence[str], tag: str | None = None) -> str:
    """Return the tsquery for the facts with a tag, if any, and one of the chosen terms, if any."""
    within = [quoted(f"tag {tag}")] if tag else []
    if not (namespace.alone and (within or chosen)):
        within = [_own(namespace), *within]
    return " & ".join([*within, *(["(" + " | ".join(map(quoted, chosen)) + ")"] if chosen else [])])


def _own(namespace: Namespace) -> str:
    return quoted(f"namespace {namespace.id}")


def _matches(cursor: Cursor, terms: int) -> Matches:
    ids, ranks, lengths = cursor.fetchone() or (None, None, None)
    return Matches(columns.keys_of(ids), columns.floats_of([ranks or b""], terms), columns.column_of(lengths))


Occurrences: TypeAlias = tuple[Key, str, list[int], int]
"""A fact, a stem, its positions in the index, counted from 1, and the last position that is before the text."""


def positions_of(db: Connection, namespace: int, ids: Sequence[Key], stems: Sequence[str]) -> list[Occurrences]:
    """Return the occurrences of stems in these facts; what a fact is about, as its entity, is before its text."""
    given = {"namespace": namespace, "ids": columns.keys(ids), "stems": list(stems)}
    return db.execute(POSITIONS, given, binary=True).fetchall()


def texts_of(db: Connection, namespace: int, ids: Sequence[Key]) -> dict[Key, str]:
    """Return the texts of facts."""
    return dict(db.execute(TEXTS, {"namespace": namespace, "ids": columns.keys(ids)}, binary=True).fetchall())


def ask_texts(db: Connection, namespace: Namespace, term: str, scope: Scope, limit: int) -> Callable[[], list[str]]:
    """Send the query for the texts of some facts that contain a term, whatever the filters; return its reader."""
    given = {"namespace": namespace.id, "candidates": _containing(namespace, [term]), "limit": limit}
    rows = db.execute(TEXTS_CONTAINING, given | scope.parameters, binary=True, prepare=False)
    return lambda: [text for (text,) in rows]


def lexemes_of(db: Connection, namespace: int, id_: UUID, terms: Sequence[str]) -> list[str]:
    """Return the lexemes that a fact contains."""
    return [term for (term,) in db.execute(LEXEMES_OF, {"namespace": namespace, "id": id_, "terms": list(terms)})]


def quoted(lexeme: str) -> str:
    """Return a lexeme quoted for a tsquery."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
