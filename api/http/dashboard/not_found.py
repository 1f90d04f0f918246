"""The page for addresses that do not exist."""

from http import HTTPStatus

from fastapi import Request, Response

from api.http.dashboard.rendering import page, router

routes = router()


@routes.get("/dashboard/{path:path}")
def not_found(request: Request) -> Response:
    """Answer 404."""
    said = f"{request.url.path}: there is no such page."
    return page(request, "error.html", HTTPStatus.NOT_FOUND, title=HTTPStatus.NOT_FOUND.phrase, said=said, advice="")
