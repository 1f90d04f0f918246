"""Tasks through the client, on real workers: answers, follow-up work, and redelivered messages."""

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import redis
import server_process
from celery.exceptions import TaskRevokedError
from databases import RUN_OF_EACH_SHARD, WITHOUT_FSYNC
from live_system import LiveSystem, eventually

from api import transport
from api.client import Client
from api.up import servers
from workers.coordination import outbox, signals, touches
from workers.coordination.touches import Waiting
from workers.core.fidelity import FINGERPRINT, FULL
from workers.errors import EbbError, InvalidInputError, TaskFailedError, UnavailableError

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

DIMS = 256
LAST_TRY = 6
"""As `EbbTask.max_retries`, which a process without settings cannot import."""

FEW = ["I moved to Leipzig.", "The cat is called Minka.", "My sister works at the bank."]
WORDS = (
    "otter", "lantern", "harbour", "violin", "saffron", "glacier",
    "compass", "thimble", "walnut", "meadow", "anchor", "velvet",
)  # fmt: skip


def ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def recalls(live: LiveSystem, id_: str) -> int:
    ((count,),) = live.rows("select recall_count from activity where fact = %s", [id_])
    return int(count)


def fidelity(live: LiveSystem, id_: str) -> tuple[int, int | None]:
    """Return a fact's fidelity and the dims of its vector, if any."""
    ((code, dims),) = live.rows(
        """
        select fidelity, vector_dims(embedding) from activity
        left join vectors on vectors.namespace = activity.namespace and vectors.fact = activity.fact
        where activity.fact = %s
        """,
        [id_],
    )
    return code, dims


def store_faded(client: Client, count: int, days: float = 400) -> list[str]:
    """Store facts whose vectors are due to be dropped; return their ids."""
    facts = [
        {"text": f"The {WORDS[i % 12]} number {i} of {client.namespace}.", "last_seen_at": ago(days), "salience": 0.3}
        for i in range(count)
    ]
    return [answer["id"] for answer in client.store_many(facts, classify=False)["results"]]


def test_a_repeated_fact_is_stored_once(client: Client) -> None:
    first = client.store("Mira's bicycle is blue.", tags=["bicycle"])
    again = client.store("Mira's bicycle is blue.")
    assert first.items() >= {"id": first["id"], "action": "added", "embedded": True}.items()
    assert again.items() >= {"id": first["id"], "action": "duplicate", "embedded": True}.items()


def test_a_recall_is_recorded_afterwards(live: LiveSystem, client: Client) -> None:
    stored = client.store("The spare key hangs behind the clock.", last_seen_at=ago(3))
    (found,) = client.recall("Where is the spare key?")["results"]
    assert found["id"] == stored["id"]
    eventually(lambda: recalls(live, stored["id"]) == 1, "the recall is counted")
    ((seen, accessed),) = live.rows(
        "select last_seen_at, last_accessed_at from activity where fact = %s", [stored["id"]]
    )
    assert seen == accessed > datetime.now(UTC) - timedelta(minutes=1)


def test_a_question_that_is_repeated_at_once_strengthens_a_fact_once(live: LiveSystem, client: Client) -> None:
    id_ = client.store("The spare key hangs behind the clock.", salience=0.2)["id"]
    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(client.recall, ["Where is the spare key?"] * 12))
    assert {one["results"][0]["id"] for one in found} == {id_}
    assert client.recall("where is the  SPARE key?")["results"]
    live.settle()
    (counted,) = live.rows("select recall_count, coactivations from activity where fact = %s", [id_])
    assert counted == (1, 1)
    assert client.recall("What hangs behind the clock?")["results"]
    live.settle()
    assert recalls(live, id_) == 2


def test_of_a_few_facts_those_that_hardly_match_are_shown_and_not_strengthened(
    live: LiveSystem, client: Client
) -> None:
    ids = [one["id"] for one in client.store_many([{"text": text} for text in FEW])["results"]]
    before, touches = live.state(), live.begun_when_idle().get("memory.record_touches", 0)
    guess = "Where does she live?"
    assert {one["id"] for one in client.recall(guess)["results"]} >= {ids[0]}
    assert {one["id"] for one in client.context(guess)["facts"]} >= {ids[0]}
    assert live.begun_when_idle().get("memory.record_touches", 0) == touches
    assert live.state() == before
    assert client.recall("What is the cat called?")["results"][0]["id"] == ids[1]
    eventually(lambda: recalls(live, ids[1]) == 1, "the recall is counted")
    assert recalls(live, ids[0]) == 0


