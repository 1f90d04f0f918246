"""The connections of an event loop, each of which has an HTTP client of its own."""

import asyncio
from typing import Any

import httpx

ONE = httpx.Limits(max_connections=1)


class AsyncConnections:
    """HTTP clients with one connection each; requests beyond `max_connections` of the limits wait.

    A client with many connections loses those of some cancelled requests, until all requests wait for ever (httpcore
    1.0). Here a cancelled request, like one that fails, closes its own client.
    """

    def __init__(self, base_url: str, limits: httpx.Limits) -> None:
        self._options: dict[str, Any] = {"base_url": base_url, "limits": ONE, "verify": httpx.create_ssl_context()}
        self._free = asyncio.Semaphore(limits.max_connections or 1)
        self._idle: list[httpx.AsyncClient] = []
        self.is_closed = False

    async def request(self, **arguments: Any) -> httpx.Response:
        """Send a request on the connection that was used last, or on a new one, and return its response.

        Raises:
            RuntimeError: the connections were closed.
            httpx.HTTPError: there is no response.
        """
        async with self._free:
            if self.is_closed:
                raise RuntimeError("The connections are closed.")
            client = self._idle.pop() if self._idle else httpx.AsyncClient(**self._options)
            is_usable = False
            try:
                response = await client.request(**arguments)
                is_usable = not self.is_closed
            finally:
                if is_usable:
                    self._idle.append(client)
                else:
                    await client.aclose()
            return response

    async def aclose(self) -> None:
        """Close the connections; those of requests under way are closed at their end."""
        self.is_closed = True
        while self._idle:
            await self._idle.pop().aclose()
