"""The connections of a process or of an event loop, each of which has an HTTP client of its own.

A client with many connections loses those of some requests that are interrupted or cancelled, until all requests wait
for ever (httpcore 1.0). Here such a request gives up its own client only.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Semaphore
from typing import Any

import httpx

from ebb.errors import EbbError

ONE = httpx.Limits(max_connections=1)
FAILED = (httpx.RequestError, httpx.InvalidURL)
OF_FILES = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, ssl.SSLError)
"""Errors of certificate files. Others, such as too many open files, are no faults of the environment."""


@contextmanager
def _environment() -> Iterator[None]:
    """Raise `EbbError` if the environment names a proxy or certificate that httpx cannot use."""
    try:
        yield
    except (httpx.InvalidURL, ValueError, ImportError, *OF_FILES) as error:
        is_of_url = isinstance(error, httpx.InvalidURL | ValueError)
        fault = "an address cannot be read" if is_of_url else error  # it may have a password
        raise EbbError(
            "The environment has a proxy or certificates that cannot be used; correct HTTP_PROXY, HTTPS_PROXY, "
            f"ALL_PROXY, NO_PROXY, SSL_CERT_FILE or SSL_CERT_DIR: {fault}"
        ) from None


def _options(base_url: str) -> dict[str, Any]:
    with _environment():
        return {"base_url": base_url, "limits": ONE, "verify": httpx.create_ssl_context()}


class Connections:
    """HTTP clients with one connection each; requests beyond `max_connections` of the limits wait."""

    def __init__(self, base_url: str, limits: httpx.Limits) -> None:
        self._options = _options(base_url)
        self._free = Semaphore(limits.max_connections or 1)
        self._idle: list[httpx.Client] = []
        self.is_closed = False

    def request(self, **arguments: Any) -> httpx.Response:
        """Send a request on the connection that was used last, or on a new one, and return its response.

        Raises:
            RuntimeError: the connections were closed.
            EbbError: the environment has a proxy that cannot be used.
            httpx.HTTPError: there is no response.
        """
        with self._free:
            if self.is_closed:
                raise RuntimeError("The connections are closed.")
            with _environment():
                client = self._taken() or httpx.Client(**self._options)
            try:
                response = client.request(**arguments)
            except FAILED:
                client.close()
                raise
            # Not what was interrupted, as by Ctrl-C or a time limit of Celery: its locks may be held, so it cannot even
            # be closed.
            self._idle.append(client)
            if self.is_closed:
                self.close()
            return response

    def _taken(self) -> httpx.Client | None:
        """Take the client that was used last, unless another thread was faster."""
        with suppress(IndexError):
            return self._idle.pop()
        return None

    def close(self) -> None:
        """Close the connections; those of requests under way are closed at their end."""
        self.is_closed = True
        while client := self._taken():
            client.close()


class AsyncConnections:
    """The same for an event loop."""

    def __init__(self, base_url: str, limits: httpx.Limits) -> None:
        self._options = _options(base_url)
        self._free = asyncio.Semaphore(limits.max_connections or 1)
        self._idle: list[httpx.AsyncClient] = []
        self.is_closed = False

    async def request(self, **arguments: Any) -> httpx.Response:
        """Send a request on the connection that was used last, or on a new one, and return its response.

        Raises:
            RuntimeError: the connections were closed.
            EbbError: the environment has a proxy that cannot be used.
            httpx.HTTPError: there is no response.
        """
        async with self._free:
            if self.is_closed:
                raise RuntimeError("The connections are closed.")
            with _environment():
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
