"""LangChain on a real system: messages are returned unchanged, and their content is found."""

import asyncio

import pytest
from ebb import InvalidInputError, Memory
from ebb.langchain import EbbChatMessageHistory, EbbRetriever
from ebb.openai_agents import EbbSession
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, message_to_dict

pytestmark = pytest.mark.acceptance


def test_messages_come_back_as_they_were_and_of_their_session_alone(memory: Memory) -> None:
    call = {"name": "search", "args": {"q": "tea"}, "id": "call_1", "type": "tool_call"}
    given = [HumanMessage("Which tea?"), AIMessage("", tool_calls=[call]), ToolMessage("Sencha", tool_call_id="call_1")]
    history = EbbChatMessageHistory(memory, "monday")
    history.add_messages(given)
    history.add_ai_message("Sencha.")
    EbbChatMessageHistory(memory, "tuesday").add_user_message("Hello")

    assert history.messages[:3] == given
    assert [one.content for one in history.messages] == ["Which tea?", "", "Sencha", "Sencha."]
    history.clear()
    assert history.messages == []
    assert [one.content for one in EbbChatMessageHistory(memory, "tuesday").messages] == ["Hello"]


def test_a_session_of_another_framework_with_the_same_name_has_messages_of_its_own(memory: Memory) -> None:
    history, session = EbbChatMessageHistory(memory, "monday"), EbbSession(memory, "monday")
    history.add_user_message("I moved to Leipzig.")
    asyncio.run(session.add_items([{"role": "user", "content": "I moved to Leipzig."}]))

    assert [one.content for one in history.messages] == ["I moved to Leipzig."]
    assert asyncio.run(session.get_items()) == [{"role": "user", "content": "I moved to Leipzig."}]


def test_messages_are_retrieved_by_content(memory: Memory) -> None:
    EbbChatMessageHistory(memory, "monday").add_user_message("I moved to Leipzig.")
    memory.store("The spare key hangs behind the kitchen clock", tags=["home"])

    (found,) = EbbRetriever(memory=memory, limit=3).invoke("Who moved to Leipzig?")
    assert (found.page_content, found.metadata["role"]) == ("I moved to Leipzig.", "user")
    assert found.metadata["relevance"] > 0.2
    assert EbbRetriever(memory=memory, options={"tag": "home"}).invoke("Who moved to Leipzig?") == []


def test_a_query_may_be_blank_or_of_any_length(memory: Memory) -> None:
    memory.store("Mira moved to Leipzig")
    queries = ("", " ", "Look at this. " * 10_000 + "Who moved to Leipzig?")

    assert [len(EbbRetriever(memory=memory).invoke(query)) for query in queries] == [0, 0, 1]


def test_a_message_that_openai_has_no_form_for_is_kept_with_its_words(memory: Memory) -> None:
    clip = {"type": "video", "base64": "AAAA", "mime_type": "video/mp4"}
    given = [HumanMessage([clip, {"type": "text", "text": "This is my boat in Zanzibar."}])]
    history = EbbChatMessageHistory(memory, "monday")
    history.add_messages(given)

    assert history.messages == given
    assert memory.facts(role="user").facts[0].text == "This is my boat in Zanzibar."


class Odd(BaseMessage):
    """A message of a kind that LangChain does not know."""

    type: str = "odd"


def test_a_message_that_could_not_be_read_again_is_refused(memory: Memory) -> None:
    history = EbbChatMessageHistory(memory, "monday")
    history.add_user_message("Hello")
    with pytest.raises(ValueError, match="odd"):
        history.add_messages([Odd("Hm")])

    assert [one.content for one in history.messages] == ["Hello"]


def test_messages_whose_turns_are_refused_are_not_kept(memory: Memory) -> None:
    history = EbbChatMessageHistory(memory, " ")
    with pytest.raises(InvalidInputError, match="session"):
        history.add_user_message("Hello")

    assert history.messages == []


@pytest.mark.slow
def test_messages_that_are_too_large_for_one_request_or_answer_are_kept_and_cleared(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[BaseMessage] = [HumanMessage(f"{number} " + "word " * 100_000) for number in range(70)]
    history = EbbChatMessageHistory(memory, "monday")
    history._history.add([message_to_dict(one) for one in given], [])
    assert history.messages == given
    assert history._history.read(2) == [message_to_dict(one) for one in given[-2:]]
    assert history._history.pop() == message_to_dict(given[-1])

    monkeypatch.setattr("ebb.frameworks.MOST_FACTS", 25)
    history.clear()
    assert history.messages == []
