"""The load of a busy tenant: many clients at once over HTTP, in a process of their own."""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import httpx2

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

Kind = Literal["batches", "heavy", "allowed", "crowd"]
BATCH = 1_000
CLIENTS: dict[Kind, int] = {"batches": 4, "heavy": 16, "allowed": 16, "crowd": 80}
LONGEST_QUERY = 60_000
SECONDS = 60.0


@contextmanager
def running(url: str, namespace: str, kind: Kind, texts: Sequence[str]) -> Iterator["Synchronized[int]"]:
    """Run the clients of one kind during the block, which begins after their first answer; yield their answers' number.

    Raises:
        RuntimeError: the clients ended, as they do at a request that fails.
    """
    spawning = multiprocessing.get_context("spawn")
    answered: Synchronized[int] = spawning.Value("i", 0)
    process = spawning.Process(target=_load, args=(url, namespace, kind, list(texts), answered), daemon=True)
    process.start()
    try:
        until = time.monotonic() + SECONDS
        while process.is_alive() and not answered.value and time.monotonic() < until:
            time.sleep(0.01)
        yield answered
        if not process.is_alive():
            raise RuntimeError(f"The clients of kind {kind!r} ended; see their error above.")
    finally:
        process.kill()
        process.join()


def _load(url: str, namespace: str, kind: Kind, texts: list[str], answered: "Synchronized[int]") -> None:
    asyncio.run(_clients(url, namespace, kind, texts, answered))


async def _clients(url: str, namespace: str, kind: Kind, texts: list[str], answered: "Synchronized[int]") -> None:
    clients = CLIENTS[kind]
    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    headers = {"X-Ebb-Namespace": namespace, "Content-Type": "application/json"}
    requests = _requests(kind, texts)
    async with httpx2.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=SECONDS) as http:
        await asyncio.gather(*(_client(http, kind, requests, answered) for _ in range(clients)))


async def _client(
    http: httpx2.AsyncClient, kind: Kind, requests: Iterator[tuple[str, bytes]], answered: "Synchronized[int]"
) -> None:
    """Ask without a pause, except for what a refusal asks for."""
    while True:
        path, body = next(requests)
        try:
            answer = await http.post(path, content=body)
        except httpx2.TimeoutException:
            continue
        if "Retry-After" in answer.headers:
            await asyncio.sleep(float(answer.headers["Retry-After"]))
        elif answer.is_success or kind == "heavy":  # which is refused for its cost
            answered.value += 1
        elif answer.status_code != HTTPStatus.GATEWAY_TIMEOUT:
            answer.raise_for_status()


def _requests(kind: Kind, texts: list[str]) -> Iterator[tuple[str, bytes]]:
    numbers = count(time.time_ns())
    while True:
        number = next(numbers)
        if kind == "batches":
            facts = [{"text": f"{text} {number}"} for text in texts[:BATCH]]
            yield "/memory/facts/batch", json.dumps({"facts": facts}).encode()
        else:
            yield "/memory/recall", json.dumps(_question(kind, texts, number)).encode()


def _question(kind: Kind, texts: list[str], number: int) -> dict[str, Any]:
    if kind == "crowd":
        return {"query": texts[number % len(texts)], "touch": False}
    if kind == "allowed":
        return {"query": texts[number % len(texts)], "limit": 1_000, "explain": True}
    return {"query": " ".join(texts)[:LONGEST_QUERY], "limit": 1_000, "explain": True}
