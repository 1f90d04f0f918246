"""The load of a busy tenant: many clients at once over HTTP, in a process of their own."""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
TOO_MANY = 429


@contextmanager
def running(url: str, namespace: str, kind: Kind, texts: Sequence[str]) -> Iterator["Synchronized[int]"]:
    """Run the clients of one kind during the block; yield the number of successful requests."""
    spawning = multiprocessing.get_context("spawn")
    answered: Synchronized[int] = spawning.Value("i", 0)
    process = spawning.Process(target=_load, args=(url, namespace, kind, list(texts), answered), daemon=True)
    process.start()
    try:
        yield answered
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
        await asyncio.gather(*(_client(http, requests, answered) for _ in range(clients)))


async def _client(
    http: httpx2.AsyncClient, requests: Iterator[tuple[str, bytes]], answered: "Synchronized[int]"
) -> None:
    """Ask without a pause, except for what a refusal asks for."""
    while True:
        path, body = next(requests)
        try:
            answer = await http.post(path, content=body)
        except httpx2.TimeoutException:
            continue
        if answer.is_success:
            answered.value += 1
        elif answer.status_code == TOO_MANY:
            await asyncio.sleep(float(answer.headers["Retry-After"]))


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
