"""The oracle: replays acknowledged steps, undisturbed, in a second database, the twin, and compares all rows.

If the outcome of a cell's last step is unknown, its rows must be those without it or with it, nothing between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row

from tests.chaos.cells import PURGE, Cell, Step
from tests.chaos.replaying import replay
from tests.chaos.rows import Rows, rows
from workers.admin import search_indexes
from workers.context import Context
from workers.decay import passes
from workers.memory import embed

LATER = timedelta(seconds=10)
"""Time of the last pass, after everything else has settled."""

NAMESPACES = "select id, name, salt, created_at from namespaces order by id"
ADD_NAMESPACES = """
    insert into namespaces (id, name, salt, created_at) overriding system value
    values (%(id)s, %(name)s, %(salt)s, %(created_at)s) on conflict do nothing
"""

USES = {"memory.touch", "memory.lookup", "memory.reinforce", "memory.restore", "memory.pin"}


@dataclass
class Verdict:
    """The faults that the oracle found, by kind."""

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
        """Return the number of faults."""
        return len(self.lost) + len(self.doubled) + len(self.decayed_twice) + len(self.torn)


def judge(
    real: Sequence[str], twin: Context, cells: Sequence[Cell], until: datetime, *, unembedded: bool = False
) -> Verdict:
    """Replay certain steps, find out which uncertain ones happened, and compare every row of all `real` shards.

    If facts may be `unembedded` for a while, those forgotten meanwhile have no signature until they are restored.
    """
    for url in real:
        _same_namespaces(url, twin.database_url)
    found = Verdict()
    _pass(twin, min((_instant(cell) for cell in cells), default=until))  # like the first one of beat, before any step
    for cell in cells:
        for step in cell.certain:
            replay(twin, cell, step)
        found.steps += len(cell.certain)
    unknown = [(cell, step) for cell in cells for step in cell.uncertain]
    finish(twin, cells, until)
    there, here = (rows(urls, unembedded=unembedded) for urls in (real, [twin.database_url]))
    wrong = _cells_of(_differing(there, here), cells)
    for cell, step in unknown:
        if id(cell) in wrong:
            replay(twin, cell, step)
            found.happened += 1
    found.uncertain = len(unknown)
    finish(twin, cells, until)
    here = rows([twin.database_url], unembedded=unembedded)
    compare(found, there, here, {name: cell for cell, _ in unknown for name in cell.names})
    found.rows = len(there)
    return found


def _same_namespaces(real: str, twin: str) -> None:
    """Copy the namespaces to the twin, with their ids, which makes rows comparable."""
    with psycopg.connect(real, row_factory=dict_row) as one, psycopg.connect(twin) as two:
        for row in one.execute(NAMESPACES).fetchall():
            two.execute(ADD_NAMESPACES, row)


def used(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the used facts by namespace, whose full vectors must be regenerated."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        tasks = [step.task for step in cell.steps]
        if USES & set(tasks) or tasks.count("memory.store_many") > 1:  # storing again counts as use
            found.setdefault(cell.namespace, []).extend(cell.ids)
    return found


def purges(cells: Sequence[Cell]) -> list[tuple[Cell, Step]]:
    """Return the purges: a late redelivery of an earlier step may return a deep fact to the table."""
    return [(cell, step) for cell in cells for step in cell.steps if step.task == PURGE]


def finish(twin: Context, cells: Sequence[Cell], until: datetime) -> None:
    """Do the background work: vectors of used facts, purges, a pass, and a count of words."""
    embed.embed_pending(twin, embed.START, until)
    for namespace, ids in used(cells).items():
        embed.regenerate(twin, namespace, [UUID(id_) for id_ in ids], until)
    for cell, step in purges(cells):
        replay(twin, cell, step)
    _pass(twin, until + LATER)
    for name in {cell.namespace for cell in cells}:
        search_indexes.count_lexemes(twin, name, until)


def _pass(twin: Context, at: datetime) -> None:
    """Run a pass over all namespaces."""
    run = uuid4()
    for part in passes.plan(twin, run, at):
        passes.apply(twin, part, lambda: None)
    passes.finish(twin, run)


def _instant(cell: Cell) -> datetime:
    """Return the instant of the first step of a cell."""
    given = cell.steps[0].arguments
    return datetime.fromisoformat(given.get("now") or given["at"])


def _differing(real: Rows, twin: Rows) -> set[tuple[str, ...]]:
    return {key for key in real.keys() | twin.keys() if real.get(key) != twin.get(key)}


def _cells_of(keys: set[tuple[str, ...]], cells: Sequence[Cell]) -> set[int]:
    """Return the ids of the cells that rows belong to."""
    owners = {name: id(cell) for cell in cells for name in cell.names}
    return {owners[part] for key in keys for part in key if part in owners}


def compare(found: Verdict, real: Rows, twin: Rows, uncertain: Mapping[str, Cell]) -> None:
    """Add the differences to a verdict by kind; those of `uncertain` cells count as torn."""
    for key in sorted(_differing(real, twin)):
        has, should = real.get(key), twin.get(key)
        difference = f"{key}: {_difference(has, should)}"
        if cell := next((uncertain[part] for part in key if part in uncertain), None):
            found.torn.append(f"{difference}; {', '.join(f'{step.task} {step.outcome}' for step in cell.steps)}")
        elif has is None:
            found.lost.append(difference)
        elif should is None:
            found.doubled.append(difference)
        else:
            found.decayed_twice.append(difference)


def _difference(has: dict[str, Any] | None, should: dict[str, Any] | None) -> str:
    if has is None or should is None:
        return f"there is {has}, should be {should}"
    names = [name for name in should if has.get(name) != should[name]]
    return ", ".join(f"{name} is {has.get(name)!r}, should be {should[name]!r}" for name in names)
