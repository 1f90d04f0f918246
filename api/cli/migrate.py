"""`ebb migrate`: bring a database to this version's schema, before workers start there."""

from collections.abc import Callable

from api.cli import output
from api.cli.connection import configured, located


def migrate(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Bring the database to this version's schema, with every fact in it; `ebb up` does so by itself.

    Workers of the previous version may go on meanwhile. What was interrupted goes on where it stopped, and a database
    that is up to date stays as it is.
    """
    from workers.storage import schema  # noqa: PLC0415 - psycopg would slow down every other command

    done = schema.apply(configured(home).database_url or located(home).database_url, output.progress)
    if as_json:
        output.print_json({"schema_version": schema.version(), "migrations": done})
    else:
        ran = f"{len(done)} migrations ran" if done else "nothing was to be done"
        output.progress(f"The schema has version {schema.version()}: {ran}")


COMMANDS: dict[str, Callable[..., None]] = {"migrate": migrate}
