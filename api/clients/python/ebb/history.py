"""The messages of a conversation for a framework, stored twice: unchanged as items, and as turns for recall."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ebb.batches import batches
from ebb.contract.values import MOST_FACTS
from ebb.memory import Memory

CHATS = "chats"
AT_ONCE = 500
"""The most messages stored in one call."""


class History:
    """The messages of a session, oldest first."""

    def __init__(self, memory: Memory, session: str) -> None:
        self._memory, self._path, self._session = memory, (CHATS, session), session

    def read(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the messages, or the last `limit` of them."""
        documents = [json.loads(one.document) for _, one in self._items()]
        return documents if limit is None else documents[-limit:] if limit > 0 else []

    def add(self, messages: Sequence[Mapping[str, Any]], said: Sequence[Mapping[str, Any]]) -> None:
        """Store messages unchanged, and what they said as turns; a retry repeats only the former."""
        began = time.time_ns()
        items: list[dict[str, Any]] = [
            {"path": self._path, "key": f"{began:020d}-{place:06d}", "document": json.dumps(one)}
            for place, one in enumerate(messages)
        ]
        for part in batches(items, AT_ONCE):
            self._memory.put_items(part)
        for turns in batches(said, AT_ONCE):
            self._memory.remember(turns, session=self._session)

    def pop(self) -> dict[str, Any] | None:
        """Remove and return the last message; its turn stays."""
        items = self._items()
        if not items:
            return None
        key, last = items[-1]
        self._memory.drop_item(self._path, key)
        return json.loads(last.document)

    def clear(self) -> None:
        """Remove all messages; their turns stay."""
        while items := self._items():
            for key, _ in items:
                self._memory.drop_item(self._path, key)

    def _items(self) -> list[tuple[str, Any]]:
        found = self._memory.items(self._path, limit=MOST_FACTS).items
        return sorted((one.key, one) for one in found if tuple(one.path) == self._path)
