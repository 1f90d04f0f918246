"""Style sheet, scripts and charts, which come with Ebb; pages load nothing from anywhere else."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

routes = APIRouter(include_in_schema=False)

FILES = StaticFiles(directory=Path(__file__).parent / "static")


@routes.get("/dashboard/static/{path:path}")
async def static(path: str, request: Request) -> Response:
    """Return a file; the browser asks again only whether it has changed."""
    response = await FILES.get_response(path, request.scope)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
