"""Workers that ask an LLM: what it says of new facts, and of what is remembered, is done by tasks as well."""

from collections.abc import Iterator
from typing import Any

import pytest
from live_system import LiveSystem
from llm import answering
from stand_in import StandIn, serving

pytestmark = pytest.mark.acceptance


def answer(question: Any) -> Any:
    """Take every new fact for a newer version of the first known one, and the second of several for needless."""
    facts = question["facts"]
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


def test_tasks_do_what_the_llm_says_and_a_second_delivery_the_same(judging: LiveSystem) -> None:
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


def test_a_worker_that_cannot_ask_says_so_and_does_not_start(idle: LiveSystem) -> None:
    idle.settings |= {"EBB_CLASSIFY_BEFORE_WRITE": "true", "EBB_LLM_URL": "elsewhere"}
    with pytest.raises(AssertionError, match=r"EBB_LLM_URL='elsewhere' is no URL"):
        idle.start("worker")
    idle.workers.clear()
