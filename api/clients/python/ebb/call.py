"""Calls: one operation over HTTP, from its parameters to its answer or error, with retries."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from numbers import Integral, Real
from random import random
from types import NoneType
from typing import Any, TypeVar, get_args
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from ebb import headers
from ebb.contract.operation import Operation, Params
from ebb.errors import (
    OLDER_WORKERS,
    ConflictError,
    EbbError,
    InvalidInputError,
    LateError,
    NotFoundError,
    OlderWorkersError,
    UnavailableError,
    kind_of,
)
from ebb.headers import HEADER, Position

MARGIN_SECONDS = 10.0
"""Seconds to wait beyond the timeout that the server applies itself."""

STATE_SECONDS = 15.0
CONNECT_SECONDS = 5.0
SHORTEST_TIMEOUT = 0.05
LONGEST_TIMEOUT = 300.0
LONGEST_WAIT = 86_400.0
"""Seconds that a call waits at most, however long its timeout is; no operation takes longer."""

LAST_PORT = 65_535
AN_ADDRESS = "give an address such as http://127.0.0.1:5556."
FIRST_PAUSE = 0.2
PLACED = re.compile(r"^(?:body|query|path)\.(\w+)")
SHOWN = 200
SHOWN_BEFORE = 20

Parsed = TypeVar("Parsed", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Server:
    """The address of Ebb and the caller; `timeout` in seconds replaces those of the operations."""

    url: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    namespace: str | None = None
    timeout: float | None = None
    retries: int = 2
    written: Position = field(default_factory=Position, compare=False)

    def __post_init__(self) -> None:
        """Raise `InvalidInputError` for what cannot be used, such as a key or namespace that no header can hold."""
        _check_header("key", self.key)
        _check_header("namespace", self.namespace)
        if self.timeout is not None and not is_number(self.timeout, Real):
            raise InvalidInputError(f"timeout: {self.timeout!r} is no number of seconds; give one, such as 30.")
        if not is_number(self.retries, Integral):
            raise InvalidInputError(f"retries: {self.retries!r} is no whole number; give one, such as 2.")
        if self.timeout is not None and not self.timeout >= SHORTEST_TIMEOUT:
            raise InvalidInputError(f"timeout: {self.timeout} is too short; give {SHORTEST_TIMEOUT} seconds or more.")
        try:
            url = httpx.URL(self.url)
            url.host.encode("idna")  # as connecting does
        except (httpx.InvalidURL, UnicodeError) as error:
            fault = "it cannot be read" if "@" in self.url else error  # before an @ may be a password
            raise InvalidInputError(f"url: {fault}; {AN_ADDRESS}") from None
        if url.scheme not in ("http", "https") or not url.host:
            shown = "it" if "@" in self.shown else repr(self.shown)
            raise InvalidInputError(f"url: {shown} does not begin with http://HOST or https://HOST; {AN_ADDRESS}")
        if (url.port or 0) > LAST_PORT:
            raise InvalidInputError(f"url: {url.port} is no port, as ports end at {LAST_PORT}; {AN_ADDRESS}")

    @property
    def shown(self) -> str:
        """The address for messages, without a user's name and password."""
        return str(httpx.URL(self.url).copy_with(userinfo=b"", query=None))

    def headers(self) -> dict[str, str]:
        """Return the headers for key, namespace and position in the log; a login in the address takes Authorization."""
        name, before = ("X-API-Key", "") if "@" in self.url else ("Authorization", "Bearer ")
        own = {
            "X-Ebb-Namespace": self.namespace,
            name: f"{before}{self.key}" if self.key else None,
            HEADER: self.written.lsn,
        }
        return {name: value for name, value in own.items() if value is not None}


