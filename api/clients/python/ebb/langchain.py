"""LangChain: a chat message history, and a retriever of facts.

>>> history = EbbChatMessageHistory(memory, "monday")
>>> history.add_user_message("I moved to Leipzig.")
>>> EbbRetriever(memory=memory).invoke("Where does she live?")[0].page_content
'I moved to Leipzig.'
"""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ebb.contract.recall import Result
from ebb.frameworks import History, SynchronousMemory, extra, question
from ebb.memory import Memory

with extra("langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, convert_to_openai_messages, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever


class EbbChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session, for `RunnableWithMessageHistory`; they are also stored as turns."""

    def __init__(self, memory: Memory, session: str) -> None:
        super().__init__()
        self._history = History(memory, "chats", session)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # LangChain declares an attribute, and uses both
        """Return the messages, oldest first."""
        return list(messages_from_dict(self._history.read()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, also as turns."""
        kept = [message_to_dict(one) for one in messages]
        messages_from_dict(kept)  # what cannot be read again would be in the way of all others
        self._history.add(kept, [said for one in messages for said in _said(one)])

    def clear(self) -> None:
        """Remove the messages; their turns stay."""
        self._history.clear()


class EbbRetriever(BaseRetriever):
    """A retriever of matching facts, best first; `options` are those of `Memory.recall`."""

    memory: SynchronousMemory
    limit: int = 10
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del run_manager
        asked = question(query)
        found = self.memory.recall(asked, limit=self.limit, **self.options).results if asked else []
        return [Document(page_content=one.text, metadata=_known(one), id=str(one.id)) for one in found]


def _said(message: BaseMessage) -> list[dict[str, Any]]:
    """Return a message in OpenAI's form, or its text if LangChain cannot convert one of its blocks, such as a video."""
    try:
        said = convert_to_openai_messages([message])
    except ValueError:
        return [{"role": message.type, "content": str(message.text)}]
    return said if isinstance(said, list) else [said]


def _known(fact: Result) -> dict[str, Any]:
    known = fact.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in known.items() if name not in ("id", "text")}
