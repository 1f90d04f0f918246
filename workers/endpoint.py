"""HTTP client for OpenAI-compatible servers: time limits, retries, and errors with advice."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from workers.errors import AwayError, EbbError, SettingsError
from workers.threads import within

ATTEMPTS = 5
BUDGET_SECONDS = 20.0
"""Limit for all attempts and pauses of a request, well below a task's own time limit."""

SLACK_SECONDS = 0.5
"""Time after which an attempt ends that the time limits of its socket have not ended, because each read was quick."""

LONGEST_ANSWER = 1 << 28
"""Bytes of an answer, whatever was asked; 2,048 vectors of 3,072 numbers are half of it."""

ENVELOPE = 1 << 20
"""Bytes of an answer beside what was asked for, such as what the server says about itself."""

LONGEST_REFUSAL = 1 << 16
"""Bytes that are read of a refusal."""

RETRIED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
REFUSES_ALL = {
    HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND,
    HTTPStatus.TOO_MANY_REQUESTS,
}  # fmt: skip
"""Status codes that concern every request, not the text that was sent."""

UNCONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Failures before the request was sent."""

ADVICE: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "Check {settings}_KEY, or OPENAI_API_KEY where that is not set.",
    HTTPStatus.FORBIDDEN: "Check {settings}_KEY and what it may use.",
    HTTPStatus.NOT_FOUND: "Check {settings}_URL (most end in /v1) and {settings}_MODEL.",
    HTTPStatus.TOO_MANY_REQUESTS: "Its rate limit or quota is used up: wait, or raise the limit.",
}
EXCERPT = 200
"""Characters of a server's answer quoted in a message."""

_backoff = wait_exponential(multiplier=0.5, max=8) + wait_random(0, 0.5)


