"""The memory of an agent over HTTP, synchronous and with asyncio.

>>> with Memory("http://127.0.0.1:5556", namespace="mira") as memory:
...     memory.store("Mira moved to Leipzig.").action
...     memory.recall("Where does Mira live?").results[0].text
'added'
'Mira moved to Leipzig.'
"""

import asyncio
import os
import time
from collections.abc import Mapping, MutableMapping
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self
from uuid import UUID
from weakref import WeakKeyDictionary

import httpx

from ebb.call import Call, Parsed, Server, answer, call, is_number, state_call
from ebb.connections import AsyncConnections, Connections
from ebb.contract.operation import Accepted, Operation, Params, TaskState, of_params
from ebb.errors import EbbError, InvalidInputError, UnavailableError
from ebb.methods import AsyncOperations, Operations

URL = "http://127.0.0.1:5556"
CONNECTIONS = 20
FAILURES = (httpx.RequestError, httpx.InvalidURL, UnavailableError)


class Connected:
    """The address of Ebb, the namespace, and the connections of either client.

    Args:
        url: the address of Ebb.
        namespace: the namespace; by default that of the key, or without a key the server's.
        key: a key from `ebb keys create`, which opens one namespace, or with the scope `system` each.
        timeout: seconds for each call, at least 0.05; by default each operation has its own.
        retries: how often a call is repeated if the server does not answer or is busy; a write is done only once.
        connections: the maximum of open connections, at least 1; further calls wait.

    Raises:
        InvalidInputError: one of them cannot be used.
    """

    _client: ClassVar[type[Any]]
    _by_place: ClassVar[type[MutableMapping[Any, Any]]]

    def __init__(
        self,
        url: str = URL,
        *,
        namespace: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
        retries: int = 2,
        connections: int = CONNECTIONS,
    ) -> None:
        if not isinstance(url, str):
            raise InvalidInputError(f"url: is no text, but {type(url).__name__}; give an address such as {URL}.")
        self._server = Server(url.rstrip("/"), key, namespace, timeout, retries)
        if not is_number(connections, Integral) or connections < 1:
            raise InvalidInputError(f"connections: {connections!r} leaves no connection for a call; give 1 or more.")
        self._limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._clients = self._by_place()
        self._owns = True

    def namespace(self, name: str) -> Self:
        """Return the memory of another namespace with the same connections; closing it does not close them."""
        other = copy(self)
        vars(other).update(_server=replace(self._server, namespace=name), _clients=self._clients, _owns=False)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes over, such as one in another process; it has connections of its own."""
        return {name: value for name, value in vars(self).items() if name not in ("_clients", "_owns")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Make this a copy, which owns its connections."""
        vars(self).update(state, _clients=self._by_place(), _owns=True)

    @property
    def _http(self) -> Any:
        """Return the HTTP client for the place of this call, which cannot use the connections of another one.

        Without a lock, because a fork may copy one that is held.
        """
        place = self._place()
        if place not in self._clients:
            self._clients.setdefault(place, self._client(base_url=self._server.url, limits=self._limits))
        return self._clients[place]

    def _check_open(self) -> None:
        """Raise `EbbError` if this was closed, of which httpx raises a `RuntimeError`."""
        if self._http.is_closed:
            name = type(self).__name__
            raise EbbError(f"This {name} was closed: make a new {name}(), or close it after the last call.") from None

    def _place(self) -> Any:
        """Return what the connections of this call belong to."""
        raise NotImplementedError


class Memory(Connected, Operations):
    """The memory of one namespace; threads may share it, and so may a process and its forks."""

    _client = Connections
    _by_place = dict

    def accept(self, asked: Params, *, idempotency_key: str | None = None) -> Accepted:
        """Send a write, such as `Store(text="…")`, and return its task without waiting for its result."""
        operation = of_params(type(asked))
        return self._read(call(self._server, operation, fields(asked), idempotency_key, wait=False), Accepted)

    def state(self, task: UUID | str) -> TaskState:
        """Return the state of a write that was accepted in the last day.

        Raises:
            NotFoundError: there is none with this id.
        """
        return self._read(state_call(self._server, task), TaskState)

    def close(self) -> None:
        """Close the connections."""
        if self._owns:
            self._http.close()

    def __enter__(self) -> Self:
        """Return the memory; its connections are closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def _place(self) -> int:
        return os.getpid()

    def _perform(self, operation: Operation, given: dict[str, Any], idempotency_key: str | None = None) -> Any:
        return self._read(call(self._server, operation, given, idempotency_key), operation.answer)

    def _read(self, request: Call, kind: type[Parsed]) -> Parsed:
        while True:
            try:
                return answer(self._http.request(**request.arguments()), kind, request)
            except FAILURES as error:
                time.sleep(request.pause(error))
            except RuntimeError:
                self._check_open()
                raise


class AsyncMemory(Connected, AsyncOperations):
    """The memory of one namespace for asyncio, with the same methods as `Memory`; event loops may share it."""

    _client = AsyncConnections
    _by_place = WeakKeyDictionary
    _clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncConnections]

    async def accept(self, asked: Params, *, idempotency_key: str | None = None) -> Accepted:
        """Send a write, such as `Store(text="…")`, and return its task without waiting for its result."""
        operation = of_params(type(asked))
        return await self._read(call(self._server, operation, fields(asked), idempotency_key, wait=False), Accepted)

    async def state(self, task: UUID | str) -> TaskState:
        """Return the state of a write that was accepted in the last day.

        Raises:
            NotFoundError: there is none with this id.
        """
        return await self._read(state_call(self._server, task), TaskState)

    async def close(self) -> None:
        """Close the connections."""
        if self._owns:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Return the memory; its connections are closed at the end of the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    def _place(self) -> asyncio.AbstractEventLoop:
        running = asyncio.get_running_loop()
        if running not in self._clients:
            self._drop_closed()
        return running

    def _drop_closed(self) -> None:
        """Drop the clients of closed event loops, which open connections refer to."""
        for refers in self._clients.keyrefs():
            loop = refers()
            if loop is not None and loop.is_closed():
                self._clients.pop(loop, None)

    async def _perform(self, operation: Operation, given: dict[str, Any], idempotency_key: str | None = None) -> Any:
        return await self._read(call(self._server, operation, given, idempotency_key), operation.answer)

    async def _read(self, request: Call, kind: type[Parsed]) -> Parsed:
        while True:
            try:
                return answer(await self._http.request(**request.arguments()), kind, request)
            except FAILURES as error:
                await asyncio.sleep(request.pause(error))
            except RuntimeError:
                self._check_open()
                raise


def fields(asked: Params) -> Mapping[str, Any]:
    """Return the parameters that were given."""
    return {name: getattr(asked, name) for name in asked.model_fields_set}
