"""Run the HTTP server: `ebb api`."""

import gc
import sys
from contextlib import closing

gc.disable()  # while modules are loaded, which create many objects and little garbage

import uvicorn

from api.http.door import Door
from api.http.limits import LONGEST_HEAD, PatientProtocol
from workers import GARBAGE_THRESHOLD, logs
from workers.errors import EbbError
from workers.settings import Settings

STOP_SECONDS = 10


def main() -> None:
    """Listen at EBB_HOST and EBB_PORT until a signal."""
    gc.freeze()  # what was loaded is skipped by each collection
    gc.set_threshold(GARBAGE_THRESHOLD)
    gc.enable()
    try:
        settings = Settings.from_environment()
        with closing(Door(settings)) as door:
            door.check()  # also when the app starts, but there the server prints a traceback
    except EbbError as error:
        sys.exit(f"ebb: {error}")
    logs.configure(settings)
    uvicorn.run(
        "api.http:app",
        host=settings.host,
        port=settings.port,
        http=PatientProtocol,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


if __name__ == "__main__":
    main()
