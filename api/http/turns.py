"""Turns: fair sharing of the threads that wait for workers among namespaces."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

from workers.coordination.shares import RETRY_SECONDS
from workers.errors import BusyError

THREADS = 64
"""Maximum number of requests that wait for workers at the same time."""

SHARE = THREADS // 2
"""Maximum number of them for one namespace."""

SPARE = 4
"""Threads reserved for requests without a namespace, such as health checks and metrics."""

Waiting: TypeAlias = "deque[asyncio.Future[None]]"


class Turns:
    """The queue for threads; used only on the event loop."""

    def __init__(self, most_requests: int, most_bytes: int) -> None:
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._free = THREADS - SPARE
        self._held = Counter[str]()
        self._bytes = Counter[str]()
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()

    @asynccontextmanager
    async def turn(self, namespace: str, size: int) -> AsyncIterator[None]:
        """Wait for the turn of a request with the given size of its body, and hold a thread during the block.

        Raises:
            BusyError: too many requests of this namespace, or too many bytes of them, wait.
        """
        self._check(namespace, size)
        self._bytes[namespace] += size
        try:
            await self._enter(namespace)
            try:
                yield
            finally:
                self._leave(namespace)
        finally:
            self._bytes[namespace] -= size
            if not self._bytes[namespace]:
                del self._bytes[namespace]

    @property
    def waiting(self) -> int:
        """Return the number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    def _check(self, namespace: str, size: int) -> None:
        waiting, held = len(self._waiting.get(namespace, ())), self._bytes[namespace]
        if waiting + self._held[namespace] >= self._most_requests:
            what = f"{waiting} requests of the namespace {namespace!r} wait, and EBB_MAX_REQUESTS={self._most_requests}"
        elif held and held + size > self._most_bytes:
            what = f"{held} bytes of requests of the namespace {namespace!r} wait, and EBB_MAX_OUTBOX_BYTES="
            what += f"{self._most_bytes}"
        else:
            return
        raise BusyError(
            f"{what} allows no more; ask again in {RETRY_SECONDS} s, with fewer at the same time.", RETRY_SECONDS
        )

    async def _enter(self, namespace: str) -> None:
        if self._free and self._held[namespace] < SHARE:
            self._take(namespace)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had got its turn already
                self._leave(namespace)
            raise

    def _take(self, namespace: str) -> None:
        self._free -= 1
        self._held[namespace] += 1

    def _leave(self, namespace: str) -> None:
        self._free += 1
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        self._grant()

    def _grant(self) -> None:
        """Assign free threads to waiting namespaces in turn; cancelled requests are skipped."""
        for namespace, waiting in list(self._waiting.items()):
            while waiting and waiting[0].cancelled():
                waiting.popleft()
            if waiting and self._free and self._held[namespace] < SHARE:
                self._take(namespace)
                waiting.popleft().set_result(None)
                self._waiting.move_to_end(namespace)
            if not waiting:
                del self._waiting[namespace]
