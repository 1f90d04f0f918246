"""Rendering: templates with a content security policy, formats, error pages, and static files."""

import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ebb.contract.faults import fault
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from api.http.problems import headers_of, title_of, until_stopped, without_addresses, without_slash
from workers.core.text import beginning
from workers.errors import EbbError, InvalidInputError, UnavailableError

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
MONTH, YEAR = 30.44 * DAY, 365.25 * DAY
SPANS = ((YEAR, "year"), (MONTH, "month"), (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"))
A_MOMENT = 45.0
TWICE = 2
LEAST_SHARE = 0.01
DASH = "\N{EN DASH}"
CODE = re.compile("`([^`]+)`")


def number(value: float | None) -> str:
    """Return a number with separated thousands, or a dash for None."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def share(value: float | None) -> str:
    """Return a share in [0, 1] as a percentage, of which 0 means nothing at all."""
    if value is None:
        return DASH
    return "< 1 %" if 0 < value < LEAST_SHARE else f"{value * 100:.0f} %"


def typed_share(field: str, text: str) -> float:
    """Return the fraction or percentage that was typed into a field."""
    try:
        value = float(text.replace("%", "").strip())
    except ValueError:
        raise InvalidInputError(f"{field}: {text.strip()[:40]!r} is no number; give one from 0 to 1.") from None
    return value / 100 if "%" in text else value


def milliseconds(value: float | None) -> str:
    """Return a duration in milliseconds or in a larger unit."""
    if value is None:
        return DASH
    return f"{value:,.0f} ms" if value < 1_000 else span(value / 1_000)  # noqa: PLR2004 - a second


def span(seconds: float) -> str:
    """Return a span of time in the largest unit that fits twice, so that 19 months are not a year."""
    for length, name in SPANS:
        times = int(seconds / length)
        if times >= TWICE or seconds == length or (times and length == MINUTE):
            return f"{times} {name}" if times == 1 else f"{times} {name}s"
    return f"{int(seconds)} s" if seconds >= 10 else f"{seconds:.2g} s"  # noqa: PLR2004 - digits worth showing


def instant(value: Any) -> datetime | None:
    """Return the instant of an ISO 8601 string or of epoch seconds."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)


def when(value: Any) -> Markup:
    """Return an instant to the minute in UTC; the browser converts it to its own zone."""
    at = instant(value)
    if at is None:
        return escape(DASH)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC")


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; a longer one is cut, between words if its language has spaces."""
    if len(text) <= most:
        return text
    words = beginning(text, most).rpartition(" ")[0]
    return f"{words if len(words) > most / 2 else beginning(text, most - 1)}…"


def with_code(text: str) -> Markup:
    """Return text whose parts between backticks are shown as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - the text is escaped


def ago(value: Any) -> Markup:
    """Return the distance of an instant from now, with the instant as its title."""
    at = instant(value)
    if at is None:
        return escape(DASH)
    seconds = (datetime.now(UTC) - at).total_seconds()
    away = "just now" if abs(seconds) < A_MOMENT else f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"
    exact = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), exact, away)


def is_past(value: Any) -> bool:
    """Return whether an instant has passed; one that is not known has not."""
    at = instant(value)
    return at is not None and at <= datetime.now(UTC)


def elapsed(run: Mapping[str, Any]) -> str:
    """Return the duration of a run from its plan to its end, or a dash."""
    began, ended = instant(run["started_at"]), instant(run["finished_at"])
    return DASH if began is None or ended is None else milliseconds((ended - began).total_seconds() * 1_000)


DETAILS: Mapping[str, Callable[[Any], str]] = {
    "content_salience": lambda value: f"salience of its content {share(value)}",
    "since": lambda value: Markup("since {}").format(when(value)),
    "times": lambda value: f"{number(value)} time{'' if value == 1 else 's'}",
    "until": lambda value: "without end" if value is None else Markup("until {}").format(when(value)),
}
"""Details of events in words, by their names."""


def detail(value: Any, name: str) -> str:
    """Return a detail of an event in words; one of an imported history may be anything, and is shown as it is."""
    if name in DETAILS:
        with suppress(TypeError, ValueError, OverflowError, OSError):
            return DETAILS[name](value)
    return f"{name.replace('_', ' ')} {value}"


