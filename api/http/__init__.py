"""HTTP: the door for programs on other machines, and in other languages. `uvicorn api.http:app` serves it."""

from api.http.app import app

__all__ = ["app"]
