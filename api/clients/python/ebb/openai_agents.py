"""OpenAI Agents SDK: a session whose items are stored, also as turns.

>>> await Runner.run(agent, "I moved to Leipzig.", session=EbbSession(memory, "monday"))
"""

import asyncio
from typing import TYPE_CHECKING, cast

from ebb.frameworks import History
from ebb.memory import Memory

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings


class EbbSession:
    """The items of one session, unchanged; they are also stored as turns."""

    session_settings: "SessionSettings | None" = None

    def __init__(self, memory: Memory, session_id: str) -> None:
        self.session_id = session_id
        self._history = History(memory, "agent-chats", session_id)

    async def get_items(self, limit: int | None = None) -> list["TResponseInputItem"]:
        """Return the items, or the last `limit` of them, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return cast("list[TResponseInputItem]", await asyncio.to_thread(self._history.read, limit))

    async def add_items(self, items: list["TResponseInputItem"]) -> None:
        """Store items, also as turns."""
        given = [dict(one) for one in items]
        await asyncio.to_thread(self._history.add, given, given)

    async def pop_item(self) -> "TResponseInputItem | None":
        """Remove and return the last item."""
        return cast("TResponseInputItem | None", await asyncio.to_thread(self._history.pop))

    async def clear_session(self) -> None:
        """Remove all items; their turns stay."""
        await asyncio.to_thread(self._history.clear)