FILTERS = (shortened, with_code, number, share, milliseconds, span, elapsed, when, ago, is_past, detail)

log = logging.getLogger(__name__)

FACT = re.compile(r"[0-9a-f-]{36}")

SESSION = "ebb_session"
"""The cookie with the token of a session."""

VISIT = "ebb_visit"
"""The cookie of a visitor without a session, which forms are tied to."""

COOKIES = {"path": "/", "httponly": True, "samesite": "strict"}
DONE = {
    "forget": ("Forgotten.", "restore"),
    "restore": ("Restored.", ""),  # forgetting it on request would erase for good what ended by itself
    "restore-asked": ("Restored.", "forget"),
    "pin": ("Pinned: it does not fade.", "unpin"),
    "unpin": ("No longer pinned.", "repin"),
    "repin": ("Pinned again, as before.", "unpin"),
    "edit": ("Changed.", "unedit"),
    "unchanged": ("Nothing to change: the fact is as it was.", ""),
    "unedit": ("Changed back.", "unedit"),
    "resolve": ("Settled: the other fact is superseded.", "restore"),
    "both": ("Both facts are accepted.", ""),
    "keep": ("Kept, as if it had been stored now.", ""),
    "let-go": ("Forgotten.", "restore"),
    "not-held": ("Nothing changed: the forget limit does not hold this fact any more.", ""),
    "expire-key": ("Changed; until the key expires this can be changed again.", ""),
    "expire-own-key": ("Changed. This is your own key: from now on you can give it an earlier end only.", ""),
    "revoke-key": ("Revoked. A revoked key stays revoked; create another one instead.", ""),
}
"""The message after each action, and the action that undoes it."""

NAVIGATION = (
    ("Overview", "/"),
    ("Facts", "/dashboard/facts"),
    ("Recall", "/dashboard/recall"),
    ("Last contexts", "/dashboard/contexts"),
    ("Forecast", "/dashboard/forecast"),
    ("Relations", "/dashboard/relations"),
    ("Forgotten", "/dashboard/forgotten"),
    ("Contradictions", "/dashboard/contradictions"),
    ("Decay runs", "/dashboard/runs"),
    ("Keys and limits", "/dashboard/keys"),
    ("Help", "/help"),
)
"""The entries of the menu, in this order."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {one.__name__: one for one in FILTERS}

ADVICE = {
    HTTPStatus.FORBIDDEN: "If your key may not do this, sign in with one that may.",
    HTTPStatus.NOT_FOUND: "It may have been purged, or it belongs to another namespace.",
    HTTPStatus.TOO_MANY_REQUESTS: "Try again later. If this happens often, start more workers.",
    HTTPStatus.SERVICE_UNAVAILABLE: "No stored fact is lost. This page works again when all parts run.",
    HTTPStatus.GATEWAY_TIMEOUT: ("No worker is free, or the database does not answer. No stored fact is lost."),
}
"""Advice for a status, shown below the message of the error."""


def page(request: Request, template: str, status: int = HTTPStatus.OK, **content: Any) -> HTMLResponse:
    """Return a page with the navigation, the visitor, the version, and a token for its forms."""
    visitor = getattr(request.state, "caller", None)
    is_new = visitor is not None and status < HTTPStatus.BAD_REQUEST and not _tied(request)
    if is_new:
        request.cookies[VISIT] = secrets.token_urlsafe(16)
    known = {
        "navigation": NAVIGATION,
        "path": request.url.path,
        "visitor": visitor,
        "writes": visitor is not None and "write" in visitor.scopes,
        "token": form_token(request),
        "done": _done(request),
        "again": _without_done(request),
        "open_to_everyone": False,
        "version": version("ebb-server"),
        "status": int(status),
    }
    response = HTMLResponse(TEMPLATES.get_template(template).render(known | content), status, HEADERS)
    if is_new:
        response.set_cookie(VISIT, request.cookies[VISIT], **COOKIES)  # type: ignore[arg-type]  # options of several types
    return response


def _tied(request: Request) -> str:
    return request.cookies.get(SESSION) or request.cookies.get(VISIT) or ""


def form_token(request: Request) -> str:
    """Return the CSRF token of this visitor's forms, which are about the namespace that their page shows."""
    namespace = getattr(getattr(request.state, "caller", None), "namespace", "")
    return hashlib.sha256(f"form {_tied(request)} {namespace}".encode()).hexdigest()


