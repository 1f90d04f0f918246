"""Rendering of templates with a content security policy, and errors as pages."""

import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ebb.contract.faults import fault
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from api.http.dashboard import formats
from api.http.dashboard.visitors import KEY
from api.http.problems import headers_of, status_of
from workers.errors import EbbError

log = logging.getLogger(__name__)

NAVIGATION = (
    ("Overview", "/"),
    ("Facts", "/dashboard/facts"),
    ("Recall", "/dashboard/recall"),
    ("Forecast", "/dashboard/forecast"),
    ("Relations", "/dashboard/relations"),
    ("Decay runs", "/dashboard/runs"),
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
TEMPLATES.filters |= formats.FILTERS

ADVICE = {
    HTTPStatus.FORBIDDEN: "Sign in with a key that may do this, or open the dashboard at 127.0.0.1.",
    HTTPStatus.NOT_FOUND: "It may have been purged, or it belongs to another namespace.",
    HTTPStatus.TOO_MANY_REQUESTS: "Try again later. If this happens often, start more workers.",
    HTTPStatus.SERVICE_UNAVAILABLE: "No stored fact is lost. This page works again when all parts run.",
    HTTPStatus.GATEWAY_TIMEOUT: ("No worker is free, or the database does not answer. No stored fact is lost."),
}
"""Advice for a status, shown below the message of the error."""


def page(request: Request, template: str, status: int = HTTPStatus.OK, **content: Any) -> HTMLResponse:
    """Return a page with the navigation, the visitor and the version."""
    known = {
        "navigation": NAVIGATION,
        "path": request.url.path,
        "visitor": getattr(request.state, "caller", None),
        "open_to_everyone": False,
        "version": version("ebb-server"),
        "status": int(status),
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(known | content), status, HEADERS)


def router() -> APIRouter:
    """Return a router for pages, whose errors are pages as well; OpenAPI leaves it out."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


class PageRoute(APIRoute):
    """A route that answers errors with pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request, which always answers with a page."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except EbbError as error:
                return faulty(request, status_of(error), str(error))
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
        wanted = request.url.path if request.method == "GET" else "/"
        response = page(request, "sign_in.html", status, said=said if KEY in request.cookies else "", next=wanted)
    else:
        advice = ADVICE.get(status, "")
        response = page(request, "error.html", status, title=status.phrase, said=said, advice=advice)
    response.headers.update(headers_of(status))
    return response
