"""Recall from real indexes: by words, meaning and neighbourhood, and only visible facts."""

import random
from concurrent.futures import ThreadPoolExecutor
from math import log
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day
from psycopg.errors import UndefinedColumn

from workers.admin import search_indexes
from workers.core import ranking
from workers.core.arrays import Floats
from workers.core.ranking import NAMED
from workers.memory.recall import Recalled, arms, scoring
from workers.storage import candidates, namespaces
from workers.storage.candidates import Scope
from workers.storage.connection import POOL_SIZE, transaction

bounded = examples(15)

CELLO = "Grandmother keeps the violoncello upstairs."
PARAPHRASE = "grandmas cellos"
CELLOS = ("The violoncello was tuned.", "A violoncello was sold.")
OTHERS = [f"Invoice {number} was paid on a Friday in June." for number in range(30)]


def cosines(memory: Memory, query: str, texts: list[str]) -> Floats:
    vectors = memory.context.embedder.embed([query, *texts])
    products: Floats = (vectors[1:] @ vectors[0]).astype(np.float64)
    return products


def rules(found: Recalled) -> dict[str, str]:
    assert found.left_out is not None
    return {one["text"]: one["rule"] for one in found.left_out}


def supersede(memory: Memory, id_: UUID, at: float, valid_until: float | None = None) -> None:
    """End a fact's validity, as a later fact does."""
    until = day(at if valid_until is None else valid_until)
    memory.rows("update facts set superseded_at = %s, valid_until = %s where id = %s", day(at), until, id_)
    memory.rows("update signatures set live = false where fact = %s", id_)


def test_a_fingerprinted_fact_is_found_by_a_paraphrase_through_its_signature_alone(memory: Memory) -> None:
    memory.store(CELLO, *OTHERS)
    memory.decay(365)
    best = memory.ask(PARAPHRASE, at=365, explain=True).results[0]
    assert (best.text, best.fidelity, best.tier) == (CELLO, "fingerprint", "cold")
    assert best.explain is not None
    assert best.explain["text"] == 0
    assert memory.value("select count(*) from vectors") == 0


def test_full_pooled_and_fingerprinted_facts_are_compared_on_one_scale(memory: Memory) -> None:
    ages = {100: "fingerprint", 10: "pooled", 0: "full"}
    texts = [f"The red bicycle is locked in shed {age}." for age in ages]
    for text, age in zip(texts, ages, strict=True):
        memory.add(text, at=100 - age)
    memory.decay(100)
    found = memory.ask("red bicycles", at=100, explain=True).results
    true = dict(zip(texts, cosines(memory, "red bicycles", texts), strict=True))
    assert {one.text: one.fidelity for one in found} == dict(zip(texts, ages.values(), strict=True))
    for one in found:
        assert one.explain is not None
        assert one.explain["similarity"] == pytest.approx(true[one.text], abs=0.1)


def test_a_better_match_that_was_fingerprinted_comes_before_a_worse_one_at_full_fidelity(memory: Memory) -> None:
    memory.add(CELLO)
    memory.add("Grandmother keeps the bread downstairs.", at=100)
    memory.decay(100)
    assert memory.ask("grandmotherly violoncellos", at=100).results[0].text == CELLO


def test_with_a_tag_only_words_are_searched(memory: Memory) -> None:
    tagged = memory.add(CELLO, tags=["music"])
    memory.add("Grandmother keeps the violoncello clean.")
    assert memory.ids("violoncello", tag="music") == [tagged]
    found = memory.ask(PARAPHRASE, tag="music")
    assert (found.results, found.by_meaning) == ([], False)


@pytest.mark.parametrize("graph_in_recall", [True, False])
def test_with_a_tag_the_entities_that_are_named_are_looked_up(memory: Memory, graph_in_recall: bool) -> None:
    memory.add("The violoncello is his.", tags=["music"])
    won = memory.add("First prize.", entity="Will", tags=["music"])
    memory.add("Third prize.", entity="Will", tags=["sport"])
    memory.add("Second prize.", entity="Ana", tags=["music"])
    asked = memory.having(graph_in_recall=graph_in_recall)
    found = asked.ask("Will's violoncello", tag="music")
    assert [one.found_by for one in found.results if one.id == won] == ["entity"]
    assert {one.entity for one in found.results} == {None, "Will"}
    assert {one.text for one in asked.ask("Will's violoncello", tag="sport").results} == {"Third prize."}
    assert not found.by_meaning


