"""Pydantic AI on a real system: an agent's model calls the tools, with lasting effect."""

import asyncio
import json
from datetime import date

import pytest
from ebb import AsyncMemory, Memory
from frameworks import need

need("pydantic_ai.models.function")

from ebb.pydantic_ai import memory_tools
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

pytestmark = [pytest.mark.acceptance, pytest.mark.filterwarnings("ignore")]


def calling(*calls: tuple[str, dict[str, str]]) -> FunctionModel:
    """Return a model that calls tools one after the other, and answers with the last result."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {one.name for one in info.function_tools} == {"recall", "remember", "forget"}
        returned = [part for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
        if len(returned) < len(calls):
            return ModelResponse([ToolCallPart(*calls[len(returned)])])
        return ModelResponse([TextPart(json.dumps(returned[-1].content))])

    return FunctionModel(answer)


def test_an_agent_remembers_recalls_and_forgets(url: str, namespace: str) -> None:
    stated = {"text": "Mira lives in Leipzig", "entity": "Mira", "key": "home", "value": "Leipzig"}
    with Memory(url, namespace=namespace) as memory:
        tools = memory_tools(memory)
        model = calling(("remember", stated), ("recall", {"query": "Where does Mira live?"}))
        (found,) = json.loads(asyncio.run(Agent(model, toolsets=[tools]).run("Hello")).output)
        assert found["text"] == "Mira lives in Leipzig"
        assert date.fromisoformat(found["said"])

        agent = Agent(calling(("forget", {"id": found["id"]})), toolsets=[tools])
        assert json.loads(asyncio.run(agent.run("Hello")).output) == "forgotten"
        assert memory.facts().facts == []


def test_the_tools_take_a_memory_for_asyncio_as_well(url: str, namespace: str) -> None:
    async def run() -> str:
        async with AsyncMemory(url, namespace=namespace) as memory:
            agent = Agent(calling(("remember", {"text": "Anselm bakes rye bread"})), toolsets=[memory_tools(memory)])
            return (await agent.run("Hello")).output

    assert json.loads(asyncio.run(run())) == "added"


@pytest.mark.parametrize(
    ("tool", "given"), [("forget", {"id": "5"}), ("recall", {"query": " "}), ("remember", {"text": ""})]
)
def test_what_a_model_gives_wrongly_is_said_to_the_model(
    url: str, namespace: str, tool: str, given: dict[str, str]
) -> None:
    said: list[str] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart(tool, given)])
        said.append(str(messages[-1].parts[-1].content))  # type: ignore[union-attr]
        return ModelResponse([TextPart("Sorry")])

    with Memory(url, namespace=namespace) as memory:
        agent = Agent(FunctionModel(answer), toolsets=[memory_tools(memory)])
        assert asyncio.run(agent.run("Hello")).output == "Sorry"
    assert said[0].startswith(("ids.0: ", "query: ", "text: "))


def test_what_a_model_leaves_empty_is_left_out(url: str, namespace: str) -> None:
    stated = {"text": "Mira sails", "entity": "Mira", "key": "", "value": ""}
    with Memory(url, namespace=namespace) as memory:
        agent = Agent(calling(("remember", stated)), toolsets=[memory_tools(memory)])
        assert json.loads(asyncio.run(agent.run("Hello")).output) == "added"
