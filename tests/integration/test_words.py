"""Words: stems, written forms, scripts without blanks, fields, and queries of every kind."""

from unittest.mock import Mock
from uuid import UUID

import bm25s
import numpy as np
import pytest
from ebb.contract.recall import Filters
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import ON_CITUS, Memory, day, wait_for

from workers.admin import search_indexes
from workers.admin.search_indexes import check_language, reindex
from workers.core import ranking
from workers.errors import LanguageMismatchError, SettingsError
from workers.memory.recall import arms
from workers.storage import namespaces, schema, words
from workers.storage.candidates import Scope
from workers.storage.connection import transaction

# Hypothesis runs many examples on one database on purpose.
many = examples(60)

WORDS = "select word, cardinality(positions) from facts, unnest(search) as one (word, positions, weights) where id = %s"


def by_words(memory: Memory, query: str, *, tag: str | None = None, namespace: str = "default") -> list[str]:
    """Return the results of the text arm, best first."""
    return list(scored(memory, query, tag=tag, namespace=namespace))


def scored(memory: Memory, query: str, *, tag: str | None = None, namespace: str = "default") -> dict[str, float]:
    with transaction(memory.context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        assert tenant is not None
        found = arms.search_text(db, tenant, query, Scope(day(0), Filters(tag=tag)))
        texts = dict(db.execute("select id, text from facts where namespace = %s", [tenant.id]).fetchall())
    return {texts[UUID(bytes=id_)]: found.scores[id_] for id_ in found.best}


@pytest.mark.parametrize(
    "said",
    [
        "\u0345", "a word \u0345 alone", "Z\u0351\u036b\u0345\u0316a\u0332\u0345lgo", "\u1ff7 \u03c9\u0342\u0345",
        "\u064b \u0640\u05b0 word", "\u00ad\u200d\ufeff word",
    ],
)  # fmt: skip
def test_a_mark_that_is_a_letter_to_the_parser_is_stored_and_found(memory: Memory, said: str) -> None:
    fact = memory.add(said, entity=said, key="\u0345")
    assert memory.ids(said) == [fact]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("She preferred the window seat.", "prefer"),
        ("All databases are in Frankfurt.", "database"),
        ("It is performing well.", "performance"),
        ("We met at the Café Größenwahn.", "café größenwahn"),
        ("We met at the Café Größenwahn.", "cafe"),
        ("Order it at the cafe.", "café"),
        ("The house is in Hauptstraße.", "hauptstrasse"),
        ("The house is in Hauptstrasse.", "Hauptstraße"),
        ("Søren lives in Ålborg.", "soren"),
        ("Soren lives in Alborg.", "Ålborg"),
        ("Łódź is a city.", "lodz"),
        ("Ærø is an island.", "aero"),
        ("She was born in İzmir.", "izmir"),
        ("The bus goes to Isparta.", "ısparta"),  # noqa: RUF001 - Turkish on purpose
        ("We met at the Cafe\u0301.", "café"),
        ("我喜欢喝咖啡。", "咖啡"),
        ("我喜欢喝咖啡。", "茶和咖啡"),
        ("我每天喝茶", "茶"),
        ("東京タワーで会った", "タワー"),
        ("그는 고양이를 키운다", "고양이"),
        ("เขาชอบดื่มกาแฟ", "กาแฟ"),
        ("ＡＢＣ１２ is its name", "abc12"),  # noqa: RUF001 - full-width on purpose
        ("The coffee/tea is in nice.Thanks", "tea"),
        ("The coffee/tea is in nice.Thanks", "thanks"),
        ("It hangs on /dev/ttyUSB0.", "ttyusb0"),
        ("Released on 2023-05-07.", "05"),
        ("The field is called user_id.", "user id"),
        ("Write to mira@example.com!", "example"),
        ("The 3rd universities' choir", "universities"),
        ("Write to Anna <anna.meier@example.org>.", "anna.meier@example.org"),
        ("See <https://example.org/map> or <b>the wall</b>.", "map"),
        ("ένας λόγος", "ΛΟΓΟΣ"),
        ("שָׁלוֹם לכולם", "שלום"),
        ("الكِتَابُ على المكتب", "الكتاب"),
        ("أحمد يسكن هنا", "احمد"),
        ("عدد الغرف ٤٢", "42"),
        ("She runs a super\u00admarket.", "supermarket"),
    ],
)
def test_a_word_is_found_in_whatever_script_and_spelling(memory: Memory, said: str, asked: str) -> None:
    memory.store(said, "Something else altogether 其他")
    assert by_words(memory, asked) == [said]


