"""The one language in which all words of the database are stemmed: a text search configuration of PostgreSQL."""

from psycopg import sql

from workers.storage.connection import Connection

CURRENT = "select name from languages"

CURRENT_LOCKED = "select name from languages for update"

INSTALLED = """
    select cfgname from pg_ts_config where pg_ts_config_is_visible(oid) and cfgname <> 'ebb_written' order by cfgname
"""

# The language's own list of stop words, if it has one, stands among the options of its dictionary for ASCII words.
STOP_WORDS = """
    select substring(dictinitoption from 'stopwords = ''([^'']+)''')
    from pg_ts_config
    join pg_ts_config_map on mapcfg = pg_ts_config.oid
    join pg_ts_dict on pg_ts_dict.oid = mapdict
    where cfgname = %(name)s and pg_ts_config_is_visible(pg_ts_config.oid) and dictinitoption like '%%stopwords%%'
    limit 1
"""

SET = """
    create or replace function stemmed(body text) returns tsvector language sql immutable parallel safe
        return to_tsvector({name}, body);
    alter text search dictionary ebb_written ({stop_words});
    update languages set name = {name};
"""

HOLDS_FACTS = "select exists (select from only facts)"

# The table is written anew as a whole, and so are its indexes; nobody reads or stores meanwhile.
REBUILD = """
    alter table facts alter column search
        set expression as (search_lexemes(namespace, text, category, entity, key, value, tags))
"""


def current(db: Connection, *, lock: bool = False) -> str:
    """Return the database's language; with `lock`, nobody changes it before the commit."""
    row = db.execute(CURRENT_LOCKED if lock else CURRENT).fetchone()
    assert row is not None  # noqa: S101 - the schema writes it
    return str(row[0])


def installed(db: Connection) -> list[str]:
    """Return all languages that the server knows."""
    return [name for (name,) in db.execute(INSTALLED)]


def choose(db: Connection, name: str) -> None:
    """Stem by an installed language from now on; what is stored must be rebuilt in the same transaction."""
    row = db.execute(STOP_WORDS, {"name": name}).fetchone()
    stop_words = sql.SQL("stopwords = {}").format(sql.Literal(row[0])) if row else sql.SQL("stopwords")
    db.execute(sql.SQL(SET).format(name=sql.Literal(name), stop_words=stop_words))


def holds_facts(db: Connection) -> bool:
    """Return whether anything is stored at all."""
    row = db.execute(HOLDS_FACTS).fetchone()
    return bool(row and row[0])


def rebuild(db: Connection) -> None:
    """Make the words of all facts anew."""
    db.execute(REBUILD)
