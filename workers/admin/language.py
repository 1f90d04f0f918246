"""Language: all words of a database are stemmed in one, chosen at its first start; another one means a new index."""

import logging
from collections.abc import Callable
from datetime import datetime

from workers.admin import search_indexes
from workers.context import Context
from workers.errors import LanguageMismatchError, SettingsError
from workers.storage import languages, namespaces
from workers.storage.connection import Connection, lift_limits, transaction

log = logging.getLogger(__name__)


def check_language(context: Context) -> None:
    """Make the configured language the database's own while it is empty, and refuse another one later.

    Raises:
        SettingsError: the server has no such text search configuration; the message names those that it has.
        LanguageMismatchError: the words of stored facts are stemmed in another one; the message says what to do.
    """
    own = context.settings.language
    with transaction(context.database_url) as db:
        _check_installed(db, own)
        if languages.current(db) == own:
            return
        stored = languages.current(db, lock=True)
        if stored != own and languages.holds_facts(db):
            raise LanguageMismatchError(
                f"The database's words are stemmed as {stored}; configured is {own}. Set EBB_LANGUAGE back to "
                f"{stored}, or make the text index anew: `ebb reindex`, or `ebb up --reindex` where nothing runs."
            )
        languages.choose(db, own)
        log.info("words are stemmed as %s", own)


def reindex(context: Context, now: datetime, on_counted: Callable[[int, int], None] = lambda *_: None) -> int:
    """Make the words of all facts anew in the configured language, and count them; return how many facts there are.

    Nobody reads or stores until the words are made; counting them namespace by namespace hinders nobody.

    Raises:
        SettingsError: the server has no such text search configuration; nothing was changed.
    """
    with transaction(context.database_url) as db:
        lift_limits(db)
        _check_installed(db, context.settings.language)
        languages.current(db, lock=True)
        languages.choose(db, context.settings.language)
        languages.rebuild(db)
        names = namespaces.all_names(db)
    facts = 0
    for place, name in enumerate(names, start=1):
        facts += search_indexes.count_lexemes(context, name, now)
        on_counted(place, len(names))
    return facts


def _check_installed(db: Connection, name: str) -> None:
    known = languages.installed(db)
    if name not in known:
        raise SettingsError(
            f"EBB_LANGUAGE={name!r} is not allowed: the server has no such text search configuration. "
            f"It has {', '.join(known)}."
        )