def test_with_a_tag_that_few_facts_have_common_words_find_them_too(memory: Memory) -> None:
    memory.store(*(f"Penguin {number} swims." for number in range(30)))
    memory.store(*(f"Neighbour {number} lives in house {number}." for number in range(500)))
    tagged = memory.add("We live in Rome.", tags=["home"])
    search_indexes.count_lexemes(memory.context, "default", day(0))
    assert memory.ids("Where do penguins live?", tag="home") == [tagged]


@pytest.mark.parametrize("filtered", [{"source": "diary"}, {"session": "s"}, {"as_of": day(1)}], ids=" ".join)
def test_where_words_alone_decide_common_ones_find_the_few_facts_that_pass_a_filter(
    memory: Memory, filtered: dict[str, Any]
) -> None:
    wanted = memory.add("We live in Rome.", source="diary", session="s")
    memory.store(*(f"Penguin {number} swims." for number in range(30)), at=2)
    memory.store(*(f"Neighbour {number} lives in house {number}." for number in range(500)), at=2)
    search_indexes.count_lexemes(memory.context, "default", day(2))
    found = memory.having(embedder="hashing").ask("Where do penguins live?", at=3, min_relevance=0, **filtered)
    assert (found.by_meaning, [one.id for one in found.results]) == (False, [wanted])


def test_without_a_filter_the_rarest_words_alone_find_facts(memory: Memory) -> None:
    memory.store(*(f"Penguin {number} swims past the colony." for number in range(15)))
    memory.store(*(f"Neighbour {number} lives in house {number}." for number in range(500)))
    search_indexes.count_lexemes(memory.context, "default", day(2))
    found = memory.having(embedder="hashing").ask("Where does the penguin colony live?", min_relevance=0, limit=100)
    assert len(found.results) == 15


@pytest.mark.parametrize("tag", ["two words", "it's", "back\\slash", "a & b | !c", "naïve ☕"])
def test_a_tag_is_found_whatever_characters_it_has(memory: Memory, tag: str) -> None:
    id_ = memory.add("Tea at four.", tags=[tag])
    memory.add("Tea at five.", tags=["other"])
    assert memory.ids("tea", tag=tag) == [id_]


@pytest.mark.parametrize(
    ("name", "wanted", "other"),
    [("category", "music", "bills"), ("kind", "episodic", "chunk"), ("role", "user", "assistant")],
)
def test_a_filter_holds_in_every_arm(memory: Memory, name: str, wanted: str, other: str) -> None:
    memory.store(*[{"text": text, name: other, "session": 1, "turn": i} for i, text in enumerate(OTHERS)])
    chosen: dict[str, Any] = {name: wanted}
    id_ = memory.add(CELLO, session=1, turn=15, **chosen)
    assert memory.ids(PARAPHRASE, **chosen) == [id_]
    assert memory.ids("violoncello", **chosen) == [id_]
    assert memory.ids("violoncello", as_of=day(1), **chosen) == [id_]


def test_pinned_facts_alone_or_all_others_are_recalled_by_every_arm(memory: Memory) -> None:
    memory.store(*[{"text": text, "session": 1, "turn": i} for i, text in enumerate(OTHERS)])
    pinned, lapsed, plain = (memory.add(text, session=1, turn=15 + i) for i, text in enumerate((CELLO, *CELLOS)))
    memory.pin(pinned, at=0)
    memory.pin(lapsed, at=0, until=1)
    for query in (PARAPHRASE, "violoncello"):
        assert memory.ids(query, at=2, min_relevance=0, pinned=True) == [pinned]
        assert pinned not in memory.ids(query, at=2, min_relevance=0, pinned=False)
        assert {lapsed, plain} <= {*memory.ids(query, at=2, min_relevance=0, pinned=False)}
        assert {pinned, lapsed, plain} <= {*memory.ids(query, at=2, min_relevance=0)}
        assert set(memory.ids(query, min_relevance=0, pinned=True)) == {pinned, lapsed}