def test_a_namespace_of_nearly_all_facts_finds_the_same_words_and_none_of_others(memory: Memory) -> None:
    memory.store("The violoncello stands upstairs.", *(f"Invoice {number} was paid." for number in range(200)))
    memory.add("The violoncello of a neighbour.", namespace="other")
    asked = ["violoncello", "paid invoice 7"]
    before = [scored(memory, query) for query in asked]
    search_indexes.count_lexemes(memory.context, "default", day(0))

    def is_alone(name: str) -> bool:
        memory.rows("analyze facts")  # again, as statistics of the stores may come later and count their facts twice
        with transaction(memory.context.database_url) as db:
            found = namespaces.find(db, name)
        assert found is not None
        return found.alone

    if not ON_CITUS:  # a node's estimates are not known to others
        wait_for(lambda: is_alone("default"))
    assert not is_alone("other")
    assert list(before[0]) == ["The violoncello stands upstairs."]
    assert [list(scored(memory, query)) for query in asked] == [list(one) for one in before]
    assert by_words(memory, "violoncello", namespace="other") == ["The violoncello of a neighbour."]


def test_no_namespace_is_taken_for_nearly_all_facts_when_the_counters_begin_again(memory: Memory) -> None:
    for name in ("one", "two"):
        memory.store(*(f"Invoice {number} was paid." for number in range(200)), namespace=name)
        search_indexes.count_lexemes(memory.context, name, day(0))
    memory.rows("analyze facts")
    memory.rows("select pg_stat_reset()")
    memory.store("The violoncello stands upstairs.", namespace="two")
    memory.rows("select pg_stat_force_next_flush()")
    with transaction(memory.context.database_url) as db:
        found = [namespaces.find(db, name) for name in ("one", "two")]
    assert [one is not None and one.alone for one in found] == [False, False]


def test_who_has_the_word_as_it_is_written_comes_before_who_has_only_its_stem(memory: Memory) -> None:
    memory.store("The universe is large.", "The university is large.", "Nothing of the kind.")
    assert by_words(memory, "university") == ["The university is large.", "The universe is large."]
    assert by_words(memory, "universe") == ["The universe is large.", "The university is large."]


@pytest.mark.parametrize("field", ["category", "entity", "key", "value"])
def test_every_field_is_searched_and_counts_for_more_than_the_text(memory: Memory, field: str) -> None:
    memory.store({"text": "Something about it.", field: "solar_panels"}, "A solar roof, something else.")
    assert by_words(memory, "solar") == ["Something about it.", "A solar roof, something else."]


WHOLE = """
    select search_lexemes(7, body, category, entity, null, value, tags)
        = named || named || own || array_to_tsvector(array['namespace 7'] || array(select 'tag ' || unnest(tags)))
    from (
        select %s::text as body, %s::text as category, %s::text as entity, %s::text as value, %s::text[] as tags
    ) as given
    cross join lateral (select without_accents(stemmed(readable(body))) as stems) as of_body
    cross join lateral (select stems || as_written(readable(body), stems) as own) as of_text
    cross join lateral (select words(concat_ws(' ', category, entity, value)) as named) as about
"""


@pytest.mark.parametrize("text", ["The oboe's reeds were bought.", "Ærø, Łódź: cafés", "レモンは黄色い", ""])
@pytest.mark.parametrize(
    ("category", "entity", "value", "tags"),
    [
        (None, None, None, []),
        (None, None, None, ["a b", "ß"]),
        ("food", None, None, []),
        ("food", "Café", None, ["a b", "ß"]),
        (None, None, "reeds bought", []),
    ],
)
def test_the_lexemes_of_a_fact_are_those_of_its_parts(
    memory: Memory, text: str, category: str | None, entity: str | None, value: str | None, tags: list[str]
) -> None:
    assert memory.rows(WHOLE, text, category, entity, value, tags) == [(True,)]


def test_words_of_fields_count_twice_and_others_as_often_as_they_occur(memory: Memory) -> None:
    id_ = memory.add("Tea, tea, and moving houses.", entity="Tea lover", key="moves", tags=["two words"])
    assert dict(memory.rows(WORDS, id_)) == {
        "namespace 1": None, "tag two words": None, "tea": 4, "lover": 2, "move": 3, "moves": 2, "hous": 1,
        "moving": 1, "houses": 1,
    }  # fmt: skip


