"""Words: the language in which all of them are stemmed, and in how many facts of a namespace each stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from workers.storage.connection import Connection, number

LANGUAGE = "select name from languages"

LANGUAGE_LOCKED = "select name from languages for update"

INSTALLED_LANGUAGES = """
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

CHOOSE_LANGUAGE = """
    create or replace function stemmed(body text) returns tsvector language sql immutable parallel safe
        return to_tsvector({name}, body);
    alter text search dictionary ebb_written ({stop_words});
    update languages set name = {name};
"""

HOLDS_FACTS = "select exists (select from only facts)"

# The table is rewritten as a whole, and so are its indexes; readers and writers wait meanwhile.
REBUILD = """
    alter table facts alter column search
        set expression as (search_lexemes(namespace, text, category, entity, key, value, tags))
"""


def language(db: Connection, *, lock: bool = False) -> str:
    """Return the database's language; with `lock`, it is not changed before the commit."""
    row = db.execute(LANGUAGE_LOCKED if lock else LANGUAGE).fetchone()
    assert row is not None  # noqa: S101 - the schema writes it
    return str(row[0])


def installed_languages(db: Connection) -> list[str]:
    """Return all languages that the server knows."""
    return [name for (name,) in db.execute(INSTALLED_LANGUAGES)]


def choose_language(db: Connection, name: str) -> None:
    """Stem by an installed language from now on; what is stored must be rebuilt in the same transaction."""
    row = db.execute(STOP_WORDS, {"name": name}).fetchone()
    stop_words = sql.SQL("stopwords = {}").format(sql.Literal(row[0])) if row else sql.SQL("stopwords")
    db.execute(sql.SQL(CHOOSE_LANGUAGE).format(name=sql.Literal(name), stop_words=stop_words))


def holds_facts(db: Connection) -> bool:
    """Return whether anything is stored at all."""
    return bool(number(db, HOLDS_FACTS))


def rebuild(db: Connection) -> None:
    """Rebuild the words of all facts."""
    db.execute(REBUILD)


# One walk over a namespace counts its words, its facts (each holds the namespace's own lexeme), and how many words they
# have in all; a word that no live fact holds any more is dropped. Blanks stand only in the lexemes of namespace and
# tags, which are no words of the text.
COUNT = """
    with counted as materialized (
        select word, ndoc, nentry
        from ts_stat(format('select search from facts where namespace = %%s and forgotten_at is null'
            ' and superseded_at is null', %(namespace)s::int))
    ),
    gone as (
        delete from lexemes
        where namespace = %(namespace)s and not exists (select from counted where word = lexeme)
    ),
    written as (
        insert into lexemes (namespace, lexeme, facts)
        select %(namespace)s, word, ndoc from counted where position(' ' in word) = 0 order by word
        on conflict (namespace, lexeme) do update set facts = excluded.facts
        where lexemes.facts <> excluded.facts
    )
    update namespaces
    set counted_at = %(now)s,
        counted_facts = coalesce((select ndoc from counted where word = 'namespace ' || id), 0),
        counted_words = coalesce((select sum(nentry) from counted where position(' ' in word) = 0), 0)
    where id = %(namespace)s
    returning counted_facts
"""

# The query's words are stemmed as the index stems, and stop words are gone.
OF_QUERY = """
    select word as lexeme, coalesce(facts, 0) as facts, word = any(stems) as stem
    from tsvector_to_array(stemmed(readable(%(query)s))) as stems
    cross join unnest(tsvector_to_array(words(%(query)s))) as word
    left join lexemes on lexemes.namespace = (select id from namespaces where name = %(name)s) and lexeme = word
"""

HELD = "select lexeme, facts from lexemes where namespace = %(namespace)s and lexeme = any(%(words)b)"

GROWN_TENFOLD = """
    select name from namespaces
    where counted_facts >= greatest(10 * estimated_facts, 1)
    order by name
"""

NOTE_ESTIMATED = "update namespaces set estimated_facts = counted_facts where id = %(namespace)s"

COUNTED_FACTS = "select counted_facts from namespaces where id = %(namespace)s"


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, in how many facts it stood when they were last counted, and whether it is a stem.

    What is no stem is a word as it is written, without accents, where that differs from every stem of the query.
    """

    lexeme: str
    facts: int
    stem: bool


def count(db: Connection, namespace: int, now: datetime) -> int:
    """Count a namespace's words again; return how many live facts it has."""
    return number(db, COUNT, {"namespace": namespace, "now": now})


def ask_of_query(db: Connection, namespace: str, query: str) -> psycopg.Cursor[Term]:
    """Send the question for a query's words in the namespace of that name; its rows can be fetched later."""
    cursor = db.cursor(row_factory=class_row(Term))
    return cursor.execute(OF_QUERY, {"name": namespace, "query": query})


def of_query(db: Connection, namespace: str, query: str) -> list[Term]:
    """Return a query's words; none for stop words."""
    return ask_of_query(db, namespace, query).fetchall()


def held(db: Connection, namespace: int, words: Sequence[str]) -> dict[str, int]:
    """Return in how many facts each of these words stood when they were last counted; those in none are left out."""
    return dict(db.execute(HELD, {"namespace": namespace, "words": list(words)}).fetchall())


def counted_facts(db: Connection, namespace: int) -> int:
    """Return how many live facts a namespace had when its words were last counted."""
    return number(db, COUNTED_FACTS, {"namespace": namespace})


def grown_tenfold(db: Connection) -> list[str]:
    """Return the namespaces that had a tenth of their facts, or none, when the salience of these was estimated."""
    return [name for (name,) in db.execute(GROWN_TENFOLD)]


def note_estimated(db: Connection, namespace: int) -> None:
    """Note that the salience of a namespace's facts was estimated by the newest count."""
    db.execute(NOTE_ESTIMATED, {"namespace": namespace})