def test_a_rare_category_is_found_by_meaning_among_many_nearer_facts(memory: Memory) -> None:
    id_ = memory.add("Entirely unrelated.", category="rare")
    memory.store(*[f"The violoncello has string number {number}." for number in range(300)])
    assert memory.ids(PARAPHRASE, category="rare", min_relevance=0) == [id_]


def test_as_of_sees_what_was_valid_then_whatever_became_of_it(memory: Memory) -> None:
    superseded = memory.add("Ana lives in Porto.")
    supersede(memory, superseded, 10)
    expired = memory.add("Ana lives in a hotel.", decay_class="short")
    memory.decay(20)
    present = memory.add("Ana lives in Lisbon.", at=20, source_date="2025-01-11")
    assert set(memory.ids("Where does Ana live?", at=30, as_of=day(1))) == {superseded, expired}
    assert memory.ids("Where does Ana live?", at=30, as_of=day(9)) == [superseded]
    assert memory.ids("Where does Ana live?", at=30, as_of=day(10)) == [present]
    assert memory.ids("Where does Ana live?", at=30) == [present]


def test_known_as_of_sees_what_was_stored_by_then_and_nothing_later(memory: Memory) -> None:
    porto = memory.add("Ana lives in Porto.")
    supersede(memory, porto, 20, valid_until=10)
    lisbon = memory.add("Ana lives in Lisbon.", at=20, source_date=day(10).isoformat())
    asked = "Where does Ana live?"
    assert memory.ids(asked, at=30, known_as_of=day(15)) == [porto]
    assert memory.ids(asked, at=30, known_as_of=day(20)) == [lisbon]
    assert memory.ids(asked, at=30, as_of=day(15)) == [lisbon]
    assert memory.ids(asked, at=30, as_of=day(5), known_as_of=day(25)) == []
    assert memory.ids(asked, at=30, as_of=day(-1), known_as_of=day(15)) == []
    hidden = rules(memory.ask(asked, at=30, known_as_of=day(15), explain=True))
    assert hidden == {"Ana lives in Lisbon.": "not yet known"}


def test_known_as_of_sees_what_was_forgotten_since(memory: Memory) -> None:
    hotel = memory.add("Ana lives in a hotel.", decay_class="short")
    memory.decay(20)
    assert memory.ids("Where does Ana live?", at=20, known_as_of=day(1)) == [hotel]


@bounded
@given(valid_from=st.integers(0, 50), as_of=st.integers(0, 50))
def test_as_of_never_sees_what_was_not_valid_yet(memory: Memory, valid_from: int, as_of: int) -> None:
    name = str(uuid4())
    id_ = memory.add("Ana lives in Porto.", at=60, namespace=name, source_date=day(valid_from).isoformat())
    found = memory.ids("Where does Ana live?", at=60, namespace=name, as_of=day(as_of))
    assert found == ([id_] if valid_from <= as_of else [])


def test_an_expired_fact_is_hidden_from_its_instant_on_without_a_pass(memory: Memory) -> None:
    id_ = memory.add("The parking ticket is in the car.", decay_class="checkpoint")
    expiry = 4 / 24
    assert memory.ids("parking ticket", at=expiry - 1e-9) == [id_]
    hidden = memory.ask("parking ticket", at=expiry, explain=True)
    assert hidden.results == []
    assert rules(hidden) == {"The parking ticket is in the car.": "expired"}


def test_a_fact_no_longer_believed_is_hidden_from_its_instant_on_without_a_pass(memory: Memory) -> None:
    id_ = memory.add("The parking ticket is in the car.", confidence=0.2)
    assert memory.ids("parking ticket", at=179.99) == [id_]
    assert rules(memory.ask("parking ticket", at=180.01, explain=True)) == {
        "The parking ticket is in the car.": "faded"
    }


def test_a_high_limit_gives_as_many_facts(memory: Memory) -> None:
    memory.store(*[f"Zebroid stripes, pattern {number}." for number in range(450)])
    assert len(memory.ids("zebra", limit=420, min_relevance=0)) == 420
    memory.store(*[{"text": f"Bread number {number}.", "tags": ["bakery"]} for number in range(150)])
    assert len(memory.ids("bread", tag="bakery", limit=140, min_relevance=0)) == 140


