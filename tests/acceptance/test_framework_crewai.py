"""CrewAI on a real system: a crew's memory stores results and recalls relevant ones."""

from typing import Any

import pytest
from ebb import Memory
from frameworks import need
from live_system import eventually

need("crewai")

from crewai import Agent, BaseLLM, Crew, Task
from ebb.crewai import EbbCrewMemory
from pydantic import Field

pytestmark = [pytest.mark.acceptance, pytest.mark.filterwarnings("ignore")]


class Listening(BaseLLM):
    """A model that records its prompts and always gives the same answer."""

    shown: list[str] = Field(default_factory=list)

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        self.shown.append(str(messages))
        return "Thought: I know.\nFinal Answer: Mira will sail to Zanzibar in May."


def test_statements_are_remembered_recalled_and_forgotten(memory: Memory) -> None:
    own = EbbCrewMemory(ebb=memory, source="crew")
    stored = own.remember("Mira moved to Leipzig", categories=["home"], importance=0.9)
    (found,) = own.recall("Who moved to Leipzig?")

    assert stored is not None
    assert (found.record.id, found.record.content) == (stored.id, "Mira moved to Leipzig")
    assert found.score > 0.2
    assert own.forget(record_ids=[stored.id]) == 1
    assert own.recall("Who moved to Leipzig?") == []
    assert EbbCrewMemory(ebb=memory, read_only=True).remember("Nothing") is None


def test_a_crew_uses_it_and_keeps_its_results(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    memory.store("Mira gets seasick on ferries to Zanzibar")
    llm = Listening(model="none")
    agent = Agent(role="guide", goal="plan", backstory="a sailor", llm=llm)
    task = Task(description="Plan how Mira gets to Zanzibar.", expected_output="a plan", agent=agent)
    Crew(agents=[agent], tasks=[task], memory=EbbCrewMemory(ebb=memory)).kickoff()

    assert any("Mira gets seasick on ferries to Zanzibar" in one for one in llm.shown)
    assert any("Zanzibar in May" in one.text for one in memory.facts().facts)


def test_a_record_comes_back_with_categories_importance_and_source(memory: Memory) -> None:
    own = EbbCrewMemory(ebb=memory, source="crew")
    own.remember_many(["Mira moved to Leipzig", " "], categories=["home"], importance=0.9)
    record = own.recall("Who moved to Leipzig?")[0].record

    assert (record.categories, record.importance, record.source) == (["home"], 0.9, "crew")


def test_a_record_has_the_date_of_its_fact(memory: Memory) -> None:
    memory.store("Mira moved to Leipzig", source_date="2026-01-31T12:00:00+01:00")

    record = EbbCrewMemory(ebb=memory).recall("Who moved to Leipzig?")[0].record
    assert record.created_at.isoformat() == "2026-01-31T11:00:00"


def test_a_query_may_be_blank_or_of_any_length(memory: Memory) -> None:
    memory.store("Mira moved to Leipzig")
    queries = ("", " ", "Look at this. " * 10_000 + "Who moved to Leipzig?")

    assert [len(EbbCrewMemory(ebb=memory).recall(query)) for query in queries] == [0, 0, 1]


def test_a_long_task_is_stored_with_its_result(memory: Memory) -> None:
    text = "\n".join(["Task: read this.", *(f"Line {number} of a report." for number in range(1_000)), "Result: done"])
    own = EbbCrewMemory(ebb=memory)

    assert own.extract_memories(" ") == []
    assert "".join(own.extract_memories(text)) == text
    assert [len(own.remember_many(own.extract_memories(text))), memory.stats().facts] == [3, 3]


def test_recalling_from_a_read_only_memory_is_no_use(memory: Memory) -> None:
    memory.store("Mira moved to Leipzig")
    key = memory.store("The spare key hangs in the kitchen").id
    assert EbbCrewMemory(ebb=memory, read_only=True).recall("Who moved to Leipzig?")
    assert EbbCrewMemory(ebb=memory).recall("Where is the spare key?")

    used = eventually(lambda: [one.id for one in memory.facts().facts if one.last_accessed], "the use of a fact")
    assert used == [key]


def test_what_it_does_not_do_is_said(memory: Memory) -> None:
    own = EbbCrewMemory(ebb=memory)
    own.remember("Mira moved to Leipzig")
    for ask in (own.list_records, own.reset, own.tree):
        with pytest.raises(NotImplementedError, match="with the Memory of Ebb"):
            ask()
    with pytest.raises(ValueError, match="private: cannot be kept"):
        own.remember("Mira is ill", private=True, source="mira")
    with pytest.raises(ValueError, match="scope: cannot choose"):
        own.forget(scope="/")
    assert own.forget(record_ids=[]) == 0
    assert memory.stats().facts == 1
