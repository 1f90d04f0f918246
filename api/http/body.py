"""Limits of request bodies: their size, whatever length was declared, and the time to arrive."""

import asyncio
from http import HTTPStatus

from ebb.contract.values import LONGEST_METADATA
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.problems import answer
from workers.settings import Settings

BATCH = "/memory/facts/batch"
"""The path that accepts many facts in one body."""

ESCAPED = 8
"""Bytes of JSON allowed for each byte of text, other fields included."""

FORM = "/dashboard/"
LONGEST_FORM = 65_536
BODY_SECONDS = 30.0
"""Seconds for a body to arrive."""


class TooLongError(HTTPException):
    """The body is larger than allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body has more than {most} bytes, the most here. Many facts go to POST {BATCH}, which takes up to "
            "EBB_MAX_BODY bytes: send more than that in pieces. Text beyond EBB_MAX_TEXT must be split.",
        )


class TooSlowError(HTTPException):
    """A body did not arrive in time."""

    def __init__(self) -> None:
        super().__init__(
            HTTPStatus.REQUEST_TIMEOUT, f"The body did not arrive within {BODY_SECONDS:g} s; send it in pieces."
        )


def longest_body(path: str, settings: Settings) -> int:
    """Return the most bytes of a body: EBB_MAX_BODY for a batch, otherwise what one fact may need."""
    if path == BATCH:
        return settings.max_body
    own = LONGEST_FORM if path.startswith(FORM) else LONGEST_METADATA + ESCAPED * settings.max_text
    return min(own, settings.max_body)


class BodyLimit:
    """Middleware that answers 413 to a body that is too long, before or while it is read, and 408 to a slow one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, counting its bytes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = longest_body(scope["path"], scope["app"].state.door.settings)
        said = Request(scope).headers.get("content-length", "")
        if said.isdigit() and int(said) > most:
            late = TooLongError(most)
            await answer(late.status_code, late.detail, Request(scope))(scope, receive, send)
            return
        await self.app(scope, _limited(receive, most), send)


def _limited(receive: Receive, most: int) -> Receive:
    """Return a receiver of messages that fails when their bodies together are too large or too slow."""
    seen, complete, deadline = 0, False, asyncio.get_running_loop().time() + BODY_SECONDS

    async def limited() -> Message:
        nonlocal seen, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise TooSlowError from None
        seen += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if seen > most:
            raise TooLongError(most)
        return message

    return limited