def test_contiguity_adds_the_facts_stated_just_before_and_after(memory: Memory) -> None:
    memory.store(*[f"Zebroid stripes, pattern {number}." for number in range(350)])
    asked = memory.add("Did you see the zebra?", session="zoo", turn=7)
    answered = memory.add("12345 67890", session="zoo", turn=8)
    apart = memory.add("54321 09876", session="zoo", turn=20)
    found = memory.ids("zebra", limit=300)
    assert found[0] == asked
    assert answered in found
    assert apart not in found


def test_nearer_neighbours_gain_more(memory: Memory) -> None:
    texts = ["12345 67890", "Did you see the zebra?", "Yes.", "No rain today."]
    memory.store(*[{"text": text, "session": 3, "turn": turn} for turn, text in enumerate(texts)])
    gains = {one.text: (one.explain or {})["contiguity"] for one in memory.ask("zebra", explain=True).results}
    assert gains["Yes."] > gains["No rain today."] > 0


def test_of_many_facts_with_one_turn_only_some_are_neighbours(memory: Memory) -> None:
    asked = memory.add("Did you see the zebra?", session="zoo", turn=7)
    near = memory.add("12345 67890", session="zoo", turn=7)
    far = [{"text": f"{place} 09876", "session": "zoo", "turn": 8} for place in range(100, 200)]
    memory.store(*far)
    tenant = memory.value("select id from namespaces")
    given = {"namespace": tenant, "neighbours_of": [asked], "reach": 2, "deep": False}
    with transaction(memory.context.database_url) as db:
        found = [id_ for (id_,) in db.execute(candidates.NEIGHBOURS, given)]
    assert {asked, near} <= {*found}
    assert len(found) == candidates.MOST_BESIDE


def test_sessions_of_the_same_name_but_another_type_are_not_neighbours(memory: Memory) -> None:
    memory.add("Did you see the zebra?", session=7, turn=1)
    memory.add("12345 67890", session="7", turn=2)
    assert {(one.explain or {})["contiguity"] for one in memory.ask("zebra", explain=True).results} == {0}


@bounded
@given(
    facts=st.lists(
        st.fixed_dictionaries({
            "strength": st.floats(0, 1), "importance": st.floats(0, 1), "confidence": st.floats(0.2, 1),
            "session": st.sampled_from([None, 1, "one"]), "turn": st.integers(0, 9),
        }),
        min_size=1,
        max_size=12,
    ),
    at=st.floats(0, 150),
)  # fmt: skip
def test_a_score_is_relevance_and_contiguity_and_a_bounded_prior(
    memory: Memory, facts: list[dict[str, object]], at: float
) -> None:
    name = str(uuid4())
    memory.store(*[fact | {"text": f"Tea {'tea ' * i}at {i}."} for i, fact in enumerate(facts)], namespace=name)
    found = memory.ask("tea at 3", at=at, namespace=name, limit=50, explain=True).results
    parts = [one.explain or {} for one in found]
    columns = {key: [part[key] for part in parts] for key in parts[0]}
    text, similarity = (np.array(columns[key]) for key in ("text", "similarity"))
    with transaction(memory.context.database_url) as db:
        tenant = namespaces.find(db, name)
        assert tenant is not None
        full = arms.search_text(db, tenant, "tea at 3", Scope(day(at))).enough
    fused = ranking.fuse(text, similarity, memory.context.embedder.weights[0], full)
    sums = [
        (part["fit"] + part["contiguity"] + part["named"]) * part["role"] * (1 + part["salience"]) + part["prior"]
        for part in parts
    ]
    assert [one.score for one in found] == pytest.approx(sums, abs=3e-6)
    assert columns["fit"] == pytest.approx(fused.tolist(), abs=1e-4)
    assert all(0 <= prior <= ranking.PRIOR_WEIGHT for prior in columns["prior"])


def test_statements_of_the_user_rank_above_answers_unless_the_question_asks_for_answers(memory: Memory) -> None:
    answer = memory.add("A green tea helps against a cold.", role="assistant", salience=0.5)
    own = memory.add("The green tea helps against the cold.", role="user", salience=0.5)
    memory.add("The boat leaks.", role="system", salience=0.5)
    assert memory.ids("green tea, cold")[:2] == [own, answer]
    assert roles(memory, "green tea, cold") == {1.0, ranking.OTHERS}
    assert roles(memory, "Did you recommend green tea for a cold?") == {1.0}


def roles(memory: Memory, query: str) -> set[float]:
    return {(one.explain or {})["role"] for one in memory.ask(query, explain=True).results}


