"""The rows that two databases are compared by, of every table that holds memory; and which are not, and why."""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import dict_row

from tests.chaos import launch
from workers.storage import deep

BATCH = 500

Rows: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
Connection: TypeAlias = psycopg.Connection[dict[str, Any]]

KEYS = {
    "facts": ("namespace", "id"),
    "activity": ("namespace", "fact"),
    "vectors": ("namespace", "fact"),
    "signatures": ("namespace", "fact"),
    "forgotten_hashes": ("namespace", "fact", "digest"),
    "deep": ("namespace", "id"),
    "links": ("namespace", "source", "target", "type"),
    "relations": ("namespace", "source", "target", "type"),
    "contradictions": ("namespace", "fact", "other"),
    "likenesses": ("namespace", "fact", "other"),
    "occurrences": ("namespace", "fact", "session"),
    "merged_texts": ("namespace", "wording"),
    "documents": ("namespace", "path"),
    "lexemes": ("namespace", "lexeme"),
    "namespaces": ("name",),
    "janitors": ("namespace",),
    "embedders": (),
    "languages": (),
    "fading_rules": (),
    "forget_limits": (),
}
"""The tables that are compared row by row, and what a row is known by."""

# Of activity all but whether a fact was compared with the others: a consolidation that comes again late also looks at
# what was restored since, and finds nothing; what it has to find is in `likenesses`. Of namespaces all but when
# something was noted of them. Of facts all but when a tombstone was written, and by which run, whose id is made up. Of
# all of them without the salience of content and what follows from it, an estimate by the words that were counted at
# that moment. What was crowded out, without when that was: which of two passes found it depends on who came first.
READ = {
    "facts": """
        select to_jsonb(t) - '{tombstone_at,forgotten_by,content_salience}'::text[]
            - case when forgotten_reason = 'crowded' then 'forgotten_at' else '' end as row
        from facts as t
    """,
    "activity": "select to_jsonb(t) - '{asked,compared,worth}'::text[] as row from activity as t",
    "vectors": "select to_jsonb(t) || jsonb_build_object('embedding', embedding::text) as row from vectors as t",
    "signatures": "select to_jsonb(t) as row from signatures as t",
    "forgotten_hashes": "select to_jsonb(t) as row from forgotten_hashes as t",
    "deep": "select to_jsonb(t) - 'body' as row from deep as t",
    "links": "select to_jsonb(t) - 'id' as row from links as t",
    "relations": "select to_jsonb(t) - 'id' as row from relations as t",
    "contradictions": "select to_jsonb(t) as row from contradictions as t",
    "likenesses": """
        select to_jsonb(t) || jsonb_build_object('similarity', round(similarity::numeric, 6)) as row
        from likenesses as t
    """,
    "occurrences": "select to_jsonb(t) - '{turn,id,role,said_at}'::text[] as row from occurrences as t",
    "merged_texts": "select to_jsonb(t) as row from merged_texts as t",
    "documents": "select to_jsonb(t) as row from documents as t",
    "lexemes": "select to_jsonb(t) as row from lexemes as t",
    "namespaces": """
        select to_jsonb(t) - '{counted_at,due_noted,settings_changed_at,estimated_facts}'::text[]
            || jsonb_build_object('held_since', held_since is not null) as row
        from namespaces as t
    """,
    "janitors": "select to_jsonb(t) as row from janitors as t",
    "embedders": "select to_jsonb(t) as row from embedders as t",
    "languages": "select to_jsonb(t) as row from languages as t",
    "fading_rules": "select to_jsonb(t) as row from fading_rules as t",
    "forget_limits": "select to_jsonb(t) as row from forget_limits as t",
}
TWICE = ("said twice", "")
BOTH = "on two shards"
"""First part of the key of a row that a second shard has; a system of one shard has none, so it counts as doubled."""

OF_EACH_SHARD = {TWICE, *((table,) for table, key in KEYS.items() if not key)}
"""The keys of rows that each shard has; a moved namespace keeps its id, so no others are equal."""

SUMMED = {
    "events": "events",
    "tallies": "tallies",
    "tally_changes": "tallies",
    "decay_runs": "counters",
    "decay_parts": "counters",
}
"""The tables whose rows are compared by what they say together, and under which name."""