def test_the_index_follows_what_is_written_changed_and_deleted(memory: Memory) -> None:
    id_ = memory.add("The lighthouse keeper", namespace="ours")
    memory.rows("update facts set text = 'The windmill owner' where id = %s", id_)
    assert by_words(memory, "lighthouse", namespace="ours") == []
    assert by_words(memory, "windmill", namespace="ours") == ["The windmill owner"]
    memory.rows("delete from facts where id = %s", id_)
    assert by_words(memory, "windmill", namespace="ours") == []


@pytest.mark.parametrize("query", ["to be or not to be", "the who", "???", "& | ! <-> : * ( ) \\ '", '"', "😀"])
def test_a_query_without_words_finds_nothing_by_words_and_is_answered_by_meaning(memory: Memory, query: str) -> None:
    memory.store("To be, or not to be.", "Tea at four.")
    assert by_words(memory, query) == []
    assert len(memory.ask(query, min_relevance=0).results) == 2


def test_a_query_without_words_finds_within_a_tag_all_that_has_it(memory: Memory) -> None:
    memory.store({"text": "To be, or not to be.", "tags": ["stage"]}, "To be and not to be.")
    (found,) = memory.ask("to be or not to be", tag="stage").results
    assert (found.text, found.found_by) == ("To be, or not to be.", "words")


@pytest.mark.parametrize(
    "query",
    ["tea' | 'cake", "tea & cake", "!tea", "tea <-> four", "tea:*", "tea:A", "(tea", "tea\\", "'tea'", '"tea at four"',
     "tea -- cake", "%(tea)s %s tea", "namespace 1 tea"],
)  # fmt: skip
def test_operators_are_no_operators(memory: Memory, query: str) -> None:
    memory.store("Tea at four.", "Bread at nine.")
    assert by_words(memory, query)[0] == "Tea at four."
    assert "Bread at nine." not in by_words(memory, query.replace("four", ""))


def test_no_query_reaches_another_namespace_or_tag(memory: Memory) -> None:
    memory.store({"text": "Tea elsewhere.", "tags": ["secret"]}, namespace="theirs")
    memory.store("Bread here.", namespace="ours")
    for query in ("namespace 1", "'namespace 1'", "tag secret", "tea' | 'namespace 1", "tea"):
        assert by_words(memory, query, namespace="ours") == []


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300))
@many
def test_whatever_text_is_stored_and_asked_breaks_nothing(memory: Memory, text: str) -> None:
    with transaction(memory.context.database_url) as db:
        stored = db.execute("select words(%s::text)", [text]).fetchone()
        assert stored is not None
        found = words.of_query(db, "none", text)
        assert {term.lexeme for term in found} == set(
            db.execute("select tsvector_to_array(words(%s::text))", [text]).fetchone()[0]  # type: ignore[index]
        )