def test_content_that_later_questions_are_about_comes_first(memory: Memory) -> None:
    said = memory.add("Tea at four, said the first guest.", salience=0.9)
    chat = memory.add("Tea at four, said the second guest.", salience=0.1)
    estimated = memory.add("Tea at four, said the third guest.")
    parts = {one.id: one.explain or {} for one in memory.ask("tea at four", explain=True).results}
    assert list(parts).index(said) < list(parts).index(chat)
    assert (parts[said]["salience"], parts[chat]["salience"]) == (pytest.approx(0.9), pytest.approx(0.1))
    assert 0 < parts[estimated]["salience"] < 0.9


def named_parts(memory: Memory, query: str, **question: Any) -> dict[str, float]:
    found = memory.ask(query, limit=50, explain=True, min_relevance=0, **question).results
    return {one.text: (one.explain or {})["named"] for one in found}


def test_what_begins_with_a_name_in_the_question_gains_and_comes_first(memory: Memory) -> None:
    said = memory.add("Mira: Ana likes the harbour.")
    other = memory.add("Ana: Mira likes the harbour.", at=0.5)
    memory.add("The train to Berlin leaves at nine.")
    query = "What did Mira say of the harbour?"
    assert memory.ids(query, at=1)[:2] == [said, other]
    assert list(named_parts(memory, query).values()) == [NAMED, 0, 0]
    unlike = memory.having(ranking="documented")
    assert set(named_parts(unlike, query).values()) == {0}


@pytest.mark.parametrize(
    ("text", "query", "gain"),
    [
        ("Zoë's boat leaks.", "How is the boat of zoe, or Zoe?", NAMED),
        ("“Zoe” is a boat.", "And Zoë's boat?", NAMED),
        ("Zoe has a boat.", "what boat has zoe?", 0),
        ("What a boat!", "What boat?", 0),
        ("Boats belong to Zoe.", "Has Zoe boats?", 0),
        ("船が好きです。 Zoe", "Zoe?", 0),
    ],
)
def test_a_name_is_an_informative_word_with_a_capital(memory: Memory, text: str, query: str, gain: float) -> None:
    memory.add(text)
    assert named_parts(memory, query) == {text: gain}


def test_the_entity_of_a_fact_counts_once(memory: Memory) -> None:
    memory.add("Olga moors the boat.", entity="Olga")
    for one in (memory, memory.having(graph_in_recall=False)):
        (found,) = one.ask("Where is Olga's boat?", explain=True).results
        assert (found.explain or {})["graph"] + (found.explain or {})["named"] == pytest.approx(NAMED)


def test_ranks_are_those_without_decay(memory: Memory) -> None:
    memory.add("Tea at four, said the first guest.", importance=0, strength=0.1)
    memory.add("Tea at four, said the other guest.", at=100, importance=1, strength=1)
    parts = [one.explain or {} for one in memory.ask("tea at four", at=100, explain=True).results]
    assert sorted(part["rank_without_decay"] for part in parts) == [1, 2]
    assert {part["text_rank"] for part in parts} <= {1, 2}
    assert parts[0]["prior"] > parts[1]["prior"] + 0.05


def test_strength_never_hides_what_fits_better(memory: Memory) -> None:
    fitting = memory.add("The safe opens with the code 4711.", importance=0, strength=0.1)
    memory.add("The cellar door is open.", at=100, importance=1, strength=1, coactivations=50)
    assert memory.ids("What is the code of the safe?", at=100)[0] == fitting


def test_left_out_names_the_rule(memory: Memory) -> None:
    memory.store("Tea at four.", "Tea at five, perhaps.", {"text": "Tea at six.", "decay_class": "ephemeral"})
    found = memory.ask("tea at four", at=1, limit=1, explain=True, min_relevance=0)
    assert rules(found) == {"Tea at five, perhaps.": "below the limit", "Tea at six.": "expired"}


def test_left_out_names_the_rules_that_hide_neighbours_and_history(memory: Memory) -> None:
    memory.store(
        {"text": "Tea at four.", "category": "wanted", "session": 1, "turn": 1},
        {"text": "12345 67890", "category": "other", "session": 1, "turn": 2},
        {"text": "Tea at nine.", "category": "wanted", "source_date": "2025-01-01", "created_at": "2025-01-01"},
    )
    found = memory.ask("tea", category="wanted", as_of=day(-1), explain=True)
    assert found.results == []
    assert set(rules(found).values()) == {"not yet valid"}
    now = memory.ask("tea", category="wanted", explain=True)
    assert rules(now) == {"12345 67890": "other category"}


