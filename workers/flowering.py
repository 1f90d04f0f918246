"""Flower shows what tasks were sent, texts included, so it listens beyond this machine only to whom it can tell apart.

Who starts it does so by Celery's own command, and what was given there is checked as Flower loads the app.
"""

from typing import Any

import click
from celery.signals import import_modules

from workers.core.addresses import is_loopback


@import_modules.connect  # type: ignore[untyped-decorator]  # Celery comes without types
def refuse_strangers(**_: Any) -> None:
    """End a Flower that would listen beyond loopback without authentication."""
    command = click.get_current_context(silent=True)
    if command is None or command.info_name != "flower":
        return
    from tornado.options import options  # noqa: PLC0415 - workers do without

    if not (is_loopback(options.address) or options.unix_socket or options.basic_auth or options.auth):
        raise SystemExit(
            f"ebb: Flower at {options.address or 'every address'} is not allowed without authentication: everybody "
            "there could read all tasks. Give --basic-auth=USER:PASSWORD or --auth, or listen at --address=127.0.0.1."
        )
