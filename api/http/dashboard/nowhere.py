"""The page that is shown where there is none."""

from fastapi import Request, Response

from api.http.dashboard.rendering import router
from workers.errors import NotFoundError

routes = router()


@routes.get("/dashboard/{path:path}")
def nowhere(request: Request) -> Response:
    """Say that there is no such page."""
    raise NotFoundError(f"{request.url.path}: there is no such page.")