def test_without_explain_an_answer_has_no_parts_of_scores_and_no_left_out_facts(memory: Memory) -> None:
    memory.store("Tea at four.", "Tea at five.")
    found = memory.ask("tea", limit=1)
    assert found.left_out is None
    assert found.results[0].explain is None


def test_documented_ranking_gives_the_documented_composite(memory: Memory) -> None:
    documented = memory.having(ranking="documented")
    short = memory.add("Tea tea at four.", decay_class="active", confidence=0.8)
    memory.add("Tea at five, or rather coffee and cake.", confidence=0.6)
    memory.touch(short, at=2)
    first, second = documented.ask("tea", at=11, explain=True).results
    texts = [(one.explain or {})["text"] for one in (first, second)]
    assert texts[0] > texts[1] > 0
    by_hand = (0.6 * 1 + 0.25 * (5 / 7) + 0.15 * 0.8) * (1 + 0.1 * log(2)) / (1 + 9 / 30)
    assert first.score == pytest.approx(by_hand, abs=1e-6)
    assert second.score == pytest.approx((0.6 * 0 + 0.25 * 1 + 0.15 * 0.6) / (1 + 11 / 30), abs=1e-6)


def test_documented_ranking_scores_what_shares_no_word_by_its_distance(memory: Memory) -> None:
    memory.store(CELLO, "12345 67890")
    found = memory.having(ranking="documented").ask(PARAPHRASE, explain=True).results
    near = cosines(memory, PARAPHRASE, [CELLO])[0]
    assert found[0].text == CELLO
    assert found[0].score == pytest.approx(1 / (1 + 2 * (1 - near)), abs=1e-3)


def test_documented_ranking_drops_what_is_too_unlike_and_believes_less_what_ends_soon(memory: Memory) -> None:
    documented = memory.having(ranking="documented")
    assert scoring.least_similarity(documented.context, -1.0) == pytest.approx(-1 / 6)
    assert scoring.least_similarity(documented.context, 0.25) == 0.25
    assert scoring.least_similarity(memory.context, -1.0) == -1.0
    memory.add("Tea at four.", decay_class="session")
    (found,) = documented.ask("tea", at=0.8, tag=None).results
    halved_twice = 0.6 * 1 + 0.25 * (0.2 / 7) + 0.15 * 0.25
    assert found.score == pytest.approx(halved_twice / (1 + 0.8 / 30), abs=1e-6)


def test_equal_scores_go_to_the_warmer_and_then_to_the_newer_fact(memory: Memory) -> None:
    strengths = {"Tea, Ana?": 0.5, "Tea, Ben?": 0.5, "Tea, Cem?": 0.3}
    for i, (text, strength) in enumerate(strengths.items()):
        seen = day(3).isoformat()
        memory.add(text, at=3, strength=strength, created_at=day(i).isoformat(), last_seen_at=seen, tags=["x"])
    memory.decay(9.5)
    found = memory.having(ranking="documented").ask("tea", at=9.5, tag="x").results
    assert len({one.score for one in found}) == 1
    assert [(one.text, one.tier) for one in found] == [
        ("Tea, Ben?", "warm"), ("Tea, Ana?", "warm"), ("Tea, Cem?", "cold")
    ]  # fmt: skip


def test_an_unknown_namespace_answers_nothing(memory: Memory) -> None:
    memory.add("Tea at four.")
    found = memory.ask("tea", namespace="unknown", explain=True)
    assert (found.results, found.left_out) == ([], [])
    assert memory.value("select count(*) from namespaces") == 1


ODD = [
    "the of and", "'", '"quoted "half', "a & b | !c <-> d:*", "\\", "'; drop table facts; --", "☕🫖", "%s %(x)s %",
    "tea' & 'four", "İ ß ﬁ", "<b>tea</b>", "http://example.com/tea?at=4", "-- /* */", "tea\ttea\ntea",
    "\uff11\uff12", "\u200b",
]  # fmt: skip


