"""LlamaIndex: a block of long-term memory for its `Memory`.

>>> block = EbbMemoryBlock(memory=memory)
>>> agent_memory = Memory.from_defaults(session_id="monday", memory_blocks=[block])

Messages that leave the short-term memory are stored; facts that match the user's last message are put into the prompt.
"""

import asyncio
from typing import Any

from pydantic import Field

from ebb.contract.facts import MOST_MESSAGES
from ebb.frameworks import SynchronousMemory, extra, question, turns

with extra("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.utils import get_tokenizer

SESSION = "session_id"


class EbbMemoryBlock(BaseMemoryBlock[str]):
    """A block of facts that match a conversation; `options` are those of `Memory.context`."""

    name: str = "ebb"
    memory: SynchronousMemory
    options: dict[str, Any] = Field(default_factory=dict)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        said = (question(one.content or "") for one in reversed(messages or []) if one.role == "user")
        asked = next(filter(None, said), None)
        if asked is None:
            return ""
        return str((await asyncio.to_thread(self.memory.context, asked, **self.options)).context)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[Any, list[dict[str, Any]]] = {}
        for one in messages:
            said = {"role": one.role.value, "content": one.content or ""}
            sessions.setdefault(one.additional_kwargs.get(SESSION), []).append(said)
        for session, said_in_it in sessions.items():
            for part in turns(said_in_it, MOST_MESSAGES):
                await asyncio.to_thread(self.memory.remember, part, session=session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the context without its last lines, at least so many tokens shorter; None if it would be empty.

        Tokens are those of LlamaIndex's own tokenizer, as what is still too long is removed whole.
        """
        if not content:  # LlamaIndex gives a list if there is none
            return None
        tokenizer = get_tokenizer()
        lines = content.splitlines()
        most = len(tokenizer(content)) - tokens_to_truncate
        while len(lines) > 2 and len(tokenizer("\n".join(lines))) > most:  # noqa: PLR2004 - the two of the wrapper
            del lines[-2]
        return "\n".join(lines) if len(lines) > 2 else None  # noqa: PLR2004 - likewise
