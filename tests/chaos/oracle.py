"""The oracle: what was acknowledged is done once more, undisturbed, in another database; then all rows are compared.

Of a cell whose last step nobody knows about, the rows may be as without the step or as with it, and nothing between.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row

from tests.chaos.load import LOOKUP, Cell, Step
from workers.context import Context
from workers.errors import InvalidInputError
from workers.forgetting import decay, forget, pin, restore
from workers.intake import new_fact
from workers.remembering import embed, links, regenerate, relations, store, touch

Rows: TypeAlias = dict[tuple[str, ...], dict[str, Any]]

LATER = timedelta(seconds=10)
"""When the last pass looks at what was made whole before it."""

NAMESPACES = "select id, name, salt, created_at from namespaces order by id"
ADD_NAMESPACES = """
    insert into namespaces (id, name, salt, created_at) overriding system value
    values (%(id)s, %(name)s, %(salt)s, %(created_at)s) on conflict do nothing
"""
TABLES = {
    "facts": ("namespace", "id"),
    "activity": ("namespace", "fact"),
    "vectors": ("namespace", "fact"),
    "signatures": ("namespace", "fact"),
    "forgotten_hashes": ("namespace", "fact", "digest"),
    "links": ("namespace", "source", "target", "type"),
    "relations": ("namespace", "source", "target", "type"),
    "contradictions": ("namespace", "fact", "other"),
}
READ = {
    "facts": "select to_jsonb(t) as row from facts as t",
    "activity": "select to_jsonb(t) as row from activity as t",
    "vectors": "select to_jsonb(t) || jsonb_build_object('embedding', embedding::text) as row from vectors as t",
    "signatures": "select to_jsonb(t) as row from signatures as t",
    "forgotten_hashes": "select to_jsonb(t) as row from forgotten_hashes as t",
    "links": "select to_jsonb(t) - 'id' as row from links as t",
    "relations": "select to_jsonb(t) - 'id' as row from relations as t",
    "contradictions": "select to_jsonb(t) as row from contradictions as t",
}
EVENTS = """
    select namespace, fact::text, what, at, details::text, count(*) as times
    from events group by 1, 2, 3, 4, 5
"""
NAMED = "select id, turns, held_since is not null as held from namespaces"
COUNTED = """
    select namespaces.name, sum(processed)::int as processed, sum(changed)::int as changed,
        sum(compressed)::int as compressed, sum(fingerprinted)::int as fingerprinted, sum(expired)::int as expired,
        sum(faded + culled + aged)::int as ended, sum(decayed)::int as decayed, sum(held)::int as held
    from decay_parts join decay_runs on decay_runs.id = run join namespaces on namespaces.id = decay_runs.namespace
    where name like 'fade-%'
    group by name
"""
TALLIES = """
    select namespace, decay_class, tier, fidelity, held, forgotten_reason, sum(facts)::int as facts
    from (select * from tallies union all select * from tally_changes) as counted
    group by 1, 2, 3, 4, 5, 6 having sum(facts) <> 0
"""
USES = {"memory.touch", "memory.lookup", "memory.reinforce", "memory.restore", "memory.pin"}
DOUBLED_TEXTS = """
    select count(*) from (
        select from facts where forgotten_at is null and superseded_at is null
        group by namespace, text having count(*) > 1
    ) as twice
"""


@dataclass
class Verdict:
    """What the oracle found wrong, each with its first examples; all of it is empty where nothing is."""

    rows: int = 0
    steps: int = 0
    uncertain: int = 0
    happened: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    decayed_twice: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Return how many faults there are."""
        return len(self.lost) + len(self.doubled) + len(self.decayed_twice) + len(self.torn)


