"""The body: a limit to how long it may be, kept whatever its length is said to be."""

from http import HTTPStatus

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.problems import answer


class TooLongError(HTTPException):
    """More of a body came than is allowed."""

    def __init__(self, most: int) -> None:
        detail = f"The body has more than {most} bytes (EBB_MAX_BODY); send it in pieces."
        super().__init__(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


class BodyLimit:
    """Middleware that answers 413 to a body that is longer than the setting, before or while it is read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, counting its bytes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most: int = scope["app"].state.door.settings.max_body
        said = Request(scope).headers.get("content-length", "")
        if said.isdigit() and int(said) > most:
            late = TooLongError(most)
            await answer(late.status_code, late.detail, Request(scope))(scope, receive, send)
            return
        await self.app(scope, _counted(receive, most), send)


def _counted(receive: Receive, most: int) -> Receive:
    """Return what receives messages until their bodies are too long together."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLongError(most)
        return message

    return counted
