"""Tasks with generated arguments: each is done or refused with a message; none fails, and nothing is lost."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery.exceptions import TimeoutError as NoResultError
from hypothesis import given
from hypothesis import strategies as st
from live_system import FOLDER, ROOT, LiveSystem
from made_up import JSON, TEXTS, examples, spoilt, spoilt_within

from workers.coordination import outbox
from workers.memory import history
from workers.memory.recall import lookups
from workers.storage import limits, relations, supersession
from workers.storage.tombstones import Cursor
from workers.storage.visible import Place
from workers.validation import cursors

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("traceback_logged")]

AT = "2026-01-01T00:00:00Z"
NAME = "made-up"
WITNESS = "witness"
KEPT = ["The lighthouse keeper counts ships.", "Rye bread needs a night.", "Tea is at four."]
ONE, TWO, NONE = (f"0198c0de-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))

HERE = {"namespace": NAME, "now": AT}
FILTERS = {"tag": "a", "category": "b", "kind": "semantic", "role": "user", "pinned": True, "entity": "Mira",
           "key": "home", "session": "s", "source": "d", "tier": "hot", "documents": False}  # fmt: skip
ASKED: dict[str, dict[str, Any]] = {
    "memory.store": HERE | {"text": "Mira moved.", "touch": True, "classify": True, "tags": ["a"], "kind": "episodic",
                            "count_turns": True, "apart": True,
                            "session": "s", "turn": 1, "metadata": {"a": 1}, "supersedes": NONE, "entity": "Mira",
                            "key": "home", "value": "Halle", "again": False, "decay_class": "stable", "created_at": AT,
                            "id": NONE, "durability": "persistent", "source_date": AT, "last_seen_at": AT,
                            "category": "b", "summary": "c", "source": "d", "importance": 0.5, "salience": 0.5,
                            "strength": 0.5, "coactivations": 1, "confidence": 0.9, "decay_class_source": "auto",
                            "role": "user", "valid_from": AT, "valid_until": "2999-01-01"},
    "memory.store_many": HERE | {"facts": [{"text": "Mira moved."}, {"text": "b"}], "touch": True, "classify": True,
                                 "count_turns": True},
    "memory.remember": HERE | {"messages": [{"role": "user", "content": "a"}], "session": "s", "source": "d",
                               "touch": True, "classify": False, "count_turns": True},
    "memory.bring_back": HERE | {"records": [{"link": {"source": ONE, "target": TWO}}, {"text": "a"}]},
    "memory.recall": HERE | {"query": "Mira", "limit": 3, "as_of": AT, "known_as_of": AT, "explain": True, "why": ONE,
                             "min_relevance": 0.5, "touch": True, "deep": False, "namespaces": [NAME]} | FILTERS,
    "memory.recall_many": HERE | {"queries": [{"query": "Mira", "namespaces": [NAME]}, {"query": "b", "touch": True}]},
    "memory.lookup": HERE | {"entity": "Mira", "key": "home", "tag": "a", "as_of": AT, "known_as_of": AT,
                             "touch": True, "limit": 3},
    "memory.context": HERE | {"query": "Mira", "limit": 3, "max_tokens": 90, "format": "full", "dates": False,
                              "order": "rank", "summary_threshold": 9, "prefer_long_term": True,
                              "use_importance_recency": True,
                              "min_similarity": 0.5, "min_relevance": 0.5, "entity_lookup": True, "entities": ["Mira"],
                              "documents": True, "explain": True, "touch": True, "deep": False,
                              "namespaces": [NAME]} | FILTERS,
    "memory.touch": {"ids": [ONE], "namespace": NAME, "at": AT, "question": 7, "deep": False},
    "memory.record_touches": {"namespace": NAME},
    "memory.reinforce": HERE | {"id": ONE, "boost": 0.2},
    "memory.used": HERE | {"ids": [ONE]},
    "memory.regenerate": {"ids": [ONE], "namespace": NAME, "now": AT},
    "memory.forget": HERE | {"ids": None, "purge": False, "entity": "Mira", "key": "home", "tag": "a", "category": "b",
                             "session": "s", "source": "d", "query": "Mira", "dry_run": True},
    "memory.restore": HERE | {"ids": None, "since": AT, "until": AT, "reason": "expired", "run": ONE,
                              "dry_run": False},
    "memory.forgotten": {"namespace": NAME, "since": AT, "until": AT, "reason": "expired", "run": ONE, "limit": 3,
                         "asked": True},
    "memory.held": {"namespace": NAME, "limit": 3},
    "memory.keep": HERE | {"ids": [ONE], "everything": False},
    "memory.let_go": HERE | {"ids": [ONE], "everything": False},
    "memory.pin": HERE | {"id": ONE, "until": AT, "off": False},
    "memory.edit": HERE | {"id": ONE, "tags": ["a"], "importance": 0.5, "decay_class": "stable", "metadata": {"a": 1},
                           "category": "b", "entity": "Mira", "key": "home", "value": "Halle", "summary": "c",
                           "source": "d", "confidence": 0.9, "role": "user", "valid_from": AT,
                           "valid_until": "2999-01-01"},
    "memory.history": HERE | {"id": ONE, "limit": 3, "links": True},
    "memory.purge": HERE | {"dry_run": True, "scheduled": False, "everywhere": False},
    "memory.branch": {"namespace": NAME, "older": "30d"},
    "memory.branches": HERE | {"everywhere": False},
    "memory.drop_branch": {"namespace": NAME, "older": 30},
    "memory.shards": {},
    "memory.move_namespace": {"namespace": NAME, "shard": 0},
    "memory.documents": {"namespace": NAME, "name": "folder"},
    "memory.index": HERE | {"path": "folder/a.md", "chunks": [{"text": "a", "section": "b", "line": 1}],
                            "digest": "0" * 64, "folder": "/x"},
    "memory.upload": HERE | {"path": "folder/b.md", "text": "# B\n\nb"},
    "memory.register_folder": {"namespace": NAME, "path": str(FOLDER), "name": "made"},
    "memory.unregister_folder": {"namespace": NAME, "name": "made"},
    "memory.folders": {"namespace": NAME},
    "memory.read_folder": {"namespace": NAME, "name": "made"},
    "memory.read_folders": {},
    "memory.unindex": {"namespace": NAME, "paths": ["folder/a.md"]},
    "memory.link": HERE | {"source": ONE, "target": TWO, "type": "PART_OF", "strength": 0.5},
    "memory.unlink": {"namespace": NAME, "source": ONE, "target": TWO, "type": "PART_OF"},
    "memory.slice": {"namespace": NAME, "batch": "none", "place": 0, "slices": 2},
    "memory.autolink": HERE | {"ids": [ONE]},
    "memory.extract": HERE | {"ids": [ONE]},
    "memory.relate": HERE | {"source": "a", "target": "b", "type": "t", "weight": 0.5, "pinned": False,
                             "last_observed": "2026-01-01"},
    "memory.unrelate": {"namespace": NAME, "source": "a", "target": "b", "type": "t"},
    "memory.relations": HERE | {"decayed": False, "entity": "a", "limit": 3},
    "relations.decay": HERE | {"dry_run": True, "everywhere": False},
    "memory.put_item": HERE | {"path": ["a"], "key": "b", "document": '{"a": 1}', "text": "words", "ttl": 5},
    "memory.put_items": HERE | {"items": [{"path": ["a"], "key": "b", "document": {"a": 1}}]},
    "memory.many_items": HERE | {"queries": [{"path": ["a"], "query": "words", "limit": 3}, {"key": "b"}]},
    "memory.items": HERE | {"path": ["a"], "key": "b", "query": "words", "filter": {"a": {"$gt": 1}}, "limit": 3,
                            "offset": 0, "refresh": True},
    "memory.drop_item": HERE | {"path": ["a"], "key": "b"},
    "memory.item_paths": HERE,
    "memory.settings": HERE | {"set": {"hygiene.schedule": "manual"}, "unset": ["hygiene.episodicTTL"]},
    "memory.stats": HERE,
    "memory.namespaces": {"prefix": "made", "limit": 3},
    "memory.course": HERE | {"days": 3},
    "memory.system_course": {"days": 3, "now": AT},
    "memory.thin_course": {"now": AT},
    "memory.curve": HERE | {"id": ONE},
    "memory.neighbours": HERE | {"id": ONE, "most": 3},
    "memory.fact": HERE | {"id": ONE, "latest": True},
    "memory.facts": HERE | {"limit": 3, "before": ONE, "offset": 1, "ids": None} | FILTERS,
    "memory.forecast": HERE | {"days": 3, "shown": 2, "set": ["cold_threshold=0.3"], "ending": 7, "by": "value"},
    "memory.timeline": HERE | {"entity": "Mira", "key": "home", "limit": 3},
    "memory.contradictions": HERE | {"limit": 3},
    "memory.resolve": HERE | {"ids": [ONE, TWO], "keep": ONE, "both": False},
    "memory.doctor": HERE | {"mend": True, "everywhere": False},
    "memory.consolidate": HERE | {"apply": True, "force": True, "limit": 3, "scheduled": False,
                                  "everywhere": False},
    "memory.consolidate_all": {"now": AT},
    "memory.janitor": HERE | {"scheduled": False, "everywhere": False},
    "memory.janitor_snapshot": {"namespace": NAME},
    "memory.prune_by_llm": HERE,
    "memory.embed_pending": {},
    "memory.lexemes": {},
    "memory.analyze": {"namespace": NAME},
    "memory.settle_tallies": {},
    "memory.notify_endings": {"now": AT, "after": 1, "shard": 1},
    "memory.ann": {},
    "memory.rebuild_indexes": {},
    "memory.clean": {},
    "memory.sweep_outbox": {},
    "memory.publish_keys": {},
    "memory.add_key": {"namespace": NAME, "id": ONE, "digest": "0" * 64, "scopes": ["read"], "label": "a",
                       "ends": "2999-01-01"},
    "memory.change_key": {"namespace": NAME, "id": ONE, "ends": "2999-01-01", "revoke": False},
    "memory.measure": {"now": AT},
    "memory.health": {},
    "decay.plan": {"now": AT, "dry_run": True, "force": False, "scheduled": False, "namespace": NAME,
                   "everywhere": False},
    "decay.prune": {"now": AT, "hard": True, "soft": True, "dry_run": True, "scheduled": False, "startup": False,
                    "namespace": NAME, "everywhere": False},
    "decay.apply": {"run": ONE, "segment": 1, "part": 0, "grouped": True},
    "decay.runs": {"namespace": NAME, "limit": 3, "before": AT, "everything": False},
    "decay.backfill": HERE | {"dry_run": True, "prune": False, "everywhere": False},
}  # fmt: skip
COUNTED = {"id": ONE, "text": "a"}
GOING_ON: dict[str, dict[str, Any]] = {
    "memory.consolidate": {
        "run": ONE,
        "asked_by": "a-caller",
        "after": NAME,
        "so_far": {
            "compared": 1,
            "merged": 1,
            "groups": [{"keep": COUNTED, "merge": [COUNTED | {"similarity": 0.95}]}],
        },
    },
    "memory.forget": {
        "run": ONE,
        "accepted": False,
        "asked_by": "a-caller",
        "so_far": {"results": [{"id": ONE, "action": "kept"}], "matching": 1, "kept": 1},
    },
    "memory.restore": {
        "after": cursors.following(Cursor(datetime(2026, 1, 1, tzinfo=UTC), UUID(ONE))),
        "asked_by": "a-caller",
        "so_far": {"restored": 1, "pinned": 0, "unchanged": 0, "refused": 1, "errors": [{"id": ONE, "error": "a"}]},
    },
    "memory.janitor": {"run": ONE, "asked_by": "a-caller", "after": NAME},
    "memory.branch": {"after": ONE, "pairs": True, "asked_by": "a-caller"},
    "memory.drop_branch": {"dropped": [NAME], "asked_by": "a-caller"},
    "memory.prune_by_llm": {"run": ONE, "after": ONE},
    "memory.embed_pending": {"after": [1, ONE], "shard": 0},
    "memory.doctor": {
        "after": [1, ONE],
        "shard": 0,
        "asked_by": "a-caller",
        "so_far": {
            "examined": 1,
            "mended": True,
            "faults": [{"fault": "no vector", "facts": 1, "meaning": "a", "first": [ONE]}],
        },
    },
    "decay.backfill": {
        "after": [1, ONE],
        "shard": 0,
        "asked_by": "a-caller",
        "so_far": {"examined": 1, "overdue": 0, "changes": [{"from": "none", "to": "stable", "facts": 1}]},
    },
    "relations.decay": {
        "after": [1, 1],
        "shard": 0,
        "asked_by": "a-caller",
        "so_far": {
            "processed": 1,
            "decayed": 1,
            "belowMinimum": 0,
            "pinned": 0,
            "edges": [{"from": "a", "to": "b", "type": "t", "weight": 0.5, "lastObserved": "2026-01-01"}],
        },
        "scheduled": True,
        "spent_ms": 1.5,
    },
}
"""Arguments with which tasks continue where the previous ones stopped."""

PAGED: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "memory.history": (history.Cursor, {"id": ONE}),
    "memory.lookup": (lookups.Cursor, {"entity": "Mira"}),
    "memory.timeline": (history.TimelineCursor, {"entity": "Mira", "key": "home"}),
    "memory.contradictions": (supersession.ContradictionCursor, {}),
    "memory.relations": (relations.Cursor, {}),
    "memory.facts": (Place, {}),
    "memory.forgotten": (Cursor, {}),
    "memory.held": (limits.HeldCursor, {}),
}
REFUSALS = ("InvalidInputError", "NotFoundError")
SILENT = (
    "memory.read_folder", "memory.read_folders",
    "memory.slice", "memory.touch", "memory.record_touches", "memory.regenerate", "memory.autolink", "memory.extract",
    "memory.consolidate_all",
    "memory.analyze", "memory.embed_pending", "memory.notify_endings",
    "memory.lexemes", "memory.settle_tallies", "memory.ann", "memory.clean", "memory.sweep_outbox", "decay.apply",
)  # fmt: skip
"""Tasks without a waiting caller; their outcome is in the log."""


ANY_OF: dict[str, st.SearchStrategy[Any]] = {
    str(datetime): st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=23)), timezone.min])),
    str(float): st.floats(),
    str(int): st.one_of(st.integers(), st.sampled_from([-1, 2**63, 10**400])),
    str(str): TEXTS,
}
"""Values in a cursor by type; all others are ids."""


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.fixture(scope="module")
def known(live: LiveSystem) -> LiveSystem:
    """Return the system with some facts that must survive all generated tasks."""
    with live.client(WITNESS) as memory:
        memory.store_many([{"text": text, "decay_class": "permanent"} for text in KEPT])
    with live.client(NAME) as memory:
        facts = [{"id": id_, "entity": "Mira", "key": "home", "value": id_} for id_ in (ONE, TWO)]
        memory.store_many([{"text": f"Mira lives at {fact['value']}"} | fact for fact in facts])
    return live


def answer(system: LiveSystem, task: str, arguments: dict[str, Any]) -> str | None:
    """Return how a task fails, or None if it is done or refused with a message."""
    result = system.send(task, arguments, str(uuid4()))
    if task in SILENT:
        return None
    try:
        outcome = result.get(propagate=False)
    except NoResultError:
        return "no answer"
    finally:
        result.forget()
    if not isinstance(outcome, Exception):
        return None if outcome is not None else "nothing"
    name = type(outcome).__name__
    said = name in REFUSALS and len(str(outcome)) > 10 and len(str(outcome)) < 5_000
    return None if said else f"{name}: {outcome}"


def test_every_task_is_known_here(live: LiveSystem) -> None:
    registered = {task.split(" ")[0] for tasks in live.ask("registered").values() for task in tasks}
    assert {task for task in registered if not task.startswith("celery.")} == set(ASKED)


@pytest.mark.parametrize("task", sorted(ASKED))
def test_valid_arguments_are_accepted(known: LiveSystem, task: str) -> None:
    assert answer(known, task, ASKED[task]) is None


@pytest.mark.parametrize("task", sorted(ASKED))
@examples(6, least=2)
@given(data=st.data())
def test_any_arguments_are_accepted_or_refused_with_a_message(
    known: LiveSystem, task: str, data: st.DataObject
) -> None:
    arguments = data.draw(spoilt(ASKED[task], JSON))
    assert answer(known, task, arguments) is None


@pytest.mark.parametrize("task", sorted(GOING_ON))
def test_a_successor_continues_and_answers_the_waiting_caller(known: LiveSystem, task: str) -> None:
    if task == "memory.branch":  # a successor goes on with a branch, and makes none
        assert answer(known, task, ASKED[task]) is None
    waiting = str(uuid4())
    given = ASKED[task] | GOING_ON[task] | ({"asked_by": waiting} if "asked_by" in GOING_ON[task] else {})
    if "asked_by" in given:
        outbox.put(known.own_keys, outbox.Entry(waiting, task, given, time.time(), namespace=NAME))
    assert answer(known, task, given) is None
    if "asked_by" in given:
        assert not known.accepted(waiting)
        result = known.control.AsyncResult(waiting)
        counts = result.get()
        result.forget()
        assert known.send(task, ASKED[task], waiting).get() == counts  # a late delivery does nothing again
        for name, before in given.get("so_far", {}).items():
            assert name == "mended" or _size(counts[name]) >= _size(before), name


def _size(counted: Any) -> int:
    """Return a count, or the length of a list."""
    return len(counted) if isinstance(counted, list) else int(counted)


@pytest.mark.parametrize("task", sorted(GOING_ON))
@examples(25)
@given(data=st.data())
def test_any_continuation_is_accepted_or_refused_with_a_message(
    known: LiveSystem, task: str, data: st.DataObject
) -> None:
    arguments = ASKED[task] | data.draw(spoilt_within(GOING_ON[task]))
    assert answer(known, task, arguments) is None


def test_every_argument_of_every_task_is_made_up_somewhere() -> None:
    cursors = {task: {"cursor"} for task in PAGED}
    for task, declared in declared_arguments():
        assert declared <= {*ASKED[task], *GOING_ON.get(task, ()), *cursors.get(task, ())}, task


def declared_arguments() -> Iterator[tuple[str, set[str]]]:
    """Yield each task with its arguments."""
    for line in (ROOT / "tests" / "golden" / "tasks.txt").read_text(encoding="utf-8").splitlines():
        name, _, arguments = line.rstrip(")").partition("(")
        yield name, {one.partition("=")[0] for one in arguments.split(", ") if one}


@pytest.mark.parametrize("task", sorted(PAGED))
@examples(12)
@given(data=st.data())
def test_any_cursor_is_accepted_or_refused_with_a_message(known: LiveSystem, task: str, data: st.DataObject) -> None:
    kind, arguments = PAGED[task]
    kinds = {field.name: ANY_OF.get(str(field.type), st.uuids()) for field in fields(kind)}
    forged = st.builds(kind, **kinds).map(cursors.following)
    cursor = data.draw(st.one_of(forged, forged, JSON, JSON.map(json.dumps).map(encoded)))
    assert answer(known, task, HERE | arguments | {"limit": 2, "cursor": cursor}) is None


@pytest.mark.parametrize(
    ("task", "argument", "value"),
    [
        ("memory.forget", "purge", "false"),
        ("memory.purge", "dry_run", "yes"),
        ("memory.recall", "touch", "false"),
        ("decay.plan", "dry_run", None),
        ("memory.consolidate", "apply", "no"),
        ("memory.items", "offset", "1"),
        ("memory.items", "query", 7),
        ("memory.put_item", "path", []),
        ("memory.put_item", "ttl", 10**400),
        ("memory.recall", "quary", "Mira"),
        ("memory.touch", "ids", [7]),
        ("decay.apply", "run", "x"),
    ],
)
def test_arguments_once_accepted_by_mistake_are_refused_by_name(
    known: LiveSystem, task: str, argument: str, value: Any
) -> None:
    result = known.send(task, ASKED[task] | {argument: value})
    if task not in SILENT:
        with pytest.raises(Exception, match=argument) as refused:
            result.get()
        assert type(refused.value).__name__ == "InvalidInputError"


def test_nothing_failed_unseen_and_nothing_was_lost(known: LiveSystem, traceback_logged: Callable[[], str]) -> None:
    assert not traceback_logged()
    assert sorted(text for _, text in known.facts(WITNESS)) == sorted(KEPT)
