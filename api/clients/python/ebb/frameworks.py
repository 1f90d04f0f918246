"""What the adapters of frameworks share: their extras, batches of what they store, and the messages of a session."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ValidationError

from ebb.contract.documents import Item, NewItem
from ebb.contract.faults import faults
from ebb.contract.values import MOST_FACTS
from ebb.errors import InvalidInputError
from ebb.memory import AsyncMemory, Memory

One = TypeVar("One")

CHARACTERS = 1_000_000
"""The most characters of a batch as JSON, if it has several values."""

AT_ONCE = 500
"""The most messages stored in one call."""

FITTING = 30
"""Messages that fit into one answer, however large they are: it may have 32 MiB, and each of them 1 MiB there."""

LONGEST_QUESTION = 8_000
"""Maximum characters of a question; of a longer text the last ones are asked."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import a framework in this block.

    Raises:
        ModuleNotFoundError: it is not installed; the message names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; pip install 'ebb-memory[{name}]' installs it.", name=error.name) from None


def synchronous(memory: Any) -> Any:
    """Return a memory that an adapter uses.

    Raises:
        TypeError: it is an `AsyncMemory`, whose calls would not be awaited and so store nothing.
    """
    if isinstance(memory, AsyncMemory):
        raise TypeError("memory: is an AsyncMemory; give a Memory, which this adapter calls.")
    return memory


SynchronousMemory = Annotated[Any, AfterValidator(synchronous)]
"""The type of a memory in a pydantic model of a framework."""


def batches(given: Iterable[One], most: int) -> Iterator[list[One]]:
    """Yield JSON values in order, in batches of at most `most` and of at most `CHARACTERS`."""
    part: list[One] = []
    room = CHARACTERS
    for one in given:
        size = len(json.dumps(one))
        if part and (len(part) == most or size > room):
            yield part
            part, room = [], CHARACTERS
        part.append(one)
        room -= size
    if part:
        yield part


def turns(said: Iterable[Mapping[str, Any]], most: int) -> Iterator[list[Any]]:
    """Yield messages in batches for `remember`; a lone surrogate, which Ebb refuses, becomes a question mark."""
    return batches((json.loads(json.dumps(one, ensure_ascii=False).encode(errors="replace")) for one in said), most)


def question(text: str) -> str:
    """Return the end of a text that a user or model wrote, as a question that Ebb accepts; empty if it is blank.

    A lone surrogate becomes a question mark, and NUL a blank.
    """
    return text.replace("\0", " ").encode(errors="replace").decode().strip()[-LONGEST_QUESTION:]


def items_below(memory: Memory, path: Sequence[str], most: int, *, refresh: bool = True) -> list[Item]:
    """Return the newest items below a path, at least `most` if there are so many; large ones are read in parts."""

    def page(offset: int, limit: int) -> list[Item]:
        return memory.items(path, offset=offset, limit=limit, refresh=refresh).items

    try:
        return page(0, most)
    except InvalidInputError:  # perhaps because they are too large for one answer
        found: list[Item] = []
        while len(found) < most and (more := page(len(found), FITTING)):
            found += more
        return found


def _check(items: Sequence[Mapping[str, Any]]) -> None:
    try:
        for one in items:
            NewItem.model_validate(one)
    except ValidationError as error:
        raise InvalidInputError(faults(error)) from None


class History:
    """The messages of a session, oldest first, stored twice: unchanged as items, and as turns for recall.

    Each framework has a folder of items, as none can read the messages of another.
    """

    def __init__(self, memory: Memory, folder: str, session: str) -> None:
        self._memory, self._path, self._session = synchronous(memory), (folder, session), session

    def read(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the messages, or the last `limit` of them."""
        if limit is None:
            return [json.loads(one.document) for _, one in self._items()]
        return [json.loads(one.document) for _, one in self._items(limit)[-limit:]] if limit > 0 else []

    def add(self, messages: Sequence[Mapping[str, Any]], said: Sequence[Mapping[str, Any]]) -> None:
        """Store what messages said as turns, then the messages unchanged; if the former fails, no message is kept.

        Raises:
            InvalidInputError: a message is too large, and nothing was stored.
        """
        began = time.time_ns()
        items: list[dict[str, Any]] = [
            {"path": self._path, "key": f"{began:020d}-{place:06d}", "document": json.dumps(one)}
            for place, one in enumerate(messages)
        ]
        _check(items)
        for part in turns(said, AT_ONCE):
            self._memory.remember(part, session=self._session)
        for part in batches(items, AT_ONCE):
            self._memory.put_items(part)

    def pop(self) -> dict[str, Any] | None:
        """Remove and return the last message; its turn stays."""
        for key, last in reversed(self._items(1)):
            if self._memory.drop_item(self._path, key).dropped:  # else another process was faster
                return dict(json.loads(last.document))
        return None

    def clear(self) -> None:
        """Remove all messages; their turns stay."""
        while items := self._items():
            for part in batches((str(one.id) for _, one in items), AT_ONCE):
                self._memory.forget(part)

    def _items(self, most: int = MOST_FACTS) -> list[tuple[str, Item]]:
        """Return at least the last `most` messages, ordered by key.

        `AT_ONCE` more are read, as Ebb knows no order among those that were stored in one call.
        """
        found = items_below(self._memory, self._path, min(most + AT_ONCE, MOST_FACTS))
        return sorted({one.key: one for one in found if tuple(one.path) == self._path}.items())
