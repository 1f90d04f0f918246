"""Serve the API as the settings say: `python -m api.http`."""

import sys

import uvicorn

from workers import logs
from workers.errors import SettingsError
from workers.settings import Settings

STOP_SECONDS = 10


def main() -> None:
    """Listen at EBB_HOST and EBB_PORT until a signal."""
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"ebb: {error}")
    logs.configure(settings)
    uvicorn.run(
        "api.http:app",
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


if __name__ == "__main__":
    main()