@pytest.mark.parametrize("unit", ["\u4e00", "a", "é ", "1234 ", "ab-cd.ef/gh "])
def test_the_longest_texts_of_any_script_fit(memory: Memory, unit: str) -> None:
    varied = "".join(unit.replace("\u4e00", chr(0x4E00 + i % 20_000)) for i in range(524_288 // len(unit.encode())))
    numbered = "".join(f"{unit}{i:x}" for i in range(40_000))[:500_000]
    for text in (varied, numbered):
        assert memory.value("select words(%s) is not null", text)


def test_of_a_long_query_the_words_that_say_most_are_looked_for(memory: Memory) -> None:
    memory.store("The lighthouse keeper", *[f"Common word number {number}" for number in range(30)])
    search_indexes.count_lexemes(memory.context, "default", day(0))
    query = " ".join(["lighthouse", "common", "word", *[f"unknown{number}" for number in range(5_000)]])
    assert by_words(memory, query)[0] == "The lighthouse keeper"


def test_scores_and_order_are_those_of_a_published_implementation(memory: Memory) -> None:
    """The variant `lucene` of bm25s has the same idf, without the constant factor k1 + 1."""
    rng = np.random.default_rng(3)
    vocabulary = [f"word{number}" for number in range(60)]
    said = [" ".join(rng.choice(vocabulary, size=rng.integers(1, 40)).tolist()) for _ in range(300)]
    memory.store(*[f"{text} unique{place}" for place, text in enumerate(said)])
    search_indexes.count_lexemes(memory.context, "default", day(0))
    rows = memory.rows(
        "select text, array(select word from unnest(search) as one (word, positions, w), unnest(positions)) from facts"
    )
    published = bm25s.BM25(method="lucene", k1=ranking.K1, b=ranking.B, dtype="float64")
    published.index([words for _, words in rows], show_progress=False)
    for _ in range(20):
        query = [str(word) for word in rng.choice(vocabulary, size=4, replace=False)]
        theirs = published.get_scores(query) * (ranking.K1 + 1)
        ours = scored(memory, " ".join(query))
        expected = dict(zip((text for text, _ in rows), theirs.tolist(), strict=True))
        best = sorted((score for score in expected.values() if score > 0), reverse=True)[: len(ours)]
        assert list(ours.values()) == pytest.approx(best, abs=1e-6)
        assert ours == pytest.approx({text: expected[text] for text in ours}, abs=1e-6)


def test_the_first_start_chooses_the_language(memory: Memory) -> None:
    check_language(memory.having(language="german").context)
    memory.store("Die Häuser stehen im Garten.")
    assert by_words(memory, "Haus") == by_words(memory, "der Gärten") == ["Die Häuser stehen im Garten."]
    assert by_words(memory, "die im") == []


def test_another_language_is_refused_with_the_command_that_rebuilds(memory: Memory) -> None:
    check_language(memory.context)
    memory.store("Die Häuser stehen im Garten.")
    with pytest.raises(LanguageMismatchError, match=r"stemmed as english; configured is german.*`ebb reindex`"):
        check_language(memory.having(language="german").context)
    assert by_words(memory, "Haus") == []


def test_an_unknown_language_is_refused_with_those_that_are_known(memory: Memory) -> None:
    with pytest.raises(SettingsError, match=r"EBB_LANGUAGE='klingon' is not allowed.*german.*simple"):
        check_language(memory.having(language="klingon").context)


@pytest.mark.skipif(not ON_CITUS, reason="EBB_TEST_CITUS_URL names no cluster")
def test_reindexing_is_refused_on_citus_with_what_to_do(memory: Memory) -> None:
    memory.store("Die Häuser stehen im Garten.")
    with pytest.raises(SettingsError, match="Run `ebb migrate` for another schema"):
        reindex(memory.having(language="german").context, day(0))
    assert memory.rows("select name from languages") == [("english",)]


@pytest.mark.skipif(ON_CITUS, reason="Citus cannot rebuild the words of facts")
@pytest.mark.parametrize("first_that_sets_expressions", [words.SETS_EXPRESSIONS, 990_000])
def test_reindexing_rebuilds_all_words_and_can_be_repeated(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, first_that_sets_expressions: int
) -> None:
    monkeypatch.setattr(words, "SETS_EXPRESSIONS", first_that_sets_expressions)
    memory.store("Die Häuser stehen im Garten.", namespace="ours")
    memory.store("The houses", namespace="theirs")
    german = memory.having(language="german")
    for _ in range(2):
        assert reindex(german.context, day(0)) == 2
        check_language(german.context)
        assert by_words(memory, "Haus", namespace="ours") == ["Die Häuser stehen im Garten."]
        assert ("haus", 1) in memory.rows("select lexeme, facts from lexemes")
        assert ("im", 1) not in memory.rows("select lexeme, facts from lexemes")
    assert memory.rows("select name from languages") == [("german",)]
    with transaction(memory.context.database_url) as db:
        assert schema.differences(db) == []


@pytest.mark.skipif(ON_CITUS, reason="Citus cannot rebuild the words of facts")
def test_words_are_counted_though_reindexing_ended_after_the_rebuild(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.store("Die Häuser stehen im Garten.")
    search_indexes.count_lexemes(memory.context, "default", day(0))
    german = memory.having(language="german")
    with monkeypatch.context() as killed:
        killed.setattr(search_indexes, "count_lexemes", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            reindex(german.context, day(0))
    assert ("im", 1) in memory.rows("select lexeme, facts from lexemes")
    assert search_indexes.count_grown(german.context, day(1)) == ["default"]
    assert ("im", 1) not in memory.rows("select lexeme, facts from lexemes")


def test_a_language_without_stemmer_or_stop_words_keeps_all_words(memory: Memory) -> None:
    check_language(memory.having(language="simple").context)
    memory.store("To be, or not to be.")
    assert by_words(memory, "to be or not to be") == ["To be, or not to be."]


def test_every_installed_language_can_be_chosen(memory: Memory) -> None:
    with transaction(memory.context.database_url) as db:
        installed = words.installed_languages(db)
        assert {"english", "german", "simple"} <= set(installed)
        for name in installed:
            words.choose_language(db, name)
            assert db.execute("select words('Beispiel example')").fetchone() is not None
