"""The page that is shown where there is none."""

from http import HTTPStatus

from fastapi import Request, Response

from api.http.dashboard.rendering import page, router

routes = router()


@routes.get("/dashboard/{path:path}")
def nowhere(request: Request) -> Response:
    """Say that there is no such page."""
    said = f"{request.url.path}: there is no such page."
    return page(request, "error.html", HTTPStatus.NOT_FOUND, title=HTTPStatus.NOT_FOUND.phrase, said=said, advice="")
