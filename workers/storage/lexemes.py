"""Lexemes: in how many facts of a namespace each word stands, so that rare words can count for more."""

from dataclasses import dataclass
from datetime import datetime

from workers.storage.connection import Connection

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
    select word, coalesce(facts, 0), word = any(stems)
    from tsvector_to_array(stemmed(readable(%(query)s))) as stems
    cross join unnest(tsvector_to_array(words(%(query)s))) as word
    left join lexemes on lexemes.namespace = %(namespace)s and lexeme = word
"""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, in how many facts it stood when they were last counted, and whether it is a stem.

    What is no stem is a word as it is written, without accents, where that differs from every stem of the query.
    """

    lexeme: str
    facts: int
    stem: bool


def count(db: Connection, namespace: int, now: datetime) -> int:
    """Count a namespace's words anew; return how many live facts it has."""
    row = db.execute(COUNT, {"namespace": namespace, "now": now}).fetchone()
    return int(row[0]) if row else 0


def of_query(db: Connection, namespace: int, query: str) -> list[Term]:
    """Return a query's words; none for stop words."""
    return [Term(*row) for row in db.execute(OF_QUERY, {"namespace": namespace, "query": query})]
