"""`ebb migrate`: bring a database to this version's schema, before workers start there."""

from collections.abc import Callable

from api.cli import output
from api.cli.reaching import configured, located


def migrate(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Bring the database to this version's schema; again: nothing happens. `ebb up` does so by itself."""
    from workers.storage import schema  # noqa: PLC0415 - psycopg would slow down every other command

    schema.apply(configured(home).database_url or located(home).database_url)
    if as_json:
        output.print_json({"schema_version": schema.VERSION})
    else:
        output.progress(f"The schema has version {schema.VERSION}")


COMMANDS: dict[str, Callable[..., None]] = {"migrate": migrate}
