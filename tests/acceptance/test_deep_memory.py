"""Deep memory through the interfaces: ended facts are hinted at, found on request, and live again when used."""

from datetime import UTC, datetime, timedelta

import pytest
from live_system import LiveSystem, eventually

pytestmark = pytest.mark.acceptance

TEXT, QUESTION = "The spare key hangs behind the kitchen clock", "Where is the other key?"


def test_a_purge_that_is_delivered_again_answers_what_it_did_the_first_time(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        client.store(TEXT, decay_class="session")
        later = datetime.now(UTC) + timedelta(days=3)
        client.call("decay.plan", {"namespace": namespace, "now": later.isoformat(), "force": True}, 60)
    given = {"namespace": namespace, "now": (later + timedelta(days=2)).isoformat()}
    assert [answer["sunk"] for answer in live.delivered("memory.purge", given, times=2)] == [1, 1]


def test_deep_facts_are_hinted_at_and_live_again_when_a_deep_recall_uses_them(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        id_ = client.store(TEXT, decay_class="session")["id"]
        later = datetime.now(UTC) + timedelta(days=3)
        client.call("decay.plan", {"namespace": namespace, "now": later.isoformat(), "force": True}, 60)
        sunk = client.call("memory.purge", {"namespace": namespace, "now": (later + timedelta(days=2)).isoformat()}, 60)
        assert sunk["sunk"] == 1
        hinted = live.ebb("recall", QUESTION, "-n", namespace)
        assert "1 fact that fits ended by itself: ask again with --deep." in hinted.stderr
        assert live.ebb_json("context", QUESTION, "-n", namespace)["deep"] == 1
        only_shown = live.ebb_json("recall", QUESTION, "--deep", "--no-touch", "-n", namespace)["results"]
        assert [(one["id"], one["deep"]) for one in only_shown] == [(id_, "faded")]
        assert client.recall(QUESTION)["deep"] == 1
        assert client.recall(QUESTION, touch=False)["deep"] == 1
        assert client.context(QUESTION, touch=False)["deep"] == 1
        assert client.recall(QUESTION, why=id_)["results"] == []
        assert client.recall(QUESTION, deep=True)["results"][0]["id"] == id_
        assert client.stats()["regretted"] == 4, "two by the command line, two by the client"
        (alive,) = eventually(lambda: client.recall(QUESTION)["results"], "the fact that was used lives again")
        assert (alive["id"], alive["deep"]) == (id_, None)