def _done(request: Request) -> dict[str, str] | None:
    """Return the message about the previous action, and its undo."""
    said, undo = DONE.get(request.query_params.get("done", ""), ("", ""))
    fact = request.query_params.get("fact", "")
    return {"said": said, "undo": undo, "fact": fact} if said and FACT.fullmatch(fact) else None


def _without_done(request: Request) -> str:
    """Return the address of this page without the message, to which its forms return."""
    given = [pair for pair in request.query_params.multi_items() if pair[0] not in ("done", "fact")]
    return f"{request.url.path}?{urlencode(given)}" if given else request.url.path


def router() -> APIRouter:
    """Return a router for pages, with error pages and without OpenAPI."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


MULTIPART = "multipart/"
NO_FORM = "A form of this page is sent as application/x-www-form-urlencoded."


class PageRoute(APIRoute):
    """A route that answers errors with pages, and takes forms as pages send them.

    Of `multipart/form-data` the sender names the encoding, and some take seconds for 64 KiB on the event loop.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request, which answers errors with pages."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            if request.headers.get("content-type", "").strip().lower().startswith(MULTIPART):
                return faulty(request, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, NO_FORM)
            try:
                with until_stopped(request):
                    return await answer(request)
            except EbbError as error:
                said = without_addresses(str(error)) if isinstance(error, UnavailableError) else str(error)
                return faulty(request, HTTPStatus(error.status), said)
            except RequestValidationError as error:
                said = "; ".join(fault(detail) for detail in error.errors())
                return faulty(request, HTTPStatus.UNPROCESSABLE_ENTITY, f"{said}.")
            except HTTPException as error:
                return faulty(request, HTTPStatus(error.status_code), str(error.detail))
            except Exception as error:
                log.exception("%s cannot be shown", request.url.path)
                said = f"{type(error).__name__}; see the log of the API."
                return faulty(request, HTTPStatus.INTERNAL_SERVER_ERROR, said)

        return answered


def faulty(request: Request, status: HTTPStatus, said: str) -> Response:
    """Return an error page, or the sign-in page if there is no valid key."""
    if status == HTTPStatus.UNAUTHORIZED:
        wanted = _address(request) if request.method == "GET" else _came_from(request) or "/"
        response = page(request, "sign_in.html", status, said=said if SESSION in request.cookies else "", next=wanted)
    else:
        response = _problem(request, status, said, ADVICE.get(status, ""))
    response.headers.update(headers_of(status))
    return response


def _problem(request: Request, status: HTTPStatus, said: str, advice: str = "") -> HTMLResponse:
    again = request.method == "GET" and status >= HTTPStatus.TOO_MANY_REQUESTS
    known = {"title": title_of(status), "said": said, "advice": advice, "try_again": again}
    return page(request, "error.html", status, back=_came_from(request), **known)


def _came_from(request: Request) -> str:
    """Return the address of the page that led to this one, if it is of this host and not this one."""
    host, _, address = request.headers.get("referer", "").partition("://")[2].partition("/")
    other = request.method == "POST" or f"/{address}" != _address(request)
    return f"/{address}" if host == request.url.netloc and other and not address.startswith(("/", "\\")) else ""


def _address(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}".removesuffix("?")


routes = APIRouter(include_in_schema=False)

FILES = StaticFiles(directory=Path(__file__).parent / "static")


@routes.get("/dashboard/static/{path:path}")
async def static(path: str, request: Request) -> Response:
    """Return a file; the browser revalidates it before each use."""
    response = await FILES.get_response(path, request.scope)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def no_page(request: Request, said: str) -> Response:
    """Return the error page for an address without a page, or lead to the address without the slash at its end."""
    if place := without_slash(request):
        return RedirectResponse(place)
    return _problem(request, HTTPStatus.NOT_FOUND, said)


def not_found(request: Request) -> Response:
    """Answer 404."""
    return no_page(request, f"{request.url.path}: there is no such page.")


routes.add_api_route("/dashboard/{path:path}", not_found, route_class_override=PageRoute)
