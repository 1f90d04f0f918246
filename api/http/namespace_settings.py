"""Routes of a namespace's settings: how its memory is kept, where that differs from the `EBB_` settings."""

from typing import Any

from fastapi import APIRouter

from api.http import schemas
from api.http.dispatch import ACCEPTED, Admin, Reader
from api.http.route import Route

routes = APIRouter(prefix="/memory/settings", tags=["settings"], route_class=Route)


@routes.get("", response_model=schemas.NamespaceSettings)
def settings(memory: Reader) -> dict[str, Any]:
    """Return which settings hold in the namespace, and which of them it has set itself."""
    return memory.settings()


@routes.patch("", response_model=schemas.NamespaceSettings, responses=ACCEPTED)
def choose(wish: schemas.SettingsRequest, memory: Admin) -> dict[str, Any]:
    """Set some settings and unset others; the next pass looks at the facts by that."""
    return memory.settings(**wish.arguments())
