"""Words: the language for stemming, and the document frequency of each word in a namespace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from psycopg import sql

from workers.core.questions import without_question_words
from workers.storage import columns, namespaces
from workers.storage.connection import Connection, Cursor, fetch_all, number, scalar
from workers.storage.namespaces import Namespace

LANGUAGE = "select name from languages"

LANGUAGE_LOCKED = f"{LANGUAGE} for update"

LANGUAGE_HELD = f"{LANGUAGE} for share"

INSTALLED_LANGUAGES = """
    select cfgname from pg_ts_config where pg_ts_config_is_visible(oid) and cfgname <> 'ebb_written' order by cfgname
"""

# The stop words of a language are an option of its dictionary for ASCII words.
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

# Rewrites the table and its indexes; readers and writers are blocked meanwhile.
REBUILD = """
    alter table facts alter column search
        set expression as (search_lexemes(namespace, text, category, entity, key, value, tags))
"""

SETS_EXPRESSIONS = 170_000
"""The first version of PostgreSQL that can set the expression of a column."""

# What earlier versions do instead; the old rows take space until a vacuum.
RECOMPUTE = """
    do $$
    begin
        alter table facts disable trigger user;
        update facts set text = text;
        alter table facts enable trigger user;
    end $$
"""


def language(db: Connection, *, lock: bool = False) -> str:
    """Return the database's language, locked until the commit if `lock`."""
    return str(scalar(db, LANGUAGE_LOCKED if lock else LANGUAGE))


def hold_language(db: Connection) -> None:
    """Keep the language until the commit, so that the words that a transaction copies are those of one language.

    Raises:
        SerializationFailure: it was changed since the snapshot of a `repeatable read` transaction.
    """
    db.execute(LANGUAGE_HELD)


def installed_languages(db: Connection) -> list[str]:
    """Return all languages that the server supports."""
    return [name for (name,) in db.execute(INSTALLED_LANGUAGES)]


def choose_language(db: Connection, name: str) -> None:
    """Set the language for stemming; call `rebuild` in the same transaction."""
    row = db.execute(STOP_WORDS, {"name": name}).fetchone()
    stop_words = sql.SQL("stopwords = {}").format(sql.Literal(row[0])) if row else sql.SQL("stopwords")
    db.execute(sql.SQL(CHOOSE_LANGUAGE).format(name=sql.Literal(name), stop_words=stop_words))


def holds_facts(db: Connection) -> bool:
    """Return whether any fact is stored."""
    return bool(number(db, HOLDS_FACTS))


def rebuild(db: Connection) -> None:
    """Rebuild the text index of all facts."""
    db.execute(REBUILD if db.info.server_version >= SETS_EXPRESSIONS else RECOMPUTE)


# One scan counts a namespace's facts (each contains the namespace's lexeme), its words and their document frequencies;
# words of no live fact are deleted. Lexemes with a blank are those of namespace and tags, not words of the text.
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

# Stemmed like the index, without stop words.
OF_QUERY = """
    select word as lexeme, coalesce(facts, 0) as facts, word = any(stems) as stem
    from tsvector_to_array(stems(%(query)s)) as stems
    cross join unnest(tsvector_to_array(words(%(query)s))) as word
    left join lexemes on lexemes.namespace = (select id from namespaces where name = %(name)s) and lexeme = word
"""

# One row: each further statement of a recall costs as much as its rows.
ASKED = f"""
    select found.*, lexemes, frequencies, are_stems
    from ({namespaces.FIND}) as found
    cross join (
        select array_agg(lexeme) as lexemes, array_agg(facts) as frequencies, array_agg(stem) as are_stems
        from ({OF_QUERY}) as word
    ) as of_query
"""

LEXEMES = "select tsvector_to_array(words(%(text)s))"

# With `select`, planning does not look up each word in the statistics.
HELD = """
    select lexeme, facts from lexemes
    where namespace = %(namespace)s and lexeme = any((select %(words)b::text[])::text[])
"""

