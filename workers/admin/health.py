"""Health: whether what only workers reach is there, the database and the embedder."""

from workers.context import Context
from workers.coordination import embedder_pause, signals
from workers.errors import EbbError
from workers.storage import probe, schema
from workers.storage.connection import connect

OK = "ok"


def health(context: Context) -> dict[str, str]:
    """Return for the database and the embedder that they are well, or what is the matter."""
    return {"database": _database(context), "embedder": _embedder(context)}


def _database(context: Context) -> str:
    """Ask, and try a write, on a connection of its own: the pool would wait for the server to come back."""
    try:
        with connect(context.database_url) as db:
            schema.check(db)
            probe.try_write(db)
    except EbbError as error:
        return str(error)
    return OK


def _embedder(context: Context) -> str:
    """Embed a word, but not during a pause, and no more often than once a minute, for that may cost money."""
    pause = embedder_pause.state(context.redis)
    if pause.seconds:
        return embedder_pause.said(pause)
    known = signals.embedder_said(context.redis)
    if known is not None:
        return known
    try:
        context.embedder.embed(["health"], retry=False)
        said = OK
    except EbbError as error:
        said = str(error)
    signals.note_embedder(context.redis, said)
    return said
