"""The HTTP API, for programs on other machines and in other languages."""

from api.http.app import app

__all__ = ["app"]
