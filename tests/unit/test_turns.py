"""Scheduling of the API's threads: which namespace's request is next, and when one is refused."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from api.http.limits import SHARE, SPARE, THREADS, Turns
from workers.errors import BusyError

LARGE = 1_000


class Crowd:
    """Requests that occupy their threads until released."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.gates: dict[str, list[asyncio.Event]] = {}

    async def send(self, namespace: str, count: int = 1, size: int = 0) -> None:
        """Start requests of a namespace."""
        for _ in range(count):
            self.tasks.append(asyncio.create_task(self._request(namespace, size)))
        await self.settle()

    async def _request(self, namespace: str, size: int) -> None:
        self.turns.hold(namespace, size, 0)
        try:
            async with self.turns.turn(namespace):
                self.order.append(namespace)
                over = asyncio.Event()
                self.gates.setdefault(namespace, []).append(over)
                await over.wait()
        finally:
            self.turns.release(namespace, size)

    async def let_go(self, namespace: str) -> None:
        """End the first request of a namespace that has a thread."""
        self.gates[namespace].pop(0).set()
        await self.settle()

    async def settle(self) -> None:
        """Run until every request waits or has a thread."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Cancel all requests."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def running(check: Callable[[Crowd], Awaitable[None]], most: int = 1_000, size: int = 10**9) -> None:
    async def run() -> None:
        crowd = Crowd(Turns(most, size))
        try:
            await check(crowd)
        finally:
            await crowd.end()

    asyncio.run(run())


def test_one_namespace_leaves_threads_to_others() -> None:
    async def check(crowd: Crowd) -> None:
        await crowd.send("mira", THREADS)
        await crowd.send("ines")
        assert crowd.order == ["mira"] * SHARE + ["ines"]

    running(check)


def test_free_threads_go_to_the_namespaces_in_turn() -> None:
    async def check(crowd: Crowd) -> None:
        for name in ("mira", "ines"):
            await crowd.send(name, THREADS)
        await crowd.send("otto", 2)
        crowd.order.clear()
        for name in ("mira", "ines", "mira", "ines"):
            await crowd.let_go(name)
        assert crowd.order == ["mira", "ines", "otto", "mira"]

    running(check)


def test_too_many_requests_or_bytes_of_a_namespace_are_refused_without_affecting_others() -> None:
    async def check(crowd: Crowd) -> None:
        await crowd.send("mira", 3)
        assert "EBB_MAX_REQUESTS=2" in str(crowd.tasks[2].exception())
        await crowd.send("ines", 2, LARGE)
        assert "EBB_MAX_OUTBOX_BYTES=1500" in str(crowd.tasks[4].exception())
        assert isinstance(crowd.tasks[4].exception(), BusyError)
        await crowd.let_go("ines")
        await crowd.send("ines", 1, LARGE)
        assert crowd.order == ["mira", "mira", "ines", "ines"]

    running(check, most=2, size=1_500)


@pytest.mark.parametrize("ends", [0, 5])
def test_a_request_that_is_cancelled_while_it_waits_leaves_its_place(ends: int) -> None:
    async def check(crowd: Crowd) -> None:
        await crowd.send("mira", SHARE + 2)
        crowd.tasks[SHARE].cancel()
        if ends:  # it gets a thread at the same moment
            crowd.gates["mira"].pop(0).set()
        await crowd.settle()
        if not ends:
            await crowd.let_go("mira")
        assert len(crowd.order) == SHARE + 1

    running(check)


def test_a_request_that_is_cancelled_behind_others_does_not_count_any_more() -> None:
    async def check(crowd: Crowd) -> None:
        await crowd.send("mira", SHARE + 2)
        crowd.tasks[-1].cancel()
        await crowd.settle()
        assert crowd.turns.waiting == 1
        await crowd.send("mira")
        assert not crowd.tasks[-1].done()

    running(check, most=SHARE + 2)


def test_all_threads_are_free_in_the_end() -> None:
    turns = Turns(1_000, 10**9)

    async def run() -> None:
        crowd = Crowd(turns)
        for name in ("mira", "ines", "otto"):
            await crowd.send(name, THREADS)
        await crowd.end()

    asyncio.run(run())
    assert turns._free == THREADS - SPARE
    assert not turns._waiting
    assert not turns._held
    assert not turns._bytes
