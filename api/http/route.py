"""A route that checks the caller before it reads the body, and parses and validates large bodies off the event loop."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, TypeAlias, TypeVar
from urllib.parse import unquote_to_bytes

from anyio import CapacityLimiter, to_thread
from ebb.contract.faults import MOST_FAULTS, few_unknown, show
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security.utils import get_authorization_scheme_param
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from api.http.callers import identify, is_led_here
from api.http.dispatch import Timeout
from api.http.door import door_of
from api.http.limits import Turns
from api.http.problems import NO_JSON, InvalidBodyError, model_of, task_of, until_stopped
from workers.errors import LateError

KEY_CHECKS = 16
"""Number of separate threads for checking keys, so that a refusal does not wait for busy threads."""

PARSERS = 2
"""Number of bodies parsed at the same time, as parsing holds the interpreter lock."""

MOST_PARTS = 500_000
"""Maximum number of brackets, colons and commas in a body, as parsing millions of values would delay other requests."""

SMALL, FEW_PARTS = 4_096, 64
"""Bytes, and number of such parts, up to which a body is parsed on the event loop, which costs less than a thread.

Thousands of values that are refused would occupy the loop for tens of milliseconds.
"""

GRACE_SECONDS = 2.0
"""Time beyond the timeout of a request that its client has to report that no worker answered, and to revoke the task.

After it the caller is answered, although a thread may still wait for a Redis that hangs.
"""

TIMEOUT: TypeAdapter[float | None] = TypeAdapter(Timeout)

T = TypeVar("T")
Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


def own_name(route: APIRoute) -> str:
    """Return the id of a route in the OpenAPI document, after which generated clients name their methods."""
    return route.name


class Route(APIRoute):
    """A route that reads a JSON body only from callers with a valid key, and parses a large one in a thread.

    A caller with a timeout is answered soon after it, whatever a thread of its request waits for.
    """

    def get_route_handler(self) -> Handler:
        """Return the handler of a request."""
        answer = super().get_route_handler()
        limits: list[CapacityLimiter] = []

        async def identified(request: Request) -> Turns:
            if not limits:  # they belong to the event loop, which is not there before
                limits[:] = CapacityLimiter(KEY_CHECKS), CapacityLimiter(PARSERS)
            await to_thread.run_sync(_identify, request, limiter=limits[0])
            return door_of(request).turns

        parse = None
        if self.body_field is not None:
            info = self.body_field.field_info
            shape: Any = Annotated[info.annotation, info]
            parse = partial(_parsed, adapter=TypeAdapter(shape), known=_known_fields(info.annotation))

        async def in_turn(request: Request, turns: Turns, body: bytes) -> Response:
            given = None
            async with turns.turn(request.state.caller.namespace):
                if parse and body and _is_json(request):
                    small = len(body) <= SMALL and _parts(body) <= FEW_PARTS
                    given = parse(body) if small else await to_thread.run_sync(parse, body, limiter=limits[1])
                return await answer(_Read(request, body, given) if parse else request)

        async def answered(request: Request) -> Response:
            with until_stopped(request):
                late = _Deadline(request)
                turns = await late.within(identified(request))
                _check_query(request)
                body = await _body(request, taken=parse is not None)
                return await late.within(in_turn(request, turns, body))

        return answered


class _Deadline:
    """When a request with a timeout is to be answered at the latest."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._seconds: float | None = None
        with suppress(ValidationError):  # it is refused later
            self._seconds = TIMEOUT.validate_python(request.query_params.get("timeout"))
        self._began = asyncio.get_running_loop().time()

    async def within(self, part: Coroutine[Any, Any, T]) -> T:
        """Return the result of a part of the work.

        At the deadline it is left to end by itself, as threads cannot be stopped; until then it keeps its turn. If
        it has not sent a task yet, it is cancelled: no answer could name that task.

        Raises:
            LateError: the deadline has passed.
        """
        if self._seconds is None:
            return await part
        until = self._began + self._seconds + GRACE_SECONDS
        task = asyncio.create_task(part)
        try:
            done, _ = await asyncio.wait({task}, timeout=max(until - asyncio.get_running_loop().time(), 0.0))
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        task.add_done_callback(_drop_error)
        if not (sent := task_of(self._request)):
            task.cancel()
        raise LateError(f"No worker answered within {self._seconds:g} s, and Redis may hang. See `ebb status`.", sent)