@pytest.mark.parametrize("query", ODD)
def test_a_query_of_odd_characters_is_answered(memory: Memory, query: str) -> None:
    id_ = memory.add("Tea at four, with 'quotes' & <tags>.")
    assert memory.ids(query, min_relevance=0) == [id_]
    assert set(memory.ids(query, tag="x")) <= {id_}
    assert set(memory.ids(query)) <= {id_}


def test_a_query_of_five_thousand_words_is_answered(memory: Memory) -> None:
    memory.store(CELLO, *OTHERS)
    words = [f"word{number}" for number in range(4_999)]
    assert memory.ask(" ".join([*words, "violoncello"]), min_relevance=0).results[0].text == CELLO


def test_a_query_is_found_again_when_it_is_the_whole_of_a_long_text(memory: Memory) -> None:
    letters = random.Random(5)
    text = " ".join("".join(letters.choices("abcdefghij", k=8)) for _ in range(5_000))
    id_ = memory.add(text)
    memory.store(*OTHERS)
    assert memory.ids(text)[0] == id_


def test_a_fact_without_vector_gets_no_advantage_from_that(memory: Memory) -> None:
    texts = ["Violoncellos need care.", "Grandmotherly advice is free.", "12345 67890", "98765 43210"]
    memory.store(*[{"text": text, "session": 1, "turn": turn} for turn, text in enumerate(texts)])
    (without,) = memory.rows("select id from facts where text = '98765 43210'")[0]
    memory.rows("delete from vectors where fact = %s", without)
    memory.rows("delete from signatures where fact = %s", without)
    memory.rows("update activity set fidelity = 0 where fact = %s", without)
    found = memory.ask(PARAPHRASE, explain=True, min_relevance=0).results
    similarities = {one.text: (one.explain or {})["similarity"] for one in found}
    assert similarities.pop("98765 43210") <= max(min(similarities.values()), 0)
    assert len(similarities) == 3


@bounded
@given(
    facts=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), min_size=1, max_size=15),
    asked=st.sampled_from(["tea", "guest 3", PARAPHRASE, "the of"]),
    question=st.sampled_from([{}, {"as_of": day(1)}, {"category": "x"}, {"tag": "y"}]),
)
def test_no_namespace_ever_shows_what_belongs_to_another(
    memory: Memory, facts: list[tuple[str, int]], asked: str, question: dict[str, object]
) -> None:
    prefix = uuid4().hex
    for name, guest in facts:
        fact = {"text": f"Guest {guest} takes tea.", "source": name, "category": "x", "tags": ["y"]}
        memory.store(fact | {"session": 1, "turn": guest}, namespace=prefix + name)
    for name in "abc":
        found = memory.ask(asked, at=1, namespace=prefix + name, explain=True, **question)
        own = {guest for place, guest in facts if place == name}
        assert {one.source for one in found.results} <= {name}
        assert len(found.results) + len(found.left_out or []) <= len(own)


def test_more_recalls_at_once_than_a_process_has_connections_all_answer(memory: Memory) -> None:
    memory.store(CELLO, *OTHERS)
    with ThreadPoolExecutor(4 * POOL_SIZE) as threads:
        asked = [threads.submit(memory.ask, PARAPHRASE) for _ in range(8 * POOL_SIZE)]
        assert {one.result().results[0].text for one in asked} == {CELLO}


@pytest.mark.parametrize("question", ["the", "lock"])
def test_of_facts_that_fit_equally_the_newest_are_found_wherever_their_rows_are(memory: Memory, question: str) -> None:
    for day_ in range(3):
        memory.store(*({"text": f"Lock {day_}-{number}", "tags": ["key"]} for number in range(60)), at=day_)
    every = memory.ids(question, at=4, tag="key", limit=180, min_relevance=0)
    assert memory.ids(question, at=4, tag="key", limit=60, min_relevance=0) == every[:60]
    memory.rows("update facts set importance = importance where text like '%%0'")
    assert memory.ids(question, at=4, tag="key", limit=60, min_relevance=0) == every[:60]


def test_one_arm_that_fails_fails_the_recall(memory: Memory) -> None:
    memory.store(CELLO)
    memory.rows("alter table signatures rename column signature to renamed")
    with pytest.raises(UndefinedColumn):
        memory.ask(PARAPHRASE)
