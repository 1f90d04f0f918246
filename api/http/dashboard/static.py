"""Style sheet, scripts and charts; pages load nothing from other hosts."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

routes = APIRouter(include_in_schema=False)

FILES = StaticFiles(directory=Path(__file__).parent / "static")


@routes.get("/dashboard/static/{path:path}")
async def static(path: str, request: Request) -> Response:
    """Return a file; the browser revalidates it before each use."""
    response = await FILES.get_response(path, request.scope)
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