def _drop_error(task: "asyncio.Task[Any]") -> None:
    """Read the error of a task that is no longer waited for; asyncio would log that none did."""
    if not task.cancelled():
        task.exception()


class _Read(Request):
    """A request with a body that is already read and parsed."""

    def __init__(self, request: Request, body: bytes, given: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body
        self._given = given

    async def json(self) -> Any:
        """Return the parsed body."""
        return self._given


def _identify(request: Request) -> None:
    """Refuse callers without a valid key, by the headers only.

    What a page of another site asks without a key, by a link or in a frame, must not count as use.
    """
    scheme, bearer = get_authorization_scheme_param(request.headers.get("authorization"))
    key = bearer if bearer and scheme.lower() == "bearer" else request.headers.get("x-api-key")
    who = identify(request, key, request.headers.get("x-ebb-namespace"))
    if who.key is None and is_led_here(request):
        request.state.caller = replace(who, scopes=who.scopes - {"write"})


def _check_query(request: Request) -> None:
    """Refuse a query that is not UTF-8: its values would be read as other values."""
    try:
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError as error:
        odd = f"%{error.object[error.start]:02X}"
        raise HTTPException(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"query: is no UTF-8 at {odd}; encode its values as UTF-8."
        ) from None


async def _body(request: Request, *, taken: bool) -> bytes:
    """Return the body of a request.

    Raises:
        HTTPException: it is compressed, or not taken: if a filter in it were ignored, more facts would match.
    """
    body = await request.body()
    if not taken and body.strip() not in (b"", b"{}", b"null"):
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, "body: is not taken here; give parameters in the query.")
    if body and (coding := request.headers.get("content-encoding", "").strip().lower()) not in ("", "identity"):
        raise HTTPException(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"body: was not read, for its Content-Encoding is {show(coding)}; send it uncompressed.",
        )
    return body


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and (kind == "application/json" or kind.endswith("+json"))


def _parts(body: bytes) -> int:
    return sum(map(body.count, (b"[", b"{", b":", b",")))


def check_parts(body: bytes) -> None:
    """Refuse a body with too many values."""
    if _parts(body) > MOST_PARTS:
        raise HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body has more than {MOST_PARTS} values; send it in pieces."
        )


def _parsed(body: bytes, adapter: TypeAdapter[Any], known: frozenset[str]) -> Any:
    """Return a body as the type that its route expects.

    Raises:
        RequestValidationError: it is not JSON.
        InvalidBodyError: it is JSON, but does not fit the type; the first faults are named.
        HTTPException: Python cannot read it, or it has too many values.
    """
    check_parts(body)
    try:
        given = json.loads(body)
    except json.JSONDecodeError as error:
        detail = {"type": "json_invalid", "loc": ("body", error.pos), "input": {}, "ctx": {"error": error.msg}}
        raise RequestValidationError([detail]) from None
    except (ValueError, RecursionError):
        raise HTTPException(HTTPStatus.BAD_REQUEST, NO_JSON) from None
    given, more = few_unknown(given, known) if known and isinstance(given, dict) else (given, 0)
    try:
        return adapter.validate_python(given)
    except ValidationError as error:
        details = error.errors(include_url=False)
        first = [detail | {"loc": ("body", *detail["loc"])} for detail in details[:MOST_FAULTS]]
        raise InvalidBodyError(first, len(details) - len(first) + more) from None


def _known_fields(annotation: Any) -> frozenset[str]:
    """Return the field names that a body may have, if its type is a model that refuses others."""
    model = model_of(annotation)
    if model is None or model.model_config.get("extra") != "forbid":
        return frozenset()
    named = ((own, field.alias, field.validation_alias) for own, field in model.model_fields.items())
    return frozenset(name for names in named for name in names if isinstance(name, str))
