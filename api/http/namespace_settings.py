"""Routes of a namespace's settings, where they differ from the `EBB_` settings."""

from typing import Any

from fastapi import APIRouter

from api.http import schemas
from api.http.dispatch import ACCEPTED, Admin, Reader
from api.http.route import Route

routes = APIRouter(prefix="/memory/settings", tags=["settings"], route_class=Route)


@routes.get("", response_model=schemas.NamespaceSettings)
def settings(memory: Reader) -> dict[str, Any]:
    """Return the effective settings of the namespace, and which of them are its own."""
    return memory.settings()


@routes.patch("", response_model=schemas.NamespaceSettings, responses=ACCEPTED)
def choose(wish: schemas.SettingsRequest, memory: Admin) -> dict[str, Any]:
    """Set some settings and unset others; they apply from the next pass on."""
    return memory.settings(**wish.arguments())
