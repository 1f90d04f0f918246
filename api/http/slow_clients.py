"""The time limit for the head of a request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Seconds from the first byte of a request, or from the connection, until its head is complete."""

LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 42\r\n\r\nThe head of the request came too slowly.\r\n"
)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose next request does not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time for the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Receive bytes: the first of a request start its time, and the end of its head stops it."""
        self._expect()
        super().data_received(data)
        if not self._is_idle():
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        if self._deadline is None and self._is_idle():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self, *_: Any) -> None:
        self._deadline = None
        if self._is_idle() and not self.transport.is_closing():
            if self.cycle is None:
                self.transport.write(LATE)
            self.transport.close()