@dataclass(frozen=True, slots=True)
class Service:
    """A service of a server: its path, the prefix of its settings, and its error classes.

    `when_slow` is the advice on timeouts, `advice` that on status codes of its own. `away` is the error of a server
    that would fail every request, `failure` that of others.
    """

    path: str
    settings: str
    failure: type[EbbError]
    away: type[AwayError]
    when_slow: str
    advice: Mapping[int, str]

    def advise(self, status: int) -> str:
        """Return the advice on an answer with that status."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return "The server itself fails: see its log or status page."
        advice = {**ADVICE, **self.advice}
        return advice.get(status, ADVICE[HTTPStatus.NOT_FOUND]).format(settings=self.settings)


class TransientError(AwayError):
    """A failure that a retry may solve."""


class Endpoint:
    """One service of one server; owns its connections and may be shared by threads.

    One attempt takes at most `timeout` seconds, all together at most `BUDGET_SECONDS` or one `timeout`, whichever is
    longer. A pause that would exceed this is not started.
    """

    def __init__(self, service: Service, url: str, key: str, timeout: float, sleep: Callable[[float], None]) -> None:
        self._service = service
        self._url = _checked_url(url, service)
        self._key = _checked_key(key, service)
        self._timeout = timeout
        self._budget = max(BUDGET_SECONDS, timeout)
        self._sleep = sleep

    def __str__(self) -> str:
        """Return the URL without credentials."""
        return str(self._url.copy_with(userinfo=b"", query=None))

    def post(
        self, payload: Mapping[str, Any], seconds: float | None = None, *, longest: int, attempts: int = ATTEMPTS
    ) -> bytes:
        """Return the body of the server's answer, within `seconds` if given.

        What was asked for takes at most `longest` bytes. A body that is clearly longer is not read to its end.

        Raises:
            EbbError: the service's own error: the server refused, or every attempt failed.
        """
        budget = self._budget if seconds is None else min(seconds, self._budget)
        deadline, longest = time.monotonic() + budget, min(ENVELOPE + longest, LONGEST_ANSWER)
        retrying = Retrying(
            sleep=self._sleep,
            wait=_pause,
            stop=stop_after_attempt(attempts) | stop_before_delay(budget),
            retry=retry_if_exception_type(TransientError),
            reraise=True,
        )
        try:
            return retrying(self._attempt, payload, deadline, longest)
        except TransientError as error:
            made = retrying.statistics["attempt_number"]
            message = f"{error} Attempts: {made}."
            raise self._service.away(message, error.retry_after, doubtful=error.doubtful) from None

    def excerpt(self, text: str) -> str:
        """Return the start of a server's answer on one line, without the key and a full stop at its end."""
        line = " ".join(text.encode(errors="replace").decode().split()).rstrip(".")
        if self._key:
            for shown in (self._key, self._key.replace("/", "\\/")):  # as some write it in JSON
                line = line.replace(shown, "***")
        return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        if (client := self.__dict__.pop("_client", None)) is not None:
            client.close()

    @cached_property
    def _client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # of one beyond ASCII no header can be made
        return httpx2.Client(headers=headers, cookies=no_cookies)

    def _attempt(self, payload: Mapping[str, Any], deadline: float, longest: int) -> bytes:
        # An attempt may start at the very end of the budget, and a socket timeout must be above 0.
        seconds = max(min(self._timeout, deadline - time.monotonic()), 0.001)
        try:
            return within(seconds + SLACK_SECONDS, lambda: self._exchange(payload, seconds, longest))
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise TransientError(
                f"{self} did not answer within {seconds:.3g} s. Check that it is up; {self._service.when_slow}.",
                doubtful=not isinstance(error, UNCONNECTED),
            ) from None
        except httpx2.RequestError as error:
            raise TransientError(
                f"No answer from {self}: {self.excerpt(str(error) or type(error).__name__)}. "
                f"Check {self._service.settings}_URL, and that the server is up.",
                doubtful=not isinstance(error, UNCONNECTED),
            ) from None

    def _exchange(self, payload: Mapping[str, Any], seconds: float, longest: int) -> bytes:
        end = time.monotonic() + seconds
        body = bytearray()
        with self._client.stream("POST", self._url, json=payload, timeout=seconds) as response:
            if response.status_code != HTTPStatus.OK:
                longest = LONGEST_REFUSAL
            # The client's timeout is per read; a body that arrives slowly must end as well.
            for chunk in response.iter_bytes():
                body += chunk
                if time.monotonic() > end:
                    raise httpx2.ReadTimeout("the body came too slowly", request=response.request)
                if len(body) > longest:
                    break
        if response.status_code != HTTPStatus.OK:
            raise self._refusal(response, body.decode(errors="replace"))
        if len(body) > longest:
            said = f"{self} answered with more than {longest >> 20} MiB, too much for what it was asked"
            raise self._service.away(f"{said}. Check {self._service.settings}_URL.", doubtful=True)
        return bytes(body)

    def _refusal(self, response: httpx2.Response, body: str) -> EbbError:
        status = response.status_code
        # An answer about the key may quote part of it.
        about_key = status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
        said = "" if about_key else f": {self.excerpt(_error_message(body))}"
        message = f"{self} answered {status} {response.reason_phrase}{said}. {self._service.advise(status)}"
        if _may_heal(status, body):
            after = _retry_after(response.headers.get("retry-after", ""))
            doubtful = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.SERVICE_UNAVAILABLE
            return TransientError(message, after, doubtful=doubtful)
        if status in REFUSES_ALL:
            return self._service.away(message)
        return self._service.failure(message)


def _may_heal(status: int, body: str) -> bool:
    """Return whether a retry may help; an account without credit answers 429 permanently."""
    return (status in RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR) and "insufficient_quota" not in body


def _pause(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: as the server asked, else exponential backoff."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, TransientError) else None
    return _backoff(state) if asked is None else asked


def _retry_after(header: str) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date (RFC 9110, 10.2.3)."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return seconds if seconds > 0 else None


def _error_message(body: str) -> str:
    """Return the `error.message` of an API error, or the whole body."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return body


def _checked_url(url: str, service: Service) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url.rstrip("/").removesuffix(service.path) + service.path)
    except httpx2.InvalidURL:
        parsed = httpx2.URL()
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        given = "" if "@" in url else f"={url.partition('?')[0]!r}"  # before an @, and after a ?, may be a password
        raise SettingsError(
            f"{service.settings}_URL{given} is no URL of a server. Give its base, such as http://localhost:11434/v1."
        )
    return parsed


def _checked_key(key: str, service: Service) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(
            f"{service.settings}_KEY has characters that no API key has: blanks, line ends, or beyond ASCII. "
            "Copy it again from where it was issued."
        )
    return key
