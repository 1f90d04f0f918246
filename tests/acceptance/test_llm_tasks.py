"""Workers with an LLM: tasks apply its verdicts on new and stored facts."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from live_api import serving as serving_api
from live_system import LiveSystem, eventually
from llm import always, answering, question
from stand_in import StandIn, failure, serving

from workers.coordination.pause import LLM

pytestmark = pytest.mark.acceptance


def answer(asked: Any) -> Any:
    """Declare every new fact an update of the first known one, and the second of several redundant."""
    if "messages" in asked:
        found = {"quote": "Leipzig", "entity": "user", "key": "home", "value": "Leipzig", "single": True}
        return {"facts": [found | {"number": one["number"]} for one in asked["messages"]]}
    facts = asked["facts"]
    if "known" in facts[0]:
        return {
            "verdicts": [{"number": fact["number"], "action": "UPDATE", "id": fact["known"][0]["id"]} for fact in facts]
        }
    return {"forget": [{"id": facts[1]["id"], "because_of": facts[0]["id"], "why": "repeats"}]}


@pytest.fixture
def judging(idle: LiveSystem) -> Iterator[LiveSystem]:
    with serving(StandIn(answering(answer))) as llm:
        idle.settings |= {
            "EBB_LLM_URL": llm.url, "EBB_CLASSIFY_BEFORE_WRITE": "true", "EBB_PRUNE_BY_LLM": "true",
            "EBB_PRUNE_THRESHOLD": "2", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        idle.start("all")
        yield idle


@pytest.mark.slow
def test_tasks_apply_the_verdicts_of_the_llm_also_when_redelivered(judging: LiveSystem) -> None:
    with judging.client() as client:
        old = client.store("Ana lives in Porto by the river.")["id"]
        client.store_many([{"text": "Invoices are paid on Fridays."}])
    answers = judging.delivered("memory.store", {"text": "Ana lives in Lisbon by the river."}, 2)
    assert answers[0]["action"] == "updated"
    assert answers[1] == answers[0]
    assert judging.rows("select superseded_by::text from facts where id = %s", [old]) == [(answers[0]["id"],)]

    reviewed = {"reviewed": 2, "forgotten": 1, "goes_on": False}
    assert judging.delivered("memory.prune_by_llm", {}, 2) == [reviewed, reviewed]
    assert judging.rows("select forgotten_reason from facts where forgotten_at is not null") == [("pruned",)]


@pytest.mark.slow
def test_doctor_and_metrics_report_an_llm_that_does_not_answer(idle: LiveSystem) -> None:
    with serving(StandIn(answering(answer))) as llm:
        idle.settings |= {"EBB_LLM_URL": llm.url, "EBB_CLASSIFY_BEFORE_WRITE": "true", "NO_PROXY": "127.0.0.1"}
        idle.start("all")
        assert diagnosis(idle) == f"'gpt-4o-mini' at {llm.url}/chat/completions compares facts"
        llm.always = always("NOOP")
        assert "warning: it does not see that 'Ana lives in Lisbon.' changes" in diagnosis(idle)
        llm.always = failure(401)
        with idle.client() as client:
            client.store("Ana lives in Porto by the river.")
            assert client.store("Ana lives in Lisbon by the river.")["action"] == "added"
        assert idle.own_keys.expire(LLM.keys[0], 1_000)
        said = diagnosis(idle)
        assert "facts are stored without being judged" in said
        assert "Check EBB_LLM_KEY" in said
        with serving_api(idle) as api:
            metrics = api.get("/metrics").text
    assert "ebb_llm_failures 1.0" in metrics
    assert "ebb_llm_pause_seconds 0.0" not in metrics


def diagnosis(system: LiveSystem) -> str:
    """Return what the doctor says of the LLM."""
    checks = json.loads(system.ebb("doctor", "--json").stdout)["checks"]
    return next(str(one["says"]) for one in checks if one["name"] == "LLM")


@pytest.mark.slow
def test_facts_are_drawn_from_a_conversation_once(idle: LiveSystem) -> None:
    with serving(StandIn(answering(answer))) as llm:
        idle.settings |= {"EBB_LLM_URL": llm.url, "EBB_EXTRACT": "true", "NO_PROXY": "127.0.0.1"}
        idle.start("all")
        given = {"messages": ["I moved to Leipzig.", {"role": "assistant", "content": "Leipzig is fine."}]}
        answers = idle.delivered("memory.remember", given, 2)
        eventually(lambda: idle.rows("select 1 from links"), "a fact is linked with its turn")
        idle.settle()
        again = {"messages": [*given["messages"], "Yes."]}
        idle.delivered("memory.remember", again, 1)
        idle.settle()

    assert [one["added"] for one in answers] == [2, 0]
    assert idle.rows("select text, value from facts where entity is not null") == [
        ("user, home: I moved to Leipzig.", "Leipzig")
    ]
    assert [[one["text"] for one in question(asked)["messages"]] for asked in llm.requests] == [
        ["I moved to Leipzig."], ["Yes."],
    ]  # fmt: skip


def test_a_worker_with_an_unusable_llm_refuses_to_start(idle: LiveSystem) -> None:
    idle.settings |= {"EBB_CLASSIFY_BEFORE_WRITE": "true", "EBB_LLM_URL": "elsewhere"}
    with pytest.raises(AssertionError, match=r"EBB_LLM_URL='elsewhere' is no URL"):
        idle.start("worker")
    idle.workers.clear()
