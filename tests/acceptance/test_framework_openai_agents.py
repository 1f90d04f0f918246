"""OpenAI Agents SDK on a real system: a session's items are returned unchanged, and their content is stored."""

import asyncio
from typing import Any

import pytest
from ebb import AsyncMemory, InvalidInputError, Memory
from frameworks import need

need("agents")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.memory import Session
from ebb.openai_agents import EbbSession
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

pytestmark = [pytest.mark.acceptance, pytest.mark.filterwarnings("ignore")]


class Counting(Model):
    """A model that answers with the number of items in its input."""

    async def get_response(self, *_: Any, **given: Any) -> ModelResponse:
        text = ResponseOutputText(annotations=[], text=f"I saw {len(given['input'])} items.", type="output_text")
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def test_a_memory_for_asyncio_is_refused() -> None:
    with pytest.raises(TypeError, match="is an AsyncMemory; give a Memory"):
        EbbSession(AsyncMemory(), "monday")  # type: ignore[arg-type]


def test_a_run_continues_where_the_session_ended(memory: Memory) -> None:
    config = RunConfig(tracing_disabled=True)
    agent = Agent(name="a", model=Counting())
    for question, answer in [("I moved to Leipzig.", "I saw 1 items."), ("Where am I?", "I saw 3 items.")]:
        done = asyncio.run(Runner.run(agent, question, session=EbbSession(memory, "monday"), run_config=config))
        assert done.final_output == answer

    (found, *_) = memory.recall("Who moved to Leipzig?", role="user").results
    assert found.text == "I moved to Leipzig."


def test_half_a_character_comes_back_and_is_a_question_mark_in_its_turn(memory: Memory) -> None:
    items: list[Any] = [{"role": "user", "content": "I moved to Leipzig \ud83d."}]

    async def use() -> list[Any]:
        session = EbbSession(memory, "monday")
        await session.add_items(items)
        return list(await session.get_items())

    assert asyncio.run(use()) == items
    (found,) = memory.recall("Who moved to Leipzig?", role="user").results
    assert found.text == "I moved to Leipzig ?."


def test_of_an_item_that_is_too_large_nothing_is_stored(memory: Memory) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 600_000}
    items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "This is my boat."}, image]}]
    with pytest.raises(InvalidInputError, match="document: string should have at most 524288 characters"):
        asyncio.run(EbbSession(memory, "monday").add_items(items))

    assert memory.stats().facts == 0


def test_no_item_is_taken_out_twice(memory: Memory) -> None:
    items: list[Any] = [{"role": "user", "content": f"Question {number:02}"} for number in range(20)]

    async def use() -> list[Any]:
        sessions = EbbSession(memory, "monday"), EbbSession(memory, "monday")
        await sessions[0].add_items(items)
        return list(await asyncio.gather(*(one.pop_item() for one in sessions * 10)))

    assert sorted(one["content"] for one in asyncio.run(use())) == [one["content"] for one in items]


def test_items_come_back_exactly_in_order_and_can_be_taken_out(memory: Memory) -> None:
    items: list[Any] = [
        {"role": "user", "content": "Which tea?"},
        {"type": "function_call", "call_id": "c", "name": "search", "arguments": '{"q": "tea"}'},
        {"type": "function_call_output", "call_id": "c", "output": "Sencha"},
    ]

    async def use() -> None:
        session = EbbSession(memory, "monday")
        assert isinstance(session, Session)
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(2) == items[1:]
        assert await session.pop_item() == items[2]
        assert await EbbSession(memory, "tuesday").pop_item() is None
        await session.clear_session()
        assert await session.get_items() == []

    asyncio.run(use())
