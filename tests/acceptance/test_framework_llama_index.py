"""LlamaIndex on a real system: messages that leave the short-term memory are stored, and recalled when relevant."""

import asyncio
import gc
from collections.abc import Iterator

import pytest
from ebb import AsyncMemory
from ebb import Memory as EbbMemory
from frameworks import need
from live_api import serving
from live_system import LiveSystem

need("llama_index.core.memory")

from ebb.llama_index import EbbMemoryBlock
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.utils import get_tokenizer

pytestmark = [pytest.mark.acceptance, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def ebb(live: LiveSystem, namespace: str) -> Iterator[EbbMemory]:
    with serving(live) as client, EbbMemory(str(client.base_url), namespace=namespace) as memory:
        yield memory


def test_messages_that_leave_the_short_term_memory_are_found_again(ebb: EbbMemory) -> None:
    async def talk() -> str:
        block = EbbMemoryBlock(memory=ebb)
        memory = Memory.from_defaults(
            session_id="monday", memory_blocks=[block], token_limit=80, chat_history_token_ratio=0.5,
            token_flush_size=20,
        )  # fmt: skip
        await memory.aput_messages([ChatMessage(role="user", content="I moved to Leipzig in the spring.")])
        for number in range(6):
            await memory.aput_messages([
                ChatMessage(role="assistant", content=f"Tell me more about the weather on day {number}."),
                ChatMessage(role="user", content=f"On day {number} it rained all afternoon."),
            ])  # fmt: skip
        await memory.aput(ChatMessage(role="user", content="Who moved to Leipzig?"))
        return "\n".join(str(one.content) for one in await memory.aget())

    shown = asyncio.run(talk())
    gc.collect()  # LlamaIndex leaves its SQLite connection open, whose warning would fail the test run
    assert "I moved to Leipzig in the spring." in shown
    assert [one.session for one in ebb.facts(session="monday").facts][:1] == ["monday"]


def test_a_memory_for_asyncio_is_refused() -> None:
    with pytest.raises(TypeError, match="is an AsyncMemory; give a Memory"):
        EbbMemoryBlock(memory=AsyncMemory())


def test_a_context_that_is_too_long_loses_its_last_lines(ebb: EbbMemory) -> None:
    block = EbbMemoryBlock(memory=ebb)
    content = "<memory-context>\nfirst line of many\nsecond line of many\n</memory-context>"

    assert asyncio.run(block.atruncate(content, 3)) == "<memory-context>\nfirst line of many\n</memory-context>"
    assert asyncio.run(block.atruncate(content, 1_000)) is None


def test_a_context_of_long_words_becomes_as_short_as_is_asked(ebb: EbbMemory) -> None:
    lines = [f"architectural conservation of neighborhood {number}" for number in range(20)]
    content = "\n".join(["<memory-context>", *lines, "</memory-context>"])
    shown = asyncio.run(EbbMemoryBlock(memory=ebb).atruncate(content, 60)) or ""

    assert len(get_tokenizer()(content)) - len(get_tokenizer()(shown)) >= 60
    assert shown.splitlines()[:2] == ["<memory-context>", lines[0]]


def test_a_prompt_without_room_needs_no_facts(ebb: EbbMemory) -> None:
    async def shown() -> list[ChatMessage]:
        block = EbbMemoryBlock(memory=ebb, priority=1)
        memory = Memory.from_defaults(session_id="tuesday", memory_blocks=[block], token_limit=20)
        await memory.aput(ChatMessage(role="user", content="Who moved to Leipzig? " * 20))
        return await memory.aget()

    (only,) = asyncio.run(shown())
    gc.collect()  # as above
    assert only.role == "user"


def test_a_question_may_be_blank_or_of_any_length(ebb: EbbMemory) -> None:
    block = EbbMemoryBlock(memory=ebb)
    ebb.store("Mira moved to Leipzig")

    async def shown(question: str) -> str:
        return str(await block.aget([ChatMessage(role="user", content=question)]))

    assert asyncio.run(shown("  ")) == ""
    assert "Leipzig" in asyncio.run(shown("Look at this. " * 10_000 + "Who moved to Leipzig?"))
    assert "Leipzig" in asyncio.run(shown("Who \ud83d moved\0 to Leipzig?"))


def test_more_messages_than_fit_into_a_call_are_remembered(ebb: EbbMemory) -> None:
    messages = [ChatMessage(role="user", content=f"On day {number} it rained.") for number in range(1_001)]
    asyncio.run(EbbMemoryBlock(memory=ebb).aput(messages))

    assert ebb.stats().facts == 1_001
