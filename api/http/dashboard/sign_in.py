"""Sign in with a key, sign out, and choose a namespace if no key is needed."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from api.http.callers import identify
from api.http.dashboard import visitors
from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.problems import RefusedError
from workers.validation import namespace_name

routes = router()

MOST_NAMES = 100
FORM = [Depends(visitors.check_origin)]


@routes.get("/dashboard/sign-in")
def ask(request: Request, next: Annotated[str, Query()] = "/") -> HTMLResponse:  # noqa: A002 - the usual name
    """Show the form for a key."""
    return page(request, "sign_in.html", said="", next=_here(next))


@routes.post("/dashboard/sign-in", dependencies=FORM)
def sign_in(
    request: Request,
    key: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002 - the usual name
) -> Response:
    """Accept a key with the scope `read` and redirect to the wanted page; ask again for any other."""
    try:
        identify(request, key.strip(), None).check("read")
    except RefusedError as error:
        return page(request, "sign_in.html", error.status, said=str(error), next=_here(next))
    response = RedirectResponse(_here(next), HTTPStatus.SEE_OTHER)
    visitors.sign_in(request, response, key.strip())
    return response


@routes.post("/dashboard/sign-out", dependencies=FORM)
def sign_out() -> Response:
    """Delete the cookie with the key."""
    response = RedirectResponse("/dashboard/sign-in", HTTPStatus.SEE_OTHER)
    visitors.sign_out(response)
    return response


@routes.get("/dashboard/namespaces")
def namespaces(request: Request, memory: Reading, prefix: Annotated[str, Query(max_length=128)] = "") -> HTMLResponse:
    """List the namespaces; a key shows only its own."""
    if memory.caller.key is not None:
        return page(request, "namespaces.html", names=[memory.namespace], prefix="", more=False)
    found = memory.namespaces(prefix, MOST_NAMES + 1)["namespaces"]
    return page(request, "namespaces.html", names=found[:MOST_NAMES], prefix=prefix, more=len(found) > MOST_NAMES)


@routes.post("/dashboard/namespaces", dependencies=FORM)
def choose(memory: Reading, namespace: Annotated[str, Form()] = "") -> Response:
    """Choose another namespace, if no key is used."""
    name = namespace_name(namespace.strip())
    if memory.caller.key is not None and name != memory.namespace:
        raise RefusedError(HTTPStatus.FORBIDDEN, f"Your key opens the namespace {memory.namespace!r} only.")
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    visitors.choose(response, name)
    return response


def _here(path: str) -> str:
    """Return a path of this dashboard; any other target becomes the overview."""
    own = path == "/" or (path.startswith("/dashboard/") and "\\" not in path and "\n" not in path)
    return path if own else "/"
