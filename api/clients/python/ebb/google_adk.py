"""Google ADK: a memory service with a namespace for each user of each app.

>>> runner = Runner(app_name="trips", agent=agent, session_service=…, memory_service=EbbMemoryService(memory))
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ebb.contract.facts import MOST_MESSAGES
from ebb.contract.operation import Rejected
from ebb.contract.reports import Fact
from ebb.contract.values import NAMESPACE
from ebb.errors import InvalidInputError
from ebb.frameworks import extra, question, synchronous, turns
from ebb.memory import Memory

with extra("google-adk"):
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai import types

NOT_IN_NAMES = re.compile(rb"[^A-Za-z0-9._:@-]")
OF_BRANCHES = re.compile(r"-(?=older-\d+d\Z)")
"""The sign before the age of a branch, whose name a user could take to get the copy of another's memory."""


def namespace_of(app: str, user: str) -> str:
    """Return the namespace of a user of an app, which no other user and no other app has.

    It is `app/user`; if that is no name or that of a branch, or one of them has a slash, it is `adk//app/user` with the
    signs that a name cannot have written as `+2F`.
    """
    plain = f"{app}/{user}"
    if plain.count("/") == 1 and NAMESPACE.fullmatch(plain) and not OF_BRANCHES.search(user):
        return plain
    return f"adk//{_written(app)}/{OF_BRANCHES.sub('+2D', _written(user))}"


def _written(name: str) -> str:
    return NOT_IN_NAMES.sub(lambda found: b"+%02X" % found[0][0], name.encode(errors="surrogatepass")).decode()


class EbbMemoryService(BaseMemoryService):
    """Stores sessions as turns; `namespace` maps app and user to the name of a namespace."""

    def __init__(self, memory: Memory, *, namespace: Callable[[str, str], str] = namespace_of, limit: int = 10) -> None:
        self._memory, self._name, self._limit = synchronous(memory), namespace, limit

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
        """Store statements.

        Raises:
            InvalidInputError: some could not be stored, such as one that is too long; the others were.
        """
        del custom_metadata
        facts = [one for one in map(_stated, memories) if one["text"]]
        if not facts:
            return
        done = (await asyncio.to_thread(self._of(app_name, user_id).store_many, facts)).results
        if refused := [one.error for one in done if isinstance(one, Rejected)]:
            raise InvalidInputError(f"{len(refused)} of {len(facts)} memories were not stored: {'; '.join(refused)}")

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return matching memories, best first; none for a blank query, which a model may give."""
        asked = question(query)
        if not asked:
            return SearchMemoryResponse()
        memory = self._of(app_name, user_id)
        found = (await asyncio.to_thread(memory.recall, asked, limit=self._limit)).results
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
        for part in turns(_messages(events), MOST_MESSAGES):
            await asyncio.to_thread(self._of(app, user).remember, part, session=session)


def _messages(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    for one in events:
        text = _text(one.content)
        if text:
            at = datetime.fromtimestamp(one.timestamp, UTC).isoformat()
            role = "user" if one.author == "user" else "assistant"
            yield {"id": one.id, "role": role, "content": text, "created_at": at}


def _stated(memory: MemoryEntry) -> dict[str, Any]:
    role = None if memory.author is None else "user" if memory.author == "user" else "assistant"
    return {
        "text": _text(memory.content), "role": role, "source_date": _instant(memory.timestamp),
        "metadata": memory.custom_metadata or None,
    }  # fmt: skip


def _instant(timestamp: str | None) -> str | None:
    """Return an instant with its zone, which is this machine's if ADK left it out; None for other texts."""
    try:
        return datetime.fromisoformat(timestamp or "").astimezone().isoformat()
    except ValueError:
        return None


def _text(content: types.Content | None) -> str:
    parts = (content.parts or []) if content else []
    return "\n".join(one.text for one in parts if one.text and not one.thought)


def _entry(fact: Fact) -> MemoryEntry:
    role = "user" if fact.role == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=fact.text)])
    at = fact.source_date or fact.created_at
    known = {"custom_metadata": fact.metadata or {}, "timestamp": at.isoformat() if at else None}
    return MemoryEntry(id=str(fact.id), content=content, author=fact.role, **known)
