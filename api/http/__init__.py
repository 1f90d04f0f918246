"""The HTTP API, for programs in other languages and on other machines: all routes, and the checks before them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import FastAPI

from api.http import dashboard, dispatch, mcp, monitoring, problems, routes
from api.http.door import Door
from api.http.limits import THREADS, BodyLimit
from api.http.monitoring import Watch
from workers import tracing
from workers.errors import EbbError
from workers.settings import Settings

GROUPS = (routes, monitoring, mcp, *dashboard.PAGES)
"""Modules of routes, in the order of the OpenAPI document."""

EXAMPLES = Path(__file__).with_name("examples.json")
DESCRIPTION = """
Long-term memory for AI agents that fades unless it is used. Every route of `/memory` is about one namespace: that of
the key, or of the header `X-Ebb-Namespace` where no key is needed. Writes answer when they are committed, or with
`?wait=false` at once. Errors are problem details (RFC 9457).
"""


@asynccontextmanager
async def _open(app: FastAPI) -> AsyncIterator[None]:
    """Read and check the settings, and keep the connections open while the process runs."""
    try:
        door = Door(Settings.from_environment())
        await to_thread.run_sync(door.check)
        await to_thread.run_sync(door.prepare)
    except EbbError as error:
        raise SystemExit(f"ebb: {error}") from None
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    app.state.door = door
    if door.settings.openmemory_api:
        from api.http import openmemory  # noqa: PLC0415 - its rates of decay load numpy

        app.include_router(openmemory.routes)
        app.state.routes += openmemory.routes.routes
    tracing.start("ebb-api")
    yield
    door.close()
    await to_thread.run_sync(tracing.stop)


class Api(FastAPI):
    """The app; its OpenAPI document also contains the schema of a problem, which no route returns as a model.

    Each route has an example of its answer; a test compares the examples with real answers.
    """

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        if self.openapi_schema is None:
            document = super().openapi()
            document["components"]["schemas"].setdefault("Problem", problems.Problem.model_json_schema())
            _show_answers(document["paths"])
        return super().openapi()


def _show_answers(paths: dict[str, Any]) -> None:
    answers = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    for path, operations in paths.items():
        for method, operation in operations.items():
            answer = answers.get(f"{method.upper()} {path}")
            contents = [operation["responses"].get(status, {}).get("content", {}) for status in ("200", "201")]
            for content in contents:
                if answer is not None and "application/json" in content:
                    content["application/json"]["example"] = answer


def make_app() -> FastAPI:
    """Return the app with all routes; it reads its settings when it starts."""
    own = Api(
        title="Ebb",
        version=version("ebb-server"),
        description=DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=_open,
        docs_url=None,
        redirect_slashes=False,  # `problems` does, by an address that also holds behind a proxy
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # its spans have the query of a URL
        responses=problems.responses(400, 401, 403, 413, 422, 429, 500, 503, 504),
    )
    own.add_middleware(BodyLimit)
    own.add_middleware(Watch)
    problems.register(own)
    own.add_exception_handler(dispatch.WriteAccepted, dispatch.accepted)
    for group in GROUPS:
        own.include_router(group.routes)
    own.state.routes = [route for group in GROUPS for route in group.routes.routes]
    return own


app = make_app()
