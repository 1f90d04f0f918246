"""Google ADK: a memory service with a namespace for each user of each app.

>>> runner = Runner(app_name="trips", agent=agent, session_service=…, memory_service=EbbMemoryService(memory))
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from ebb.contract.reports import Fact
from ebb.memory import Memory


class EbbMemoryService(BaseMemoryService):
    """Stores sessions as turns; `namespace` maps app and user to the name of a namespace, by default `app/user`."""

    def __init__(
        self, memory: Memory, *, namespace: Callable[[str, str], str] = "{}/{}".format, limit: int = 10
    ) -> None:
        self._memory, self._name, self._limit = memory, namespace, limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session, without known ones."""
        await self._remember(session.app_name, session.user_id, session.events, session.id)

    async def add_events_to_memory(
        self, *, app_name: str, user_id: str, events: Sequence[Event], session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Store events of a session."""
        del custom_metadata
        await self._remember(app_name, user_id, events, session_id)

    async def add_memory(
        self, *, app_name: str, user_id: str, memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Store statements."""
        del custom_metadata
        facts = [{"text": _text(one.content), "metadata": one.custom_metadata or None} for one in memories]
        if facts := [one for one in facts if one["text"]]:
            await asyncio.to_thread(self._of(app_name, user_id).store_many, facts)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return matching memories, best first."""
        memory = self._of(app_name, user_id)
        found = (await asyncio.to_thread(memory.recall, query, limit=self._limit)).results
        ids = [one.id for one in found]
        known = (await asyncio.to_thread(memory.facts, ids=ids)).facts if ids else []
        return SearchMemoryResponse(memories=[_entry(one) for one in sorted(known, key=lambda it: ids.index(it.id))])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget one memory by the id that a search returned."""
        if memory_id is not None:
            await asyncio.to_thread(self._of(app_name, user_id).forget, [memory_id])

    def _of(self, app_name: str, user_id: str) -> Memory:
        return self._memory.namespace(self._name(app_name, user_id))

    async def _remember(self, app: str, user: str, events: Sequence[Event], session: str | None) -> None:
        if messages := list(_messages(events)):
            await asyncio.to_thread(self._of(app, user).remember, messages, session=session)


def _messages(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    for one in events:
        text = _text(one.content)
        if text:
            at = datetime.fromtimestamp(one.timestamp, UTC).isoformat()
            role = "user" if one.author == "user" else "assistant"
            yield {"id": one.id, "role": role, "content": text, "created_at": at}


def _text(content: types.Content | None) -> str:
    parts = (content.parts or []) if content else []
    return "\n".join(one.text for one in parts if one.text and not one.thought)


def _entry(fact: Fact) -> MemoryEntry:
    role = "user" if fact.role == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=fact.text)])
    at = fact.source_date or fact.created_at
    return MemoryEntry(id=str(fact.id), content=content, author=fact.role, timestamp=at.isoformat() if at else None)