# The most frequent words of the letters a to z that begin with one of some letters and are about as long. Only letters
# are compared: after "z" comes "{" or "a", depending on the collation of the database.
ALIKE = """
    select lexeme from unnest(%(letters)s::text[]) as letter
    cross join lateral (
        select lexeme, facts from lexemes
        where namespace = %(namespace)s and lexeme between letter and letter || repeat('z', %(longest)s::int)
            and length(lexeme) between %(shortest)s::int and %(longest)s::int and facts > 0
    ) as beginning
    order by facts desc, lexeme
    limit %(most)s
"""

AROUND, MOST_ALIKE = 2, 1_000

GROWN_TENFOLD = """
    select name from namespaces
    where counted_facts >= greatest(10 * estimated_facts, 1) and position(' ' in name) = 0
        and (%(name)s::text is null or name = %(name)s)
    order by counted_facts, name
"""

RECORD_ESTIMATED = "update namespaces set estimated_facts = counted_facts where id = %(namespace)s"

COUNTS = """
    select counted_facts, counted_words::float8 / nullif(counted_facts, 0) from namespaces where id = %(namespace)s
"""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query and its document frequency by the last count.

    It is either a stem or a written form without accents that differs from every stem of the query.
    """

    lexeme: str
    facts: int
    stem: bool


def count(db: Connection, namespace: int, now: datetime) -> int:
    """Count a namespace's words again; return its number of live facts."""
    return number(db, COUNT, {"namespace": namespace, "now": now})


def ask(db: Connection, namespace: str, query: str) -> Callable[[], tuple[Namespace, list[Term]] | None]:
    """Send the query for a namespace and for a query's words in it; return its reader, which gives None without one."""
    given = namespaces.named(namespace) | {"query": without_question_words(query)}
    return partial(_asked, db.execute(ASKED, given, binary=True))


def _asked(cursor: Cursor) -> tuple[Namespace, list[Term]] | None:
    row = cursor.fetchone()
    if row is None:
        return None
    *found, lexemes, frequencies, stems = row
    return Namespace(*found), list(map(Term, lexemes or (), frequencies or (), stems or ()))


def of_query(db: Connection, namespace: str, query: str) -> list[Term]:
    """Return a query's words in a namespace, without stop words and question words."""
    return fetch_all(db, Term, OF_QUERY, {"name": namespace, "query": without_question_words(query)})


def lexemes(db: Connection, text: str) -> list[str]:
    """Return the lexemes of a text: its stems and written forms, without stop words."""
    return list(scalar(db, LEXEMES, {"text": text}))


def ask_held(db: Connection, namespace: int, words: Sequence[str]) -> Callable[[], dict[str, int]]:
    """Send the query for the document frequencies of words by the last count; return its reader, without zeros."""
    rows = db.execute(HELD, {"namespace": namespace, "words": columns.texts(words)}, binary=True)
    return lambda: dict(rows.fetchall())


def ask_alike(db: Connection, namespace: int, letters: str, length: int) -> Callable[[], list[str]]:
    """Send the query for words that begin with one of the letters and are about as long; return its reader.

    It gives the most frequent ones by the last count.
    """
    lengths = {"shortest": length - AROUND, "longest": length + AROUND}
    given = {"namespace": namespace, "letters": list(letters), **lengths, "most": MOST_ALIKE}
    rows = db.execute(ALIKE, given, binary=True)
    return lambda: [lexeme for (lexeme,) in rows]


def counts(db: Connection, namespace: int) -> tuple[int, float | None]:
    """Return a namespace's number of live facts by the last count, and their average number of words, if any."""
    return db.execute(COUNTS, {"namespace": namespace}).fetchone() or (0, None)


def grown_tenfold(db: Connection, name: str | None = None) -> list[str]:
    """Return the namespaces that have grown at least tenfold since the salience of their facts was estimated.

    Those with the fewest facts are first. With a name, the list has at most this one.
    """
    return [grown for (grown,) in db.execute(GROWN_TENFOLD, {"name": name})]


def record_estimated(db: Connection, namespace: int) -> None:
    """Record that the salience of a namespace's facts was estimated with the latest counts."""
    db.execute(RECORD_ESTIMATED, {"namespace": namespace})
