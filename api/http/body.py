"""The body: how long it may be, whatever its length is said to be, and how long it may take to arrive."""

import asyncio
from http import HTTPStatus

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.problems import answer
from workers.settings import Settings
from workers.validation.values import LONGEST_METADATA

BATCH = "/memory/facts/batch"
"""The path that takes many facts in one body."""

ESCAPED = 8
"""How many bytes of JSON a byte of text may need, with what is beside it."""

FORM = "/dashboard/"
LONGEST_FORM = 65_536
BODY_SECONDS = 30.0
"""How long a body may take to arrive."""


class TooLongError(HTTPException):
    """More of a body came than is allowed."""

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
    """Return how many bytes a body may have: of a batch EBB_MAX_BODY, of all else what one fact may need."""
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
    """Return what receives messages until their bodies are too long together, or take too long."""
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