def test_a_dry_recall_leaves_no_trace(live: LiveSystem, client: Client) -> None:
    client.store("The spare key hangs behind the clock.")
    before, touches = live.state(), live.begun_when_idle().get("memory.record_touches", 0)
    assert client.recall("Where is the spare key?", touch=False)["results"]
    assert client.recall("Where is the spare key?", as_of=ago(-1))["results"]
    assert live.begun_when_idle().get("memory.record_touches", 0) == touches
    assert live.state() == before


def test_a_lookup_is_recorded_afterwards_unless_it_is_dry(live: LiveSystem, client: Client) -> None:
    stored = client.store("OAuth for the API", entity="Home Assistant", key="login", last_seen_at=ago(3))
    before, touches = live.state(), live.begun_when_idle().get("memory.record_touches", 0)
    assert client.lookup("home assistant", "Login", touch=False)["results"]
    assert client.lookup("home assistant", as_of=ago(-1))["results"]
    assert client.lookup("unknown")["results"] == []
    assert live.begun_when_idle().get("memory.record_touches", 0) == touches
    assert live.state() == before
    (found,) = client.lookup("home assistant", tag="API")["results"]
    assert (found["id"], found["confidence"], found["tags"]) == (stored["id"], 1.0, ["auth", "api", "homeassistant"])
    eventually(lambda: recalls(live, stored["id"]) == 1, "the lookup is counted")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "entity: field required"),
        ({"entity": 5}, "entity: input should be a valid string; given 5"),
        ({"entity": "user", "tag": "a,b"}, "tag: a tag must not"),
    ],
)
def test_an_invalid_lookup_is_explained(live: LiveSystem, arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInputError, match=fault):
        live.send("memory.lookup", arguments).get()


def test_a_hit_on_a_fingerprint_restores_the_full_vector(live: LiveSystem, client: Client) -> None:
    (id_,) = store_faded(client, 1)
    client.decay()
    assert fidelity(live, id_) == (FINGERPRINT, None)
    (found,) = client.recall("Which otter was it?")["results"]
    assert (found["id"], found["fidelity"]) == (id_, "fingerprint")
    eventually(lambda: fidelity(live, id_) == (FULL, DIMS), "the fact has its full vector")
    (again,) = client.recall("Which otter was it?", touch=False)["results"]
    assert again["fidelity"] == "full"


@pytest.mark.parametrize(
    "use",
    [
        lambda client, id_: client.reinforce(id_),
        lambda client, _id: client.store(f"The otter number 0 of {client.namespace}."),
    ],
)
def test_reinforcing_or_storing_a_fact_restores_its_full_vector(
    live: LiveSystem, client: Client, use: Callable[[Client, str], Any]
) -> None:
    (id_,) = store_faded(client, 1)
    client.decay()
    assert fidelity(live, id_) == (FINGERPRINT, None)
    assert use(client, id_)["id"] == id_
    eventually(lambda: fidelity(live, id_) == (FULL, DIMS), "the fact has its full vector")


# Messages that come twice ---------------------------------------------------------------------------------------


