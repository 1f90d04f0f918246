"""Lifetimes at the command line and by task: facts get a class, expire, are pruned, and are classified later."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from databases import RUN_OF_EACH_SHARD
from live_system import LiveSystem

from api.client import Client
from workers.core.lifetime import LIFETIMES
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance


def ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def facts_of_all_ages() -> list[dict[str, Any]]:
    """Return three expired facts (two already ended by soft decay), two that it halves, and two that stay."""
    aged = [("checkpoint", 1), ("session", 2), ("stable", 100), ("stable", 67.52), ("normal", 10.52), ("stable", 1)]
    facts: list[dict[str, Any]] = [
        {"text": f"A {name} fact of {days} days.", "decay_class": name, "last_seen_at": ago(days)}
        for name, days in aged
    ]
    return [*facts, {"text": "The permanent one.", "decay_class": "permanent", "last_seen_at": ago(500)}]


def classes(live: LiveSystem, namespace: str) -> list[tuple[str, str, str]]:
    """Return (text, class, source) of the live facts of a namespace."""
    return live.rows(
        """
        select text, decay_class, decay_class_source
        from facts join activity on activity.namespace = facts.namespace and fact = id
        join namespaces on namespaces.id = facts.namespace
        where name = %s and forgotten_at is null order by text
        """,
        [namespace],
    )


def test_the_command_line_classifies_what_it_stores_by_default(live: LiveSystem, namespace: str) -> None:
    live.ebb_json("store", "It rains right now.", "-n", namespace)
    live.ebb_json("store", "It is ana@example.org.", "--key", "email", "-n", namespace)
    live.ebb_json("store", "We decided nothing.", "--decay-class", "short", "-n", namespace)
    assert classes(live, namespace) == [
        ("It is ana@example.org.", "permanent", "auto"),
        ("It rains right now.", "stable", "auto"),
        ("We decided nothing.", "short", "explicit"),
    ]


@pytest.mark.parametrize("decay_class", LIFETIMES)
def test_every_class_can_be_given(client: Client, decay_class: str) -> None:
    client.store(f"A {decay_class} fact.", decay_class=decay_class)
    assert client.stats()["decay_classes"] == {decay_class: 1}


def test_an_import_gives_no_lifetime_unless_asked(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "archive.jsonl"
    lines = [{"text": "Tea is at four."}, {"text": "It rains.", "decay_class": "short"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    live.ebb_json("import", str(file), "-n", namespace)
    assert live.ebb_json("stats", "-n", namespace)["decay_classes"] == {"none": 1, "short": 1}
    live.ebb_json("import", str(file), "--classify", "-n", f"{namespace}-asked")
    stats = live.ebb_json("stats", "-n", f"{namespace}-asked")
    assert stats["decay_classes"] == {"short": 1, "stable": 1}
    assert stats["decay_class_sources"] == {"auto": 1, "explicit": 1, "none": 0}


def test_a_prune_forgets_expired_facts_and_halves_those_near_expiry(live: LiveSystem, client: Client) -> None:
    client.store_many(facts_of_all_ages())
    assert client.stats()["expired_pending"] == 3
    tried = live.ebb_json("prune", "--dry-run", "-n", client.namespace)
    assert (tried["expired"], tried["decayed"], tried["deleted"]) == (1, 2, 2)
    assert client.stats()["expired_pending"] == 3
    later = live.ebb("prune", "--dry-run", "--now", "2100-01-01", "-n", client.namespace).stdout
    assert later.startswith("dry run - 1 expired, 0 decayed\n")
    assert "facts that had faded would be forgotten" in later
    done = live.ebb("prune", "-n", client.namespace)
    assert (done.returncode, done.stdout) == (
        0,
        "periodic prune - 1 expired, 2 decayed\n2 facts that had faded are forgotten\n",
    )
    assert live.ebb("prune", "-n", client.namespace).stdout == "periodic prune - 0 expired, 0 decayed\n"
    stats = client.stats()
    assert (stats["facts"], stats["forgotten"], stats["expired_pending"]) == (4, 3, 0)


def test_a_prune_may_be_hard_or_soft_alone(live: LiveSystem, client: Client) -> None:
    client.store_many(facts_of_all_ages())
    soft = live.ebb_json("prune", "--soft", "-n", client.namespace)
    assert (soft["expired"], soft["decayed"]) == (0, 2)
    hard = live.ebb_json("prune", "--hard", "-n", client.namespace)
    assert (hard["expired"], hard["decayed"], hard["deleted"]) == (1, 0, 2)


def test_a_prune_as_of_another_instant_removes_what_lost_its_confidence(live: LiveSystem, client: Client) -> None:
    client.store("Tea is at four.", decay_class="normal")
    done = live.ebb_json("prune", "--now", ago(-11), "-n", client.namespace)
    assert (done["expired"], done["decayed"], done["deleted"]) == (0, 1, 1)
    assert client.stats()["forgotten"] == 1


def test_expired_facts_are_reported_with_their_label(live: LiveSystem, client: Client) -> None:
    client.store_many(facts_of_all_ages())
    said = live.ebb("stats", "-n", client.namespace).stdout
    assert re.search(r"^Expired \(pending prune\) +3 *$", said, re.MULTILINE)
    assert re.search(r"^decay classes +checkpoint 1, normal 1, permanent 1, session 1", said, re.MULTILINE)


def test_a_prune_without_work_is_refused(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="a prune that shall do nothing is none"):
        client.prune(hard=False, soft=False)


@RUN_OF_EACH_SHARD
def test_two_beats_that_prune_in_the_same_minute_prune_once(live: LiveSystem, client: Client) -> None:
    client.store("It rains.", decay_class="checkpoint")
    now = ago(-1)
    for _ in range(2):
        live.send("decay.prune", {"scheduled": True, "everywhere": True, "now": now}).get()
    runs = "select count(*) from decay_runs where work = 'prune' and planned_for = %s"
    assert live.rows(runs, [now]) == [(1,)]
    assert client.stats()["forgotten"] == 1


def test_a_backfill_at_the_command_line(live: LiveSystem, client: Client) -> None:
    old = {"text": "Coffee is at ten.", "last_seen_at": ago(200)}
    client.store_many([{"text": "Tea is at four."}, {"text": "Ana decided to stay."}, old], classify=False)
    client.store("We decided nothing.", decay_class="short")
    namespace = ("-n", client.namespace)
    changes = [{"from": "none", "to": "permanent", "facts": 1}, {"from": "none", "to": "stable", "facts": 1}]
    expected = {"examined": 3, "changes": changes, "overdue": 1}
    assert live.ebb_json("backfill-decay", "--dry-run", *namespace) == expected
    assert client.stats()["decay_classes"] == {"none": 3, "short": 1}
    assert live.ebb_json("backfill-decay", *namespace) == expected
    assert client.stats()["decay_classes"] == {"none": 1, "permanent": 1, "short": 1, "stable": 1}
    said = live.ebb("backfill-decay", "--prune", *namespace).stdout
    assert re.search(r"^none +stable +1 *$", said, re.MULTILINE)
    assert "1 is over by that; the next pass forgets it" in said
    assert client.stats()["expired_pending"] == 1
    assert live.ebb_json("prune", "--hard", "-n", client.namespace)["deleted"] == 1


def test_a_backfill_hands_over_to_successors_and_answers_once(live: LiveSystem, client: Client) -> None:
    client.store_many([{"text": f"Guest {number}."} for number in range(40)], classify=False)
    middle = live.facts(client.namespace)[19][0]
    ((tenant,),) = live.rows("select id from namespaces where name = %s", [client.namespace])
    earlier = {"examined": 20, "changes": [{"from": "none", "to": "stable", "facts": 20}], "overdue": 0}
    successor = {"after": [tenant, middle], "so_far": earlier, "asked_by": "the-task-that-waits"}
    answer = live.send("decay.backfill", {"namespace": client.namespace, **successor}).get()
    assert answer == {"examined": 40, "changes": [{"from": "none", "to": "stable", "facts": 40}], "overdue": 0}
    assert live.control.AsyncResult("the-task-that-waits").get() == answer
    assert client.stats()["decay_classes"] == {"none": 20, "stable": 20}