@dataclass(slots=True)
class Call:
    """One request with its retries; a write has an idempotency key."""

    server: Server
    method: str
    path: str
    seconds: float
    params: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    key: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of parameters, by their names over HTTP where these differ."""

    usual: float = 0.0
    """Time limit of the operation if no `timeout` is sent, in seconds; it may exceed the longest that can be sent."""

    failures: int = 0
    started: float = field(default_factory=time.monotonic)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `httpx.Client.request`."""
        most = self.server.timeout
        own = {} if most is None or most > LONGEST_TIMEOUT <= self.usual else {"timeout": min(most, LONGEST_TIMEOUT)}
        about = {"Idempotency-Key": self.key, "Content-Type": None if self.body is None else "application/json"}
        described = {name: one for name, one in about.items() if one is not None}
        return {
            "method": self.method,
            "url": self.path,
            "params": self.params | own,
            "content": self.body,
            "headers": headers.of_trace() | self.server.headers() | described,
            "timeout": httpx.Timeout(self.seconds + MARGIN_SECONDS, connect=CONNECT_SECONDS, pool=None),
        }

    def pause(self, error: Exception) -> float:
        """Return the seconds until the next attempt, or raise the final error.

        Raises:
            EbbError: the server refused the request, or does not answer.
        """
        self.failures += 1
        asked = error.retry_after if isinstance(error, UnavailableError) else None
        wait = asked or FIRST_PAUSE * 2.0**self.failures * (0.5 + random())  # noqa: S311 - not for security
        over = time.monotonic() + wait > self.started + self.seconds
        if over or self.failures > self.server.retries or not is_passing(error):
            raise self._final(error) from None
        return wait

    def _final(self, error: Exception) -> EbbError:
        if isinstance(error, EbbError):
            return error
        if isinstance(error, httpx.InvalidURL):
            return InvalidInputError(f"The parameters do not fit into a URL: {error}; give fewer or shorter ones.")
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            waited = self.seconds + MARGIN_SECONDS
            return LateError(
                f"Ebb at {self.server.shown} did not answer within {waited:g} s, {MARGIN_SECONDS:g} s more than it "
                "should take; see `ebb status`."
            )
        return UnavailableError(
            f"Ebb does not answer at {self.server.shown}: {str(error).rstrip('.') or type(error).__name__}. "
            "Start it with `ebb up`, or give its address as `url`."
        )


def is_passing(error: Exception) -> bool:
    """Return whether the same request may succeed soon."""
    if isinstance(error, EbbError):
        return isinstance(error, UnavailableError) and not isinstance(error, LateError)
    if isinstance(error, httpx.InvalidURL):
        return False
    return isinstance(error, httpx.ConnectTimeout) or not isinstance(error, httpx.TimeoutException)


def call(
    server: Server, operation: Operation, given: Mapping[str, Any], key: str | None = None, *, wait: bool = True
) -> Call:
    """Return the request for an operation.

    Raises:
        TypeError: a parameter is missing or unknown, or a read is to be accepted.
        InvalidInputError: a value cannot be sent.
    """
    _check(operation, given)
    if not wait and not operation.writes:
        raise TypeError(f"{operation.name} writes nothing that could be accepted; call its own method.")
    _check_header("idempotency_key", key)
    if key == "":
        raise InvalidInputError("idempotency_key: is empty; give a text that no other write has, or leave it out.")
    method, url = operation.route.split()
    path, _, in_query = url.partition("?")
    plain = _plain({operation.spelled.get(name, name): one for name, one in given.items()})
    if "{id}" in path:
        path = path.replace("{id}", _segment("id", plain.pop("id")))
    has_body = method not in ("GET", "DELETE")
    queried = _taken(plain, in_query.split("&")) if has_body else _taken(plain | _nulls(operation, given), [*plain])
    return Call(
        server,
        method,
        path,
        min(server.timeout, LONGEST_WAIT) if server.timeout else operation.seconds,
        queried if wait else queried | {"wait": False},
        _encoded(plain) if has_body else None,
        (key or str(uuid4())) if operation.writes else None,
        {spelled: name for name, spelled in operation.spelled.items()},
        operation.seconds,
    )


def state_call(server: Server, task: UUID | str) -> Call:
    """Return the request for the state of a write.

    Raises:
        NotFoundError: no task is named, as by a `LateError` where the API itself did not answer.
    """
    if not str(task):
        raise NotFoundError("task: is empty, so there is no state to ask for; the API did not say which task it was.")
    return Call(server, "GET", f"/tasks/{_segment('task', task)}", STATE_SECONDS)


def _segment(name: str, value: Any) -> str:
    """Return a value as a segment of a path, which is never one that leads to another path, such as `..`."""
    _encoded({name: str(value)})
    if not str(value):
        raise InvalidInputError(f"{name}: is empty; give the id that storing answered.")
    return quote(str(value), safe="").replace(".", "%2E")


