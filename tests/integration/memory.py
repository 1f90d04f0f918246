"""A memory under test: operations on one database, with instants in days since a fixed one."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from uuid import UUID, uuid4

from ebb.contract.admin import ChangeSettings, Examined
from ebb.contract.graph import Edge, Link, Linked, Relate
from ebb.contract.recall import Filters
from ebb.contract.reports import ListFacts, ShowStats
from ebb.contract.retention import Outcome, ShowHistory
from psycopg.rows import dict_row

from workers import graph
from workers.admin import doctor, export, import_archive, purge, stats
from workers.admin.stats import Stats
from workers.context import Context
from workers.decay import backfill, passes
from workers.decay.backfill import Backfilled
from workers.decay.passes import Report
from workers.errors import InvalidInputError
from workers.memory import embed, facts, forget, history, namespace_settings, pin, recall, restore, store, touch
from workers.memory.add import Stored
from workers.memory.recall import Recalled
from workers.memory.touch import Reinforced, Shown, Touched
from workers.settings import Settings
from workers.storage.connection import transaction
from workers.storage.tombstones import Cursor, Selection
from workers.validation import cursors
from workers.validation.archived import archived
from workers.validation.facts import new_fact

SHARDS = 3
"""Shards of a memory on several."""

DOCUMENTED: dict[str, Any] = {"salience": "constant", "lifetimes": "documented"}
"""Constant salience and the documented lifetimes: strength must not depend on the words of a test."""

DAY_0 = datetime(2025, 1, 1, tzinfo=UTC)

ROW = """
    select text, session, forgotten_at, forgotten_reason, segment, base, coactivations, confidence, decay_class,
        decay_class_source, halvings,
        recall_count, last_accessed_at, tier, fidelity, held, stale, live, coalesce(full_dims, 0) as full_dims,
        coalesce(vector_dims(embedding), 0) as dims,
        ((extract(epoch from last_seen_at) - %(day_0)s) / 86400)::float8 as last_seen,
        ((extract(epoch from last_confirmed_at) - %(day_0)s) / 86400)::float8 as confirmed,
        ((extract(epoch from expires_at) - %(day_0)s) / 86400)::float8 as expires,
        ((extract(epoch from ends_at) - %(day_0)s) / 86400)::float8 as ends,
        ((extract(epoch from due_at) - %(day_0)s) / 86400)::float8 as due,
        ((extract(epoch from pinned_until) - %(day_0)s) / 86400)::float8 as pinned_until
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    left join signatures on signatures.namespace = facts.namespace and signatures.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
    where facts.id = %(id)s