def twice(live: LiveSystem, task: str, arguments: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Deliver one message twice; return the state after each delivery and the tasks that followed."""
    task_id, states = str(uuid4()), []
    live.settle()  # what was sent before may write, and mark namespaces to be counted, after the first delivery
    for _ in range(2):
        live.send(task, arguments, task_id)
        live.settle()
        states.append(live.state())
    return states[0], states[1]


def given(live: LiveSystem, namespace: str) -> tuple[str, str]:
    """Return the ids of two facts of a namespace, the second of which is a fingerprint."""
    with live.client(namespace) as client:
        fresh = client.store(f"The otter swims in the harbour of {namespace}.", entity="Otter", last_seen_at=ago(2))[
            "id"
        ]
        (faded,) = store_faded(client, 1)
        client.decay()
    return fresh, faded


REPEATED: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "memory.store": lambda _fresh, _faded: {"text": "A walnut tree grows behind the house.", "salience": 0.8},
    "memory.store_many": lambda _fresh, _faded: {"facts": [{"text": "One thimble."}, {"text": "Two thimbles."}]},
    "memory.recall": lambda _fresh, _faded: {"query": "Which otter swims in the harbour?"},
    "memory.lookup": lambda _fresh, _faded: {"entity": "otter"},
    "memory.touch": lambda fresh, faded: {"ids": [fresh, faded], "at": datetime.now(UTC).isoformat()},
    "memory.reinforce": lambda fresh, _faded: {"id": fresh, "boost": 0.1},
    "memory.used": lambda fresh, faded: {"ids": [fresh, faded]},
    "memory.regenerate": lambda fresh, faded: {"ids": [fresh, faded]},
    "memory.forget": lambda fresh, faded: {"ids": [fresh, faded]},
    "memory.pin": lambda _fresh, faded: {"id": faded},
    "memory.edit": lambda fresh, _faded: {"id": fresh, "decay_class": "session", "tags": ["harbour"]},
}


@pytest.mark.parametrize("task", REPEATED)
def test_a_message_that_comes_twice_changes_nothing_the_second_time(
    live: LiveSystem, namespace: str, task: str
) -> None:
    before = given(live, namespace), live.state()
    once, again = twice(live, task, REPEATED[task](*before[0]) | {"namespace": namespace})
    assert once != before[1]
    assert again == once


@pytest.mark.parametrize("task", ["memory.touch", "memory.reinforce", "memory.used"])
def test_a_redelivered_use_is_counted_once_even_if_redis_lost_its_first_delivery(
    live: LiveSystem, namespace: str, task: str
) -> None:
    (fresh, faded), task_id = given(live, namespace), str(uuid4())
    arguments, states = REPEATED[task](fresh, faded) | {"namespace": namespace}, []
    for _ in range(2):
        live.send(task, arguments, task_id)
        live.settle()
        states.append(live.state())
        live.own_keys.delete(f"{signals.FIRST_SEEN}:{task_id}")
    assert states[1] == states[0]


def test_every_acknowledged_reinforcement_of_one_fact_is_counted(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        id_ = client.store("Tea at four.")["id"]

    def reinforcing(_: int) -> list[Any]:
        with live.client(namespace) as client:
            return [client.reinforce(id_) for _ in range(25)]

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(reinforcing, range(8)))
    assert sum(len(answers) for answers in done) == 200
    assert live.rows("select confirmations from activity where fact = %s", [id_]) == [(200,)]


def test_storing_a_known_fact_by_a_redelivered_message_touches_it_once(live: LiveSystem, namespace: str) -> None:
    given(live, namespace)
    text = f"The otter swims in the harbour of {namespace}."
    before = live.state()
    once, again = twice(live, "memory.store", {"text": text, "namespace": namespace})
    assert once != before
    assert again == once


UPKEEP = [
    "memory.lexemes",
    "memory.embed_pending",
    "memory.ann",
    "memory.rebuild_indexes",
    "memory.sweep_outbox",
    "memory.purge",
]


@pytest.mark.parametrize("task", UPKEEP)
def test_redelivered_maintenance_changes_nothing(live: LiveSystem, namespace: str, task: str) -> None:
    given(live, namespace)
    once, again = twice(live, task, {})
    assert again == once


def test_a_plan_that_comes_twice_makes_one_pass(live: LiveSystem, client: Client) -> None:
    store_faded(client, 30)
    task_id, answers = str(uuid4()), []
    for _ in range(2):
        result = live.send("decay.plan", {"namespace": client.namespace}, task_id)
        answers.append(result.get())
        live.settle()
        result.forget()
    assert answers[1] == answers[0]
    assert answers[0]["fingerprinted"] == 30
    assert live.rows("select count(*) from decay_runs where id = %s", [task_id]) == [(1,)]


def test_a_part_of_a_pass_that_comes_twice_counts_once(live: LiveSystem, client: Client) -> None:
    store_faded(client, 30)
    run = str(uuid4())
    live.send("decay.plan", {"everywhere": True}, run).get()
    counted = "select * from decay_parts where run = %s order by segment, part"
    before = live.state(), live.rows(counted, [run])
    for segment, part in live.rows("select segment, part from decay_parts where run = %s", [run]):
        live.send("decay.apply", {"run": run, "segment": segment, "part": part})
    live.settle()
    assert (live.state(), live.rows(counted, [run])) == before


def test_a_task_waits_for_the_lock_of_a_killed_delivery_after_any_number_of_tries(
    live: LiveSystem, namespace: str
) -> None:
    task_id = str(uuid4())
    with signals.try_lock(live.own_keys, f"once:{task_id}", 60):
        given = {"namespace": namespace}
        result = live.control.send_task("memory.consolidate", kwargs=given, task_id=task_id, retries=LAST_TRY)
        eventually(lambda: result.state in ("RETRY", "FAILURE"), "it waits for the lock")
    assert result.get()["merged"] == 0


def test_the_receipt_of_a_consolidation_counts_what_an_earlier_delivery_merged(
    live: LiveSystem, client: Client
) -> None:
    for end in (".", " now.", "!"):
        client.store(f"The blue heron rests on the wooden jetty of the old harbour{end}")
    given = {"namespace": client.namespace, "apply": True, "force": True}
    first = live.send("memory.consolidate", given)
    again = first.get()["merged"], live.send("memory.consolidate", given | {"run": first.id}).get()["merged"]
    assert again[0] == again[1] > 0


# The outbox -----------------------------------------------------------------------------------------------------


def waiting_in_outbox(live: LiveSystem, task_id: str) -> bool:
    return live.accepted(task_id)


def test_accepted_writes_leave_the_outbox_when_committed(live: LiveSystem, client: Client) -> None:
    accepted = client.store("The violin is in the attic.", wait=False)
    eventually(lambda: not waiting_in_outbox(live, accepted["task"]), "the outbox is empty")
    assert live.facts(client.namespace) == [(accepted["id"], "The violin is in the attic.")]


def accept_without_sending(live: LiveSystem, namespace: str, text: str, age_seconds: float) -> tuple[str, str]:
    task_id, id_ = str(uuid4()), str(uuid4())
    arguments = {"text": text, "namespace": namespace, "id": id_}
    accepted_at = time.time() - age_seconds
    outbox.put(live.own_keys, outbox.Entry(task_id, "memory.store", arguments, accepted_at, namespace=namespace))
    return task_id, id_


def test_accepted_writes_whose_message_is_lost_are_resent_and_stored_once(live: LiveSystem, namespace: str) -> None:
    task_id, id_ = accept_without_sending(live, namespace, "The violin is in the attic.", 1_000)
    for _ in range(2):
        live.send("memory.sweep_outbox", {})
    eventually(lambda: not waiting_in_outbox(live, task_id), "the outbox is empty")
    live.settle()
    assert live.facts(namespace) == [(id_, "The violin is in the attic.")]


def test_writes_accepted_by_a_clock_ahead_are_not_delayed(live: LiveSystem, namespace: str) -> None:
    task_id, id_ = accept_without_sending(live, namespace, "The violin is in the attic.", -86_400)
    live.send("memory.sweep_outbox", {})
    eventually(lambda: not waiting_in_outbox(live, task_id), "the outbox is empty")
    assert live.facts(namespace) == [(id_, "The violin is in the attic.")]


def test_recently_accepted_writes_are_not_resent(live: LiveSystem, namespace: str) -> None:
    task_id, _ = accept_without_sending(live, namespace, "The violin is in the attic.", 60)
    live.send("memory.sweep_outbox", {})
    live.settle()
    assert waiting_in_outbox(live, task_id)
    assert live.facts(namespace) == []
    outbox.remove(live.own_keys, namespace, task_id)


def test_an_accepted_write_that_is_revoked_before_it_begins_is_not_stored(live: LiveSystem, client: Client) -> None:
    task_id = str(uuid4())
    live.revoke(task_id)
    client.accept("memory.store", {"text": "The violin is in the attic.", "namespace": client.namespace}, task_id)
    eventually(lambda: not waiting_in_outbox(live, task_id), "the outbox is empty")
    live.settle()
    assert live.facts(client.namespace) == []
    state = client.state(task_id)
    assert state is not None
    assert state["state"] == "failed"
    assert "It was revoked" in state["error"]


def test_an_accepted_request_whose_successor_is_revoked_is_revoked(live: LiveSystem, namespace: str) -> None:
    task_id, successor = str(uuid4()), str(uuid4())
    given = {"entity": "Mira", "namespace": namespace}
    outbox.put(live.own_keys, outbox.Entry(task_id, "memory.forget", given, time.time(), namespace=namespace))
    live.revoke(successor)
    live.send("memory.forget", given | {"asked_by": task_id}, successor)
    with pytest.raises(TaskRevokedError):
        live.control.AsyncResult(task_id).get()
    assert not waiting_in_outbox(live, task_id)


def test_a_caller_gets_the_error_that_its_task_was_revoked(live: LiveSystem, client: Client) -> None:
    task_id = str(uuid4())
    live.revoke(task_id)
    with pytest.raises(TaskFailedError, match="It was revoked"):
        client.call("memory.stats", {"namespace": client.namespace}, 30, task_id=task_id)


def test_an_accepted_write_that_is_terminated_while_it_runs_is_not_begun_again(
    live: LiveSystem, client: Client
) -> None:
    live.facts(client.namespace)
    with psycopg.connect(live.database_url) as db:
        db.execute("lock table facts in access exclusive mode")
        given = {"text": "The violin is in the attic.", "namespace": client.namespace}
        task_id = client.accept("memory.store", given)
        eventually(lambda: any(one["id"] == task_id for one in live.active("memory.store")), "it runs")
        waiting = "from pg_locks where not granted and relation = 'facts'::regclass"
        eventually(lambda: db.execute(f"select pid {waiting}").fetchall(), "it waits for the table")
        live.revoke(task_id, terminate=True)
        eventually(lambda: not waiting_in_outbox(live, task_id), "the outbox is empty")
        # What the ended process had sent would otherwise be committed as soon as the table is free.
        db.execute(f"select pg_terminate_backend(pid) {waiting}")
    live.settle()
    assert live.facts(client.namespace) == []


def test_invalid_writes_do_not_stay_in_the_outbox(live: LiveSystem, namespace: str) -> None:
    task_id, _ = accept_without_sending(live, namespace, " ", 1_000)
    live.send("memory.sweep_outbox", {})
    eventually(lambda: not waiting_in_outbox(live, task_id), "the outbox is empty")
    assert live.facts(namespace) == []


# Decay ----------------------------------------------------------------------------------------------------------


def test_a_pass_answers_with_its_counters_when_all_segments_are_done(live: LiveSystem, client: Client) -> None:
    client.decay()
    ids = store_faded(client, 200)
    done = client.decay()
    assert done["processed"] == done["changed"] == done["fingerprinted"] == len(ids)
    assert done["segments"] > 40
    assert {fidelity(live, id_) for id_ in ids} == {(FINGERPRINT, None)}


def test_a_pass_with_nothing_due_answers_too(client: Client) -> None:
    client.decay()
    done = client.decay()
    assert done["processed"] == done["segments"] == 0


def test_a_pass_on_a_forecast_day_matches_the_forecast(live: LiveSystem, client: Client) -> None:
    (id_,) = store_faded(client, 1, days=1)

    (day,) = [day for day in client.forecast(days=120)["days"] if day["fingerprinted"]]
    assert [fact["id"] for fact in day["facts"] if fact["change"] == "fingerprinted"] == [id_]
    client.decay(now=(datetime.fromisoformat(day["at"]) - timedelta(days=1)).isoformat())
    assert fidelity(live, id_)[0] != FINGERPRINT
    client.decay(now=day["at"])
    assert fidelity(live, id_)[0] == FINGERPRINT


def test_a_dry_run_matches_the_pass(live: LiveSystem, client: Client) -> None:
    client.decay()
    store_faded(client, 100)
    before, now = live.state(), ago(-1)
    tried = client.decay(now=now, dry_run=True)
    assert live.state() == before
    done = client.decay(now=now)
    assert done["processed"] >= 100
    assert tried | {"duration_ms": 0} == done | {"duration_ms": 0}


@pytest.fixture
def rested(live: LiveSystem) -> None:
    live.own_keys.delete(signals.COOLDOWN, signals.SKIPPED, signals.RECALLED)


def scheduled(live: LiveSystem, now: str) -> dict[str, Any]:
    answer: dict[str, Any] = live.send("decay.plan", {"scheduled": True, "everywhere": True, "now": now}).get()
    return answer


@pytest.mark.usefixtures("rested")
def test_a_scheduled_pass_yields_to_users_three_times_at_most(live: LiveSystem) -> None:
    answers = []
    for _ in range(4):
        signals.note_recall(live.own_keys)
        answers.append(scheduled(live, ago(-1)))
    assert ["skipped" in answer for answer in answers] == [True, True, True, False]
    assert "processed" in answers[3]


@pytest.mark.usefixtures("rested")
def test_a_scheduled_pass_comes_a_minute_after_the_last_at_the_earliest(live: LiveSystem) -> None:
    assert "processed" in scheduled(live, ago(-2))
    assert "skipped" in scheduled(live, ago(-3))
    assert 0 < live.own_keys.ttl(signals.COOLDOWN) <= 60
    assert "processed" in live.send("decay.plan", {"everywhere": True}).get()


@pytest.mark.usefixtures("rested")
@RUN_OF_EACH_SHARD
def test_two_beats_in_one_minute_make_one_pass(live: LiveSystem, client: Client) -> None:
    store_faded(client, 5)
    now = "2101-01-01T00:00:00Z"
    assert scheduled(live, now)["processed"] >= 5
    live.own_keys.delete(signals.COOLDOWN)
    assert scheduled(live, "2101-01-01T00:00:59Z")["processed"] == 0
    assert live.rows("select count(*) from decay_runs where slot = %s", [now]) == [(1,)]


# Upkeep ---------------------------------------------------------------------------------------------------------


def test_words_of_a_namespace_that_grew_are_counted(live: LiveSystem, client: Client) -> None:
    client.store_many([{"text": "A glacier calves."}, {"text": "The glacier retreats."}])
    live.send("memory.lexemes", {})
    counted = """
        select facts from lexemes join namespaces on namespaces.id = lexemes.namespace
        where name = %s and lexeme = 'glacier'
    """
    eventually(lambda: live.rows(counted, [client.namespace]) == [(2,)], "the word is counted")


def test_facts_without_vector_get_one(live: LiveSystem, client: Client) -> None:
    id_ = client.store("The compass points north.")["id"]
    live.rows("delete from vectors where fact = %s", [id_])
    live.rows("delete from signatures where fact = %s", [id_])
    live.rows("update activity set fidelity = 0 where fact = %s", [id_])
    assert client.stats()["pending_embeddings"] == 1
    live.send("memory.embed_pending", {})
    eventually(lambda: fidelity(live, id_) == (FULL, DIMS), "the fact has a vector")
    assert live.incomplete() == 0


def test_a_large_namespace_gets_an_index_of_its_own_and_is_still_recalled(live: LiveSystem, client: Client) -> None:
    facts = [{"text": f"The {first} lies beside the {second}."} for first in WORDS for second in WORDS]
    client.store_many(facts)
    ((tenant,),) = live.rows("select id from namespaces where name = %s", [client.namespace])
    live.send("memory.ann", {})
    valid = """
        select true from pg_index join pg_class on pg_class.oid = indexrelid
        where indisvalid and relname like %s
    """
    eventually(lambda: live.rows(valid, [f"%\\_{tenant}"]), "the index is there and valid")
    best = client.recall("saffron beside a glacier", touch=False)["results"][0]
    assert best["text"] == "The saffron lies beside the glacier."


# What is wrong --------------------------------------------------------------------------------------------------

BAD_FACTS: dict[str, dict[str, Any]] = {
    "empty": {"text": ""},
    "blank": {"text": " \n\t "},
    "only injected context": {"text": "<memory-context>old</memory-context>"},
    "no text": {"text": 7},
    "too long": {"text": "x" * 65_537},
    "NUL": {"text": "a\0b"},
    "lone surrogate": {"text": "a\ud800b"},
    "NUL in a field": {"entity": "a\0b"},
    "lone surrogate in a tag": {"tags": ["\udfff"]},
    "NaN": {"importance": float("nan")},
    "infinity": {"salience": float("inf")},
    "huge number": {"confidence": 1e308},
    "huge whole number": {"turn": 10**400},
    "huge session": {"session": 2**80},
    "negative": {"importance": -0.1},
    "unknown field": {"colour": "blue"},
    "unknown class": {"decay_class": "eternal"},
    "naive date": {"source_date": "2025-01-31T10:00:00"},
    "no date": {"created_at": "soon"},
    "a date beyond the calendar": {"last_seen_at": "9999-12-31T23:59:59-23:00"},
    "no UUID": {"id": "seven"},
    "no tags": {"tags": {"a": 1}},
    "now that is no instant": {"now": "yesterday"},
    "naive now": {"now": "2025-01-31T10:00:00"},
}


@pytest.mark.parametrize("fault", BAD_FACTS)
def test_invalid_facts_are_refused_with_a_message(live: LiveSystem, client: Client, fault: str) -> None:
    fact = {"text": "A meadow."} | BAD_FACTS[fault]
    with pytest.raises(InvalidInputError) as refused:
        client.store(**fact)
    assert len(str(refused.value)) > 20
    assert live.facts(client.namespace) == []


@pytest.mark.parametrize("name", ["", " ", "two words", "a\0b", "\ud800", "x" * 129, "../up", "na\u00efve"])
def test_a_namespace_with_other_characters_is_refused(live: LiveSystem, name: str) -> None:
    with live.client(name) as client:
        with pytest.raises(InvalidInputError, match="is no name"):
            client.store("A meadow.")
        with pytest.raises(InvalidInputError, match="is no name"):
            client.recall("meadow")
        with pytest.raises(InvalidInputError, match="is no name"):
            client.stats()


def test_among_many_facts_only_the_bad_ones_are_refused(live: LiveSystem, client: Client) -> None:
    wrong = [fact for fault, fact in BAD_FACTS.items() if "now" not in fault]
    facts: list[Any] = [{"text": "First."}, *({"text": "A meadow."} | fact for fact in wrong), True, None, [], 1]
    results = client.store_many([*facts, {"text": "Last."}])["results"]
    assert [results[0]["action"], results[-1]["action"]] == ["added", "added"]
    assert [answer["index"] for answer in results[1:-1]] == list(range(1, len(facts)))
    assert all(answer["error"] for answer in results[1:-1])
    assert {text for _, text in live.facts(client.namespace)} == {"First.", "Last."}


@pytest.mark.parametrize("facts", [[], {}, "text", None, 7, [{"text": "x"}] * 10_001])
def test_an_invalid_list_of_facts_is_refused(client: Client, facts: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"facts: (input|list) should"):
        client.call("memory.store_many", {"facts": facts, "namespace": client.namespace}, 30)


BAD_QUESTIONS: dict[str, dict[str, Any]] = {
    "blank": {"query": "  "},
    "no text": {"query": 7},
    "NUL": {"query": "a\0b"},
    "lone surrogate": {"query": "\udc00"},
    "too long": {"query": "x" * 65_537},
    "limit of none": {"limit": 0},
    "huge limit": {"limit": 10**30},
    "limit in words": {"limit": "10"},
    "NaN as limit": {"limit": float("nan")},
    "blank tag": {"tag": " "},
    "NUL in a category": {"category": "\0"},
    "kind that is no text": {"kind": ["chunk"]},
    "naive instant": {"as_of": "2025-01-31T10:00:00"},
    "no instant": {"as_of": "then"},
    "no now": {"now": "later"},
}


@pytest.mark.parametrize("fault", BAD_QUESTIONS)
def test_invalid_queries_are_refused_with_a_message(client: Client, fault: str) -> None:
    with pytest.raises(InvalidInputError):
        client.recall(**({"query": "Which meadow?"} | BAD_QUESTIONS[fault]))


@pytest.mark.parametrize("boost", [0, -1, 1.5, float("nan"), float("inf"), "0.2", None, True])
def test_a_boost_out_of_range_is_refused(live: LiveSystem, client: Client, boost: Any) -> None:
    id_ = client.store("A meadow.")["id"]
    before = live.state()
    with pytest.raises(InvalidInputError, match="boost"):
        client.reinforce(id_, boost)
    assert live.state() == before


@pytest.mark.parametrize("id_", ["seven", "", 7, None, "\0", str(UUID(int=1))])
def test_only_live_facts_can_be_reinforced(client: Client, id_: Any) -> None:
    with pytest.raises(InvalidInputError, match="id: "):
        client.reinforce(id_)


@pytest.mark.parametrize("now", ["yesterday", "2025-01-31T10:00:00", "20250131", "\0"])
def test_a_pass_with_an_invalid_instant_is_refused(live: LiveSystem, client: Client, now: str) -> None:
    before = live.rows("select count(*) from decay_runs")
    with pytest.raises(InvalidInputError, match="now: "):
        client.decay(now=now)
    assert live.rows("select count(*) from decay_runs") == before


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("memory.recall", {"query": "Which meadow?", "colour": "blue"}),
        ("memory.reinforce", {"colour": "blue"}),
        ("memory.stats", {"colour": "blue"}),
        ("decay.plan", {"colour": "blue"}),
        ("memory.store", {"text": "A meadow.", "colour": "blue"}),
        ("memory.recall", {}),
    ],
)
def test_an_argument_that_a_task_does_not_know_is_an_error_at_once(
    client: Client, task: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError, match=r"colour: is no|query: field required"):
        client.call(task, arguments, 10)


# Servers that are away ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.store("A meadow."),
        lambda client: client.store("A meadow.", wait=False),
        lambda client: client.recall("meadow"),
        lambda client: client.decay(),
    ],
)
def test_an_unreachable_redis_is_reported(ask: Callable[[Client], Any]) -> None:
    port = servers.free_port()
    client = Client(f"redis://127.0.0.1:{port}/0")
    with pytest.raises(UnavailableError, match=rf"127\.0\.0\.1:{port}"):
        ask(client)
    client.close()


def test_a_client_survives_an_outage_of_redis(tmp_path: Path) -> None:
    """That no worker answers is the proof that Redis does."""
    server = servers.Redis(data=tmp_path, port=servers.free_port(), fsync=WITHOUT_FSYNC)
    servers.prepare_redis(server)
    client, command, log = Client(server.url()), server.command(), tmp_path / "log"
    for _ in range(2):
        with (
            server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM),
            pytest.raises(UnavailableError, match="No worker answered"),
        ):
            client.call("memory.stats", {}, 0.3)
        with pytest.raises(UnavailableError, match="Redis does not answer"):
            client.stats()
    client.close()


def test_an_outage_of_redis_between_connecting_and_the_first_message_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(transport.GIVE_UP_SOON, "max_retries", 100)
    server = servers.Redis(data=tmp_path, port=servers.free_port(), fsync=WITHOUT_FSYNC)
    servers.prepare_redis(server)
    client, command, log = Client(server.url()), server.command(), tmp_path / "log"
    with server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
        producers = client._app.amqp.producer_pool
        with producers.acquire(block=True) as producer:
            assert not producer.channel.closed
    with ThreadPoolExecutor(1) as thread:
        sending = thread.submit(client.send, "memory.stats", {}, ignore_result=True)
        with (
            server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM),
            redis.Redis.from_url(server.url()) as keys,
        ):
            sending.result()
            assert keys.llen("recall") == 1
    client.close()


def test_workers_that_are_away_are_noticed_and_messages_without_a_waiting_caller_are_dropped(live: LiveSystem) -> None:
    elsewhere = Client(live.redis_url.removesuffix("/0") + "/5")
    with pytest.raises(UnavailableError, match=r"No worker answered within 0\.5 s"):
        elsewhere.call("memory.recall", {"query": "meadow"}, 0.5)
    elsewhere.close()


def test_errors_are_one_family(client: Client) -> None:
    with pytest.raises(EbbError):
        client.recall("")
    assert client.recall("meadow")["results"] == []


def waiting(*ids: str) -> Waiting:
    return Waiting(str(uuid4()), list(ids), datetime.now(UTC).isoformat(), None)


def test_touches_that_wait_are_recorded_by_one_task(live: LiveSystem, client: Client, namespace: str) -> None:
    ids = [client.store(text)["id"] for text in FEW]
    live.settle()
    shown = [waiting(*ids), *(waiting(ids[0]) for _ in range(9))]
    for one in [*shown, *shown]:
        touches.add(live.own_keys, namespace, one)
    live.send("memory.record_touches", {"namespace": namespace}, str(uuid4()))
    live.settle()
    assert [recalls(live, id_) for id_ in ids] == [10, *[1] * (len(ids) - 1)]
    assert touches.oldest(live.own_keys, namespace) == {}


def test_more_touches_than_one_transaction_should_record_are_recorded_by_several(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    id_ = client.store("The spare key hangs behind the clock.")["id"]
    live.settle()
    for _ in range(2 * touches.MOST + 1):
        touches.add(live.own_keys, namespace, waiting(id_))
    live.send("memory.record_touches", {"namespace": namespace}, str(uuid4()))
    eventually(lambda: recalls(live, id_) == 2 * touches.MOST + 1, "all are counted")


def test_touches_whose_task_was_lost_are_recorded_after_a_while(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    id_ = client.store("The spare key hangs behind the clock.")["id"]
    live.settle()
    assert touches.add(live.own_keys, namespace, waiting(id_))
    live.own_keys.zincrby(touches.SENT, -touches.LOST_SECONDS, namespace)
    eventually(lambda: recalls(live, id_) == 1, "a worker sends the task again")


def test_each_of_many_recalls_at_once_is_counted(live: LiveSystem, client: Client, namespace: str) -> None:
    id_ = client.store("The spare key hangs behind the clock.")["id"]

    def recalling(number: int) -> None:
        with live.client(namespace) as own:
            for place in range(5):
                assert own.recall(f"Where is the spare key? {number} {place}")["results"]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(recalling, range(8)))
    eventually(lambda: recalls(live, id_) == 40, "all are counted")


def test_a_touch_that_is_refused_keeps_no_other_back(live: LiveSystem, client: Client, namespace: str) -> None:
    """Of two facts with equal texts that have ended, both cannot live again."""
    minute = timedelta(minutes=1)
    first = client.store("Tea at four.", decay_class="normal")
    other = client.store("Cake on Sunday.", decay_class="stable")
    first_ends = datetime.fromisoformat(first["ends_at"])
    client.decay(now=(first_ends + minute).isoformat())
    second = client.store("Tea at four.", decay_class="normal", now=(first_ends + 2 * minute).isoformat())
    second_ends = datetime.fromisoformat(second["ends_at"])
    client.decay(now=(second_ends + minute).isoformat())
    live.settle()
    for id_, at in ((first["id"], first_ends), (second["id"], second_ends), (other["id"], second_ends)):
        touches.add(live.own_keys, namespace, Waiting(str(uuid4()), [id_], (at - minute).isoformat(), None))
    live.send("memory.record_touches", {"namespace": namespace}, str(uuid4()))
    live.settle()
    assert recalls(live, other["id"]) == 1
    assert touches.oldest(live.own_keys, namespace) == {}