def _taken(plain: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Take the parameters of these names out of the others, to be sent in the query, an empty list as an empty text."""
    taken = {name: plain.pop(name) for name in names if name in plain}
    _encoded(taken)
    return {name: one if one != [] else "" for name, one in taken.items() if one is not None}


def _nulls(operation: Operation, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the given parameters that are null where that differs from leaving them out."""
    fields = operation.params.model_fields
    return {
        operation.spelled.get(name, name): "null"
        for name, one in given.items()
        if one is None and fields[name].default is not None and NoneType in get_args(fields[name].annotation)
    }


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as values of JSON; raise `InvalidInputError` for those that it cannot hold."""
    return {name: _plain_value(name, one) for name, one in given.items()}


def _plain_value(name: str, value: Any) -> Any:
    try:
        return to_jsonable_python(_without_defaults(value))
    except UnicodeEncodeError as error:
        raise _unsendable(name, error) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{name}: cannot be sent as JSON: {error}. Give texts, numbers, dates, and lists and dicts of them."
        ) from None


def _encoded(values: Mapping[str, Any]) -> bytes:
    """Return values as JSON; raise `InvalidInputError` for those that it cannot hold."""
    try:
        return _json(values)
    except ValueError:
        for name, one in values.items():
            _check_sendable(name, one)
        raise


def _check_sendable(name: str, value: Any) -> None:
    try:
        _json(value)
    except ValueError as error:
        raise _unsendable(name, error) from None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _unsendable(name: str, error: ValueError) -> InvalidInputError:
    if not isinstance(error, UnicodeEncodeError):
        return InvalidInputError(f"{name}: has a number that is infinite or not a number; give another.")
    place = error.object[max(error.start - SHOWN_BEFORE, 0) : error.end]
    return InvalidInputError(f"{name}: has a lone surrogate, which is half of a character: {place!a}; remove it.")


def is_number(value: Any, kind: Any) -> bool:
    """Return whether a value is a number of this kind, such as `Real`; true and false are none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _check_header(name: str, value: str | None) -> None:
    """Raise `InvalidInputError` for a value that no header can hold, without showing it: it may be a key."""
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(f"{name}: is no text, but {type(value).__name__}; give a text.")
    if value is not None and not (value.isascii() and value.isprintable()):
        raise InvalidInputError(
            f"{name}: has a line break or another character that is not printable ASCII; remove it."
        )
    if value is not None and value != value.strip():
        raise InvalidInputError(f"{name}: begins or ends with a blank; remove it.")


def _check(operation: Operation, given: Mapping[str, Any]) -> None:
    """Raise `TypeError` for missing or unknown parameters, which a server may ignore."""
    known = operation.over_http
    unknown = [name for name in given if name not in known]
    missing = [one for one in known if one not in given and operation.params.model_fields[one].is_required()]
    if unknown or missing:
        fault = f"has no parameter {', '.join(unknown)}" if unknown else f"needs {', '.join(missing)}"
        hint = " For another namespace, use memory.namespace('…')." if "namespace" in unknown else ""
        raise TypeError(f"{operation.name} {fault}; it takes {', '.join(known)}.{hint}")


def _without_defaults(value: Any) -> Any:
    """Return a value where parameter objects, such as facts in a list, have only the fields that were given."""
    if isinstance(value, Params):
        return value.given()
    if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence | ValuesView | Iterator):
        return value
    return [_without_defaults(one) for one in value]


def answer(response: httpx.Response, kind: type[Parsed], request: Call) -> Parsed:
    """Return the answer of a response to a request, and note its position in the log.

    Raises:
        EbbError: the response is an error, or no answer of Ebb.
    """
    request.server.written.note(response.headers.get(HEADER))
    if not response.is_success:
        raise error_of(response, request.names)
    try:
        return kind.model_validate_json(response.content)
    except ValidationError:
        raise EbbError(_foreign(response)) from None


def _foreign(response: httpx.Response) -> str:
    """Return the message about a response that is not from Ebb, with the beginning of its text."""
    shown = response.text[:SHOWN]
    return f"{response.url.host} answered {response.status_code} and is perhaps not Ebb: {shown!r}"


def _detail(problem: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return what is wrong. Parameters have the names that the caller gave, without their place in the HTTP request."""
    faults = [PLACED.sub(lambda found: names.get(found[1], found[1]), one) for one in problem.get("errors", ())]
    return f"{'; '.join(faults)}." if faults else str(problem["detail"])


def error_of(response: httpx.Response, names: Mapping[str, str] | None = None) -> EbbError:
    """Return the error of a response, with parameters renamed, or the beginning of its text if it is not from Ebb."""
    if response.has_redirect_location:
        place = response.headers["location"]
        return EbbError(f"{response.url.host} redirects to {place!r}; give the address of Ebb there as `url`.")
    try:
        problem = response.json()
        detail, task = _detail(problem, names or {}), str(problem.get("task") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        problem, detail, task = {}, _foreign(response), ""
    kind = OlderWorkersError if problem.get("type") == OLDER_WORKERS else kind_of(response.status_code)
    if not problem and (response.is_redirect or issubclass(kind, NotFoundError | ConflictError)):
        return EbbError(detail)  # another server says nothing about facts or the input
    error = LateError(detail, task) if kind is LateError else kind(detail)
    asked = response.headers.get("retry-after", "")
    if isinstance(error, UnavailableError) and asked.isdecimal():
        error.retry_after = float(asked)
    return error