NOT_COMPARED = {
    "schema_version": "the same schema makes both databases, and says when",
    "schema_migrations": "a database that was upgraded under load has more of them than the twin",
    "directory": "the twin has one shard; which rows another one has is compared",
    "folders": "no task of a plan registers one; what a reading indexes is compared in `documents`",
    "api_keys": "no task writes it, but an operator at the database itself",
    "tally_history": "what it notes, and of which minute, depends on when it was read",
    "system_history": "what it notes, and of which minute, depends on when it was read",
    "uses": "the ids of tasks, kept for a day; what they did is compared in `activity`",
    "endings": "in which minute an end was counted depends on when a pass came; what ended is compared in `facts`",
    "pass_clock": "when the last pass over all namespaces began depends on beat",
    "erasures": "what of it is cleaned by now depends on when a task did; what was erased is compared in `facts`",
    "decay_allowances": "what one of two passes was allowed depends on who came first; what they forgot is in `facts`",
}
"""The tables that are not compared, each with its reason."""

EVENTS = """
    select namespace, fact::text, what, case when own then at end as at,
        case when own then details::text end as details, count(*) as times
    from events, lateral (select details ->> 'reason' is distinct from 'crowded') as one (own)
    group by 1, 2, 3, 4, 5
"""
# Without what a pass left as it was: after changed settings every fact is due, to whichever of two passes comes first.
COUNTED = """
    select namespaces.name, sum(changed)::int as changed, sum(compressed)::int as compressed,
        sum(fingerprinted)::int as fingerprinted, sum(expired)::int as expired,
        sum(faded + culled + aged)::int as ended, sum(decayed)::int as decayed, sum(held)::int as held
    from decay_parts join decay_runs on decay_runs.id = run join namespaces on namespaces.id = decay_runs.namespace
    where name ~ '^(fading|deep)-'
    group by name
"""
TALLIES = """
    select namespace, decay_class, tier, fidelity, held, forgotten_reason, sum(facts)::int as facts
    from (select * from tallies union all select * from tally_changes) as counted
    group by 1, 2, 3, 4, 5, 6 having sum(facts) <> 0
"""
DOUBLED_TEXTS = """
    select count(*) from (
        select from facts where forgotten_at is null and superseded_at is null
        group by namespace, text having count(*) > 1
    ) as twice
"""


def rows(urls: Iterable[str], *, unembedded: bool = False) -> Rows:
    """Return every row of all shards that holds memory, by table and key; one that two shards have, also as `BOTH`.

    If `unembedded`, they are without signatures of what has ended.
    """
    found: Rows = {}
    for url in urls:
        with psycopg.connect(url, row_factory=dict_row) as db:
            one = read(db, unembedded=unembedded)
        one[TWICE]["count"] += found.get(TWICE, {}).get("count", 0)
        found |= one | {(BOTH, *key): one[key] for key in found.keys() & one.keys() if key not in OF_EACH_SHARD}
    return found


def read(db: Connection, *, unembedded: bool = False) -> Rows:
    """Return what `rows` does, as a transaction sees it."""
    found: Rows = {}
    db.execute("set local timezone = 'UTC'")
    for table, key in KEYS.items():
        for one in db.execute(READ[table].encode()):
            row = {name: value for name, value in one["row"].items() if not name.startswith(launch.ADDED)}
            if unembedded and row.get("live") is False:
                continue
            if unembedded and row.get("retired"):
                del row["fidelity"]
            found[(table, *(str(row[name]) for name in key))] = row
    for sunk in deep.rows(db, None, BATCH):  # type: ignore[arg-type]  # its cursor is of its own class
        found["deep", str(sunk.namespace), str(sunk.id)] |= _unpacked(sunk)
    for one in db.execute(EVENTS):
        found["events", *(str(one[name]) for name in ("namespace", "fact", "what", "at", "details"))] = one
    for one in db.execute(COUNTED):
        found["counters", one["name"]] = one
    for one in db.execute(TALLIES):
        found["tallies", json.dumps([one[name] for name in one if name != "facts"])] = one
    (twice,) = db.execute(DOUBLED_TEXTS).fetchall()
    found[TWICE] = twice
    return found


def _unpacked(sunk: deep.Deep) -> dict[str, Any]:
    """Return what the body of a fact in deep memory says, without what is not compared of live ones either."""
    fact, state, beside = sunk.rows()
    left_out = ("tombstone_at", "forgotten_by", "content_salience", "compared", "worth")
    said = {name: value for name, value in (fact | state).items() if name not in left_out}
    return said | {"beside": {name: sorted(map(str, those)) for name, those in beside.items()}}
