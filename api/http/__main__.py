"""Run the HTTP server: `ebb api`."""

import gc
import sys
from contextlib import closing

import uvicorn

from api.http.door import Door
from api.http.limits import PatientProtocol
from workers import logs
from workers.errors import EbbError
from workers.settings import Settings

STOP_SECONDS = 10
GARBAGE_THRESHOLD = 50_000
"""Allocations between two garbage collections: with Python's 700, a large body causes hundreds of them."""
MOST_CONNECTIONS = 1_000
"""Limit of concurrent connections; more are answered 503."""


def main() -> None:
    """Listen at EBB_HOST and EBB_PORT until a signal."""
    try:
        settings = Settings.from_environment()
        with closing(Door(settings)) as door:
            door.check()  # also when the app starts, but there the server prints a traceback
    except EbbError as error:
        sys.exit(f"ebb: {error}")
    logs.configure(settings)
    gc.set_threshold(GARBAGE_THRESHOLD)
    uvicorn.run(
        "api.http:app",
        host=settings.host,
        port=settings.port,
        http=PatientProtocol,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


if __name__ == "__main__":
    main()