"""


ON_CITUS = bool(os.environ.get("EBB_TEST_CITUS_URL"))

LOCK_WAITS = (
    "select count(*) from citus_lock_waits"
    if ON_CITUS
    else "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)
"""How many sessions wait for a lock that another one has."""


def day(number: float) -> datetime:
    """Return the instant of a day."""
    return DAY_0 + timedelta(days=number)


def selected(reasons: tuple[str, ...] = restore.BY_DECAY, **selection: Any) -> Selection:
    """Return a selection of tombstones, with instants in days."""
    return Selection(reasons, **{name: day(one) if name != "run" else one for name, one in selection.items()})


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    while not condition():
        Event().wait(0.02)


@dataclass
class Memory:
    """Operations on one database; every `at` is in days."""

    context: Context

    def having(self, **changes: Any) -> "Memory":
        """Return the same database with other settings."""
        return Memory(Context(Settings(**(self.context.settings.model_dump() | changes))))

    def store(
        self,
        *given: str | dict[str, Any],
        at: float = 0,
        namespace: str = "default",
        touch: bool = True,
        classify: bool = False,
        count_turns: bool = True,
        use: UUID | None = None,
    ) -> list[Stored | InvalidInputError]:
        """Store facts given as texts or as objects, checked as every door checks them.

        Without a decay class they have no lifetime, unless `classify` is true: most tests are about something else.
        """
        objects = [{"text": one} if isinstance(one, str) else one for one in given]
        facts = [new_fact(one, self.context.settings.max_text) for one in objects]
        flags = {"touch": touch, "classify": classify, "count_turns": count_turns}
        return store.store_many(self.context, namespace, facts, day(at), use=use, **flags)

    def add(self, text: str, *, at: float = 0, namespace: str = "default", **fields: Any) -> UUID:
        """Store a new fact and return its id."""
        (stored,) = self.store({"text": text, **fields}, at=at, namespace=namespace)
        assert isinstance(stored, Stored)
        assert stored.action == "added"
        return stored.id

    def ask(self, query: str, *, at: float = 0, namespace: str = "default", **question: Any) -> Recalled:
        """Recall without touching."""
        filters = Filters(**{name: question.pop(name) for name in Filters.model_fields if name in question})
        return recall.recall(self.context, namespace, recall.Question(query, filters=filters, **question), day(at))

    def listed(self, *, at: float = 0, **asked: Any) -> list[dict[str, Any]]:
        """Return the first page of facts, newest first."""
        return facts.page(self.context, ListFacts(**asked), day(at))[0]

    def ids(self, query: str, **question: Any) -> list[UUID]:
        """Return the ids of recalled facts, best first."""
        return [result.id for result in self.ask(query, **question).results]

    def touch(self, *ids: UUID, at: float, namespace: str = "default", use: UUID | None = None) -> Touched:
        """Touch facts as a recall does."""
        return touch.touch(self.context, namespace, [Shown(ids, day(at), use or uuid4())])

    def reinforce(self, id_: UUID, *, at: float, boost: float = 0.2, use: UUID | None = None) -> Reinforced | None:
        """Reinforce a fact."""
        return touch.reinforce(self.context, "default", id_, boost, day(at), use)

    def link(
        self, source: UUID, target: UUID, kind: Any = "RELATED_TO", strength: float = 1.0, *,
        at: float = 0, namespace: str = "default",
    ) -> Linked:  # fmt: skip
        """Link two facts."""
        asked = Link(source=source, target=target, type=kind, strength=strength, namespace=namespace)
        return graph.link(self.context, asked, day(at))

    def relate(
        self, source: str, target: str, kind: str = "works_on", *,
        at: float = 0, namespace: str = "default", **given: Any,
    ) -> Edge:  # fmt: skip
        """Observe a relation of two entities."""
        asked = Relate(source=source, target=target, type=kind, namespace=namespace, **given)
        return graph.relate(self.context, asked, day(at))

    def regenerate(self, *ids: UUID, at: float = 0, namespace: str = "default") -> list[UUID]:
        """Restore facts to their full vectors."""
        return embed.regenerate(self.context, namespace, ids, day(at))

    def forget(
        self, *ids: UUID, at: float, namespace: str = "default", purge: bool = False
    ) -> list[Outcome | InvalidInputError]:
        """Forget facts on request."""
        return forget.forget(self.context, namespace, ids, day(at), purge=purge)

    def restore(self, *ids: UUID, at: float, namespace: str = "default") -> list[Outcome | InvalidInputError]:
        """Restore facts and their vectors."""
        done = restore.restore(self.context, namespace, ids, day(at))
        self.regenerate(*done.faded, at=at, namespace=namespace)
        return [done.outcomes[id_] for id_ in ids]

    def forgotten(self, *, namespace: str = "default", limit: int = 100, **selection: Any) -> list[UUID]:
        """Return the ids of the selected tombstones, newest first, read page by page."""
        chosen, behind, found = selected(**selection), None, list[UUID]()
        while True:
            page = facts.forgotten(self.context, namespace, chosen, limit, behind)
            found += [one.id for one in page.facts]
            behind = cursors.place(page.next, Cursor)
            if behind is None:
                return found

    def restore_selected(self, *, at: float, namespace: str = "default", **selection: Any) -> list[str]:
        """Restore the selected facts in batches, with their vectors; return the outcomes."""
        chosen, behind, outcomes = selected(**selection), None, list[str]()
        while True:
            batch = restore.restore_next(self.context, namespace, chosen, day(at), behind)
            self.regenerate(*batch.faded, at=at, namespace=namespace)
            outcomes += [
                "refused" if isinstance(one, InvalidInputError) else one.action for one in batch.outcomes.values()
            ]
            behind = batch.behind
            if behind is None:
                return outcomes

    def pin(self, id_: UUID, *, at: float, until: float | None = None, namespace: str = "default") -> str:
        """Pin a fact and restore its vector; return the action."""
        done, faded = pin.pin(self.context, namespace, id_, None if until is None else day(until), day(at))
        if faded:
            self.regenerate(id_, at=at, namespace=namespace)
        return done.action

    def unpin(self, id_: UUID, *, at: float, namespace: str = "default") -> str:
        """End a fact's pin; return the action."""
        return pin.unpin(self.context, namespace, id_, day(at)).action

    def history(self, id_: UUID, *, at: float = 0, namespace: str = "default") -> list[tuple[str, float]]:
        """Return the events of a fact with their days."""
        found = history.history(self.context, ShowHistory(id=id_, namespace=namespace), day(at))
        return [(one.what, (one.at - DAY_0) / timedelta(days=1)) for one in found.events]

    def purge(self, *, at: float, namespace: str | None = None) -> int:
        """Run a purge to the end; return how many facts it erased or packed."""
        self.demote(at=at, namespace=namespace)
        erased = 0
        while batch := purge.purge_batch(self.context, day(at), namespace).facts:
            erased += batch
        return erased

    def demote(self, *, at: float, namespace: str | None = None) -> int:
        """Move facts that decay forgot into deep memory; return how many."""
        sunk = 0
        while batch := purge.demote_batch(self.context, day(at), namespace):
            sunk += batch
        return sunk

    def decay(self, at: float, *, run: UUID | None = None, **plan: Any) -> Report:
        """Run a pass and return its report."""
        run = run or uuid4()
        for part in passes.plan(self.context, run, day(at), **plan):
            passes.apply(self.context, part, lambda: None)
        return passes.finish(self.context, run)

    def backfill(self, at: float, *, namespace: str | None = "default", **options: Any) -> Backfilled:
        """Backfill the decay classes of a namespace."""
        place: embed.Position | None = embed.START
        done = Backfilled()
        while place is not None:
            place, more = backfill.backfill(self.context, namespace, place, day(at), **options)
            done += more
        return done

    def examine(self, at: float = 0, *, namespace: str | None = None, mend: bool = False) -> dict[str, int]:
        """Return the number of facts with each fault; `mend` repairs them."""
        place: embed.Position | None = embed.START
        found = Examined(examined=0, faults=[], mended=mend)
        while place is not None:
            place, found = doctor.examine(self.context, namespace, place, day(at), found)
        return {one.fault: one.facts for one in found.faults}

    def choose(
        self, given: dict[str, Any] | None = None, *unset: str, at: float = 0, namespace: str = "default"
    ) -> Any:
        """Set and unset settings of a namespace; return its effective hygiene."""
        asked = ChangeSettings(namespace=namespace, set=given, unset=list(unset))
        return namespace_settings.change(self.context, asked, day(at)).settings["hygiene"]

    def store_turns(self, turns: int, *, at: float = 0, session: str = "chat", namespace: str = "default") -> None:
        """Store turns of a session."""
        first = self.stats(at, namespace).turns
        self.store(
            *[{"text": f"{session} {first + i}", "session": session, "turn": first + i} for i in range(turns)],
            at=at,
            namespace=namespace,
        )

    def archive(self, at: float = 0, namespace: str | None = "default") -> list[dict[str, Any]]:
        """Return all records of an export as JSON values."""
        lines = export.export(self.context, namespace, day(at))
        return [
            json.loads(json.dumps(line, default=lambda one: getattr(one, "isoformat", one.__str__)())) for line in lines
        ]

    def import_records(self, lines: list[dict[str, Any]], at: float = 0, namespace: str = "default") -> list[str]:
        """Import an archive; return the outcomes."""
        records = [archived(line, self.context.settings.max_text) for line in lines]
        done = import_archive.import_records(self.context, namespace, records, day(at))
        return [one.action if isinstance(one, Stored) else str(one) for one in done]

    def stats(self, at: float = 0, namespace: str = "default") -> Stats:
        """Return the statistics of a namespace."""
        return stats.stats(self.context, ShowStats(namespace=namespace), day(at))

    def row(self, id_: UUID) -> dict[str, Any]:
        """Return the columns of one fact, with instants in days."""
        with transaction(self.context.database_url) as db, db.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(ROW, {"id": id_, "day_0": int(DAY_0.timestamp())}).fetchone()
        assert found is not None
        return found

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, if any."""
        with transaction(self.context.database_url) as db:
            cursor = db.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: Any) -> Any:
        """Return the single value of a query."""
        return self.rows(statement, *values)[0][0]


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