def judge(real: Context, twin: Context, cells: Sequence[Cell], until: datetime, *, unembedded: bool = False) -> Verdict:
    """Replay what is certain, find out what else happened, and compare every row.

    Where facts may be `unembedded` for a while, what was forgotten then has no signature until it is restored.
    """
    _same_namespaces(real.database_url, twin.database_url)
    found = Verdict()
    for cell in cells:
        for step in cell.certain:
            replay(twin, cell, step)
        found.steps += len(cell.certain)
    unknown = [(cell, step) for cell in cells for step in cell.uncertain]
    _finish(twin, cells, until)
    there, here = (rows(context.database_url, unembedded=unembedded) for context in (real, twin))
    wrong = _cells_of(_differing(there, here), cells)
    for cell, step in unknown:
        if id(cell) in wrong:
            replay(twin, cell, step)
            found.happened += 1
    found.uncertain = len(unknown)
    _finish(twin, cells, until)
    here = rows(twin.database_url, unembedded=unembedded)
    _compare(found, there, here, {id_ for cell, _ in unknown for id_ in (*cell.ids, cell.name)})
    found.rows = len(there)
    return found


def _same_namespaces(real: str, twin: str) -> None:
    """Give the twin the same namespaces, so that rows can be compared as they are."""
    with psycopg.connect(real, row_factory=dict_row) as one, psycopg.connect(twin) as two:
        for row in one.execute(NAMESPACES).fetchall():
            two.execute(ADD_NAMESPACES, row)


