"""Help: the pages of `api/docs`, open to everyone and readable while PostgreSQL, Redis and workers are down."""

from http import HTTPStatus

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from api.http.dashboard import markdown_pages
from api.http.dashboard.rendering import page, router

routes = router()

IMAGES = StaticFiles(directory=markdown_pages.FOLDER / "images")


@routes.get("/help")
def index(request: Request) -> Response:
    """Show the table of contents."""
    return _show(request, markdown_pages.INDEX)


@routes.get("/help/images/{path:path}")
async def image(path: str, request: Request) -> Response:
    """Return an image of a page."""
    response = await IMAGES.get_response(path, request.scope)
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@routes.get("/help/{name}")
def subject(name: str, request: Request) -> Response:
    """Show one page."""
    return _show(request, name)


def _show(request: Request, name: str) -> Response:
    found = markdown_pages.read(name)
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"There is no help page {name!r}. See /help for all of them.")
    return page(request, "help.html", article=found, contents=markdown_pages.contents(), open_to_everyone=True)
