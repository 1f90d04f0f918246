"""Near-duplicates and the janitor, through the command line and tasks."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from live_system import LiveSystem, eventually

from api.client import Client
from workers.coordination import signals
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

MOVED = "Mira moved to Leipzig and rents a flat near the canal"
HAS_MOVED = "Mira has moved to Leipzig and rents a flat near the canal"


def ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def doubtful(client: Client, text: str) -> str:
    """Store a fact with too low a confidence; return its id."""
    (stored,) = client.store_many([{"text": text, "confidence": 0.2, "last_seen_at": ago(300)}], classify=False)[
        "results"
    ]
    return str(stored["id"])


def test_near_duplicates_are_listed_merged_and_restored_at_the_command_line(live: LiveSystem, namespace: str) -> None:
    def ebb(*arguments: str) -> Any:
        return live.ebb_json(*arguments, "--namespace", namespace)

    first, second = (ebb("store", text)["id"] for text in (MOVED, HAS_MOVED))
    listed = ebb("consolidate")
    assert (listed["applied"], listed["total"], listed["facts"], listed["merged"]) == (False, 1, 1, 0)
    (group,) = listed["groups"]
    assert group["keep"] == {"id": first, "text": MOVED}
    assert (group["merge"][0]["id"], group["merge"][0]["similarity"] >= 0.92) == (second, True)
    assert ebb("stats")["facts"] == 2
    done = ebb("consolidate", "--apply")
    assert (done["applied"], done["merged"], done["total"], done["groups"]) == (True, 1, 0, [group])
    assert ebb("stats")["forgotten_by_reason"] == {"merged": 1}
    assert ("merged into", {"id": first, "similarity": group["merge"][0]["similarity"]}) in [
        (event["what"], event["details"]) for event in ebb("history", second)["events"]
    ]
    assert ebb("restore", second)["results"][0]["action"] == "restored"
    assert ebb("consolidate", "--apply")["merged"] == 0
    assert ebb("stats")["facts"] == 2


def test_the_text_output_of_a_consolidation(live: LiveSystem, namespace: str) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        done = live.ebb(*arguments, "--namespace", namespace)
        return done.returncode, done.stdout

    assert said("consolidate") == (0, f"No two facts in '{namespace}' say nearly the same.\n")
    first, second = (live.ebb_json("store", text, "-n", namespace)["id"] for text in (MOVED, HAS_MOVED))
    code, text = said("consolidate")
    assert (code, f"{first}  {MOVED}" in text, f"{second}  {HAS_MOVED}" in text) == (0, True, True)
    assert text.endswith(f"1 fact in 1 group would be merged by: ebb consolidate -n {namespace} --apply\n")
    merged = f"1 fact merged; each is restored by: ebb restore -n {namespace} ID\n"
    assert said("consolidate", "--apply")[1].endswith(merged)
    assert live.ebb("consolidate", "--force").returncode == 2


def test_a_consolidation_hands_over_to_successors_and_answers_once(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        client.store_many([{"text": text} for text in (MOVED, HAS_MOVED)])
    earlier = {"compared": 20, "merged": 3, "groups": []}
    going_on = {"so_far": earlier, "asked_by": "the-task-that-consolidates", "apply": True}
    answer = live.send("memory.consolidate", {"namespace": namespace, **going_on}).get()
    assert (answer["compared"], answer["merged"], len(answer["groups"])) == (22, 4, 1)
    assert live.control.AsyncResult("the-task-that-consolidates").get() == answer


def test_the_failure_of_a_successor_reaches_the_caller_who_may_ask_again(live: LiveSystem, namespace: str) -> None:
    asked, run, waits = {"namespace": namespace, "apply": True}, str(uuid4()), str(uuid4())
    with live.client(namespace) as client:
        client.store_many([{"text": text} for text in (MOVED, HAS_MOVED)])
    live.send("decay.plan", {"namespace": namespace}, run).get()
    signals.note_done(live.own_keys, waits, {"goes_on": True})  # as the first task does
    live.send("memory.consolidate", asked | {"run": run, "asked_by": waits})
    answer = live.control.AsyncResult(waits)
    with pytest.raises(InvalidInputError, match="was begun for something else"):
        answer.get()
    answer.forget()
    assert live.send("memory.consolidate", asked, waits).get()["merged"] == 1


def test_a_second_delivery_merges_nothing_more(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        client.store_many([{"text": text} for text in (MOVED, HAS_MOVED)])
    answers = live.delivered("memory.consolidate", {"namespace": namespace, "apply": True}, 2)
    assert [answer["merged"] for answer in answers] == [1, 1]
    assert len(live.facts(namespace)) == 1


def test_the_janitor_reports_culled_facts_with_the_documented_names(live: LiveSystem, namespace: str) -> None:
    def ebb(*arguments: str) -> Any:
        return live.ebb_json("janitor", *arguments, "--namespace", namespace)

    assert ebb("--show") == {"namespace": namespace, "totalRuns": 0}
    with live.client(namespace) as client:
        culled = doubtful(client, "A rumour.")
        client.store("A certainty.")
    listed = ebb()
    assert listed == ebb("--show")
    assert {name: value for name, value in listed.items() if name != "lastRunAt"} == {
        "namespace": namespace, "lastRunTurn": 0, "totalRuns": 1, "lastCulledFactIds": [culled], "lastCulledFacts": 1,
        "lastCulledEpisodeIds": [], "lastCulledEpisodes": 0, "lastMarkedStaleEpisodeIds": [],
        "lastMarkedStaleEpisodes": 0,
    }  # fmt: skip
    assert datetime.fromisoformat(listed["lastRunAt"]) < datetime.now(UTC)
    assert live.ebb_json("stats", "-n", namespace)["forgotten_by_reason"] == {"culled": 1}
    assert (ebb()["lastCulledFactIds"], ebb("--show")["totalRuns"]) == ([], 2)
    said = live.ebb("janitor", "--show", "-n", namespace).stdout
    assert [line.split() for line in said.splitlines()[2:4]] == [["at", "turn", "0"], ["runs", "2"]]


def test_a_second_delivery_of_a_janitor_counts_as_one_run(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        doubtful(client, "A rumour.")
    first, second = live.delivered("memory.janitor", {"namespace": namespace}, 2)
    assert (first["lastCulledFacts"], first["totalRuns"], second) == (1, 1, first)


def test_the_janitor_does_not_run_where_hygiene_is_off(live: LiveSystem, namespace: str) -> None:
    live.ebb_json("settings", "--set", "hygiene=false", "-n", namespace)
    with live.client(namespace) as client:
        doubtful(client, "A rumour.")
        assert client.janitor() == {"namespace": namespace, "totalRuns": 0, "skipped": "hygiene is switched off here"}
        assert client.stats()["forgotten"] == 0
    going_on = {"namespace": namespace, "asked_by": "the-task-that-tidies"}
    answer = live.send("memory.janitor", going_on).get()
    assert live.control.AsyncResult("the-task-that-tidies").get() == answer
    said = live.ebb("janitor", "-n", namespace)
    assert (said.returncode, said.stdout) == (0, f"hygiene is switched off here; see: ebb settings -n {namespace}\n")


def test_episodes_that_age_out_or_get_stale_are_listed_apart_from_facts(live: LiveSystem, namespace: str) -> None:
    old = {"kind": "episodic", "last_seen_at": ago(300)}
    facts = [{"text": "Ana came to tea.", **old}, {"text": "Ana was born.", "durability": "permanent", **old}]
    with live.client(namespace) as client:
        aged, stale = (one["id"] for one in client.store_many(facts, classify=False)["results"])
        listed = client.janitor()
    assert (listed["lastCulledFactIds"], listed["lastCulledEpisodeIds"]) == ([], [aged])
    assert (listed["lastMarkedStaleEpisodeIds"], listed["lastMarkedStaleEpisodes"]) == ([stale], 1)


def test_janitors_are_sent_to_all_namespaces_in_which_something_is_due(live: LiveSystem, namespace: str) -> None:
    for name in (namespace, f"{namespace}-too"):
        with live.client(name) as client:
            doubtful(client, "A rumour.")
    sent = live.ebb_json("janitor", "--all")
    assert {namespace, f"{namespace}-too"} <= set(sent["namespaces"])
    for name in (namespace, f"{namespace}-too"):
        with live.client(name) as client:
            eventually(lambda: client.janitor_snapshot()["totalRuns"] == 1, "its janitor came")
            assert client.janitor_snapshot()["lastCulledFacts"] == 1