def used(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return by namespace the facts that were used, and must have their full vectors again."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        tasks = [step.task for step in cell.steps]
        if USES & set(tasks) or tasks.count("memory.store_many") > 1:  # what is told again is used, too
            found.setdefault(cell.namespace, []).extend(cell.ids)
    return found


def _finish(twin: Context, cells: Sequence[Cell], until: datetime) -> None:
    """Do what hits and beat would do in time: the vectors of what was used, and a pass over what was not."""
    embed.embed_pending(twin, embed.START, until)
    for namespace, ids in used(cells).items():
        regenerate.regenerate(twin, namespace, [UUID(id_) for id_ in ids], until)
    for part in decay.plan(twin, uuid4(), until + LATER):
        decay.apply(twin, part, lambda: None)


# Replaying ------------------------------------------------------------------------------------------------------------


def replay(context: Context, cell: Cell, step: Step) -> None:
    """Do what a task does, by the verb behind it; what is refused is refused again.

    A lookup asks for all that a cell has, and so touches all of it that is live.
    """
    with suppress(InvalidInputError):
        if step.task == LOOKUP:
            touch.touch(context, cell.namespace, [UUID(id_) for id_ in cell.ids], _instant(step))
        else:
            VERBS[step.task](context, step)


def _instant(step: Step, name: str = "now") -> datetime:
    return datetime.fromisoformat(step.arguments[name])


def _ids(step: Step) -> list[UUID]:
    return [UUID(id_) for id_ in step.arguments["ids"]]


def _store_many(context: Context, step: Step) -> None:
    given = [new_fact(fact, 65_536) for fact in step.arguments["facts"]]
    classify = step.arguments["classify"]
    store.store_many(context, step.arguments["namespace"], given, _instant(step), classify=classify)


def _touch(context: Context, step: Step) -> None:
    touch.touch(context, step.arguments["namespace"], _ids(step), _instant(step, "at"))


def _reinforce(context: Context, step: Step) -> None:
    given = step.arguments
    touch.reinforce(context, given["namespace"], UUID(given["id"]), given["boost"], _instant(step))


def _pin(context: Context, step: Step) -> None:
    fact = UUID(step.arguments["id"])
    if step.arguments.get("off"):
        pin.unpin(context, step.arguments["namespace"], fact, _instant(step))
    else:
        pin.pin(context, step.arguments["namespace"], fact, None, _instant(step))


def _forget(context: Context, step: Step) -> None:
    given = step.arguments
    forget.forget(context, given["namespace"], _ids(step), _instant(step), purge=given.get("purge", False))


def _restore(context: Context, step: Step) -> None:
    restore.restore(context, step.arguments["namespace"], _ids(step), _instant(step))


def _link(context: Context, step: Step) -> None:
    given = step.arguments
    ends = UUID(given["source"]), UUID(given["target"])
    links.link(context, given["namespace"], *ends, given["type"], given["strength"], _instant(step))


def _unlink(context: Context, step: Step) -> None:
    given = step.arguments
    links.unlink(context, given["namespace"], UUID(given["source"]), UUID(given["target"]), given["type"])


def _relate(context: Context, step: Step) -> None:
    given = step.arguments
    names = given["source"], given["target"], given["type"]
    relations.relate(context, given["namespace"], *names, _instant(step), weight=given["weight"])


def _unrelate(context: Context, step: Step) -> None:
    given = step.arguments
    relations.unrelate(context, given["namespace"], given["source"], given["target"], given["type"])


def _plan(context: Context, step: Step) -> None:
    run = UUID(step.task_id)
    for part in decay.plan(context, run, _instant(step), namespace=step.arguments["namespace"]):
        decay.apply(context, part, lambda: None)
    decay.finish(context, run)


VERBS: Mapping[str, Callable[[Context, Step], None]] = {
    "memory.store_many": _store_many,
    "memory.touch": _touch,
    "memory.reinforce": _reinforce,
    "memory.pin": _pin,
    "memory.forget": _forget,
    "memory.restore": _restore,
    "memory.link": _link,
    "memory.unlink": _unlink,
    "memory.relate": _relate,
    "memory.unrelate": _unrelate,
    "decay.plan": _plan,
}


# Comparing ------------------------------------------------------------------------------------------------------------


def rows(url: str, *, unembedded: bool = False) -> Rows:
    """Return every row that holds memory, by table and key; if `unembedded`, without signatures of what has ended."""
    found: Rows = {}
    with psycopg.connect(url, row_factory=dict_row) as db:
        db.execute("set timezone = 'UTC'")
        for table, key in TABLES.items():
            for one in db.execute(READ[table].encode()):
                row = one["row"]
                if unembedded and row.get("live") is False:
                    continue
                if unembedded and row.get("retired"):
                    del row["fidelity"]
                found[(table, *(str(row[name]) for name in key))] = row
        for one in db.execute(EVENTS):
            found["events", *(str(one[name]) for name in ("namespace", "fact", "what", "at", "details"))] = one
        for one in db.execute(NAMED):
            found["namespaces", str(one["id"])] = one
        for one in db.execute(COUNTED):
            found["counters", one["name"]] = one
        for one in db.execute(TALLIES):
            found["tallies", json.dumps([one[name] for name in one if name != "facts"])] = one
        (twice,) = db.execute(DOUBLED_TEXTS).fetchall()
        found["said twice", ""] = twice
    return found


def _differing(real: Rows, twin: Rows) -> set[tuple[str, ...]]:
    return {key for key in real.keys() | twin.keys() if real.get(key) != twin.get(key)}


def _cells_of(keys: set[tuple[str, ...]], cells: Sequence[Cell]) -> set[int]:
    """Return the cells that rows belong to."""
    owners = {name: id(cell) for cell in cells for name in (*cell.ids, cell.name, cell.namespace)}
    return {owners[part] for key in keys for part in key if part in owners}


def _compare(found: Verdict, real: Rows, twin: Rows, uncertain: set[str]) -> None:
    for key in sorted(_differing(real, twin)):
        has, should = real.get(key), twin.get(key)
        told = f"{key}: {_difference(has, should)}"
        if uncertain.intersection(key):
            found.torn.append(told)
        elif has is None:
            found.lost.append(told)
        elif should is None:
            found.doubled.append(told)
        else:
            found.decayed_twice.append(told)


def _difference(has: dict[str, Any] | None, should: dict[str, Any] | None) -> str:
    if has is None or should is None:
        return f"there is {has}, should be {should}"
    names = [name for name in should if has.get(name) != should[name]]
    return ", ".join(f"{name} is {has.get(name)!r}, should be {should[name]!r}" for name in names)
