"""Explanations name the rule of each fact that was left out, and do not change the results."""

from collections import Counter
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.recall import Lookup
from memory import Memory, day

from workers.admin import search_indexes
from workers.errors import InvalidInputError
from workers.memory import recall
from workers.memory.recall import Recalled
from workers.storage import candidates
from workers.storage.candidates import Description

CELLO = "Grandmother keeps the violoncello upstairs."
PARAPHRASE = "grandmas cellos"
OTHERS = [f"Invoice {number} was paid on a Friday in June." for number in range(30)]


def rules(found: Recalled) -> dict[str, str]:
    assert found.left_out is not None
    return {one["text"]: one["rule"] for one in found.left_out}


def why(memory: Memory, query: str, id_: UUID, at: float = 0, **question: Any) -> dict[str, Any]:
    found = memory.ask(query, at=at, why=id_, **question).why
    assert found is not None
    return found


def test_a_forgotten_fact_that_would_have_been_found_by_meaning_is_explained(memory: Memory) -> None:
    id_ = memory.add(CELLO)
    memory.store(*OTHERS)
    memory.forget(id_, at=1)
    found = memory.ask(PARAPHRASE, at=2, explain=True)
    assert CELLO not in [one.text for one in found.results]
    (hidden,) = [one for one in found.left_out or [] if one["id"] == str(id_)]
    assert (hidden["rule"], hidden["rank"]) == ("forgotten: asked", 1)


def test_rules_that_filter_before_the_arms_are_explained_as_well(memory: Memory) -> None:
    memory.store(
        {"text": "Tea at four.", "tags": ["home"], "category": "a"},
        {"text": "Tea at five.", "tags": ["work"], "category": "a"},
        {"text": "Tea at six.", "tags": ["home"], "category": "b"},
        {"text": "Tea at seven.", "kind": "chunk"},
    )
    assert rules(memory.ask("tea", tag="home", explain=True)) == {
        "Tea at five.": "other tag", "Tea at seven.": "other tag"
    }  # fmt: skip
    assert rules(memory.ask("tea", category="b", explain=True))["Tea at five."] == "other category"
    assert rules(memory.ask("tea", kind="semantic", explain=True)) == {"Tea at seven.": "other kind"}
    assert rules(memory.ask("tea", documents=False, explain=True)) == {"Tea at seven.": "of a document"}
    assert set(rules(memory.ask("tea", pinned=True, explain=True)).values()) == {"not pinned"}
    memory.pin(memory.ask("tea at four").results[0].id, at=0)
    assert rules(memory.ask("tea", pinned=False, explain=True)) == {"Tea at four.": "pinned"}


def test_what_was_found_but_not_read_is_explained(memory: Memory) -> None:
    memory.store(*[f"Tea at {number}." for number in range(150)])
    found = rules(memory.ask("tea at 7", limit=20, explain=True, min_relevance=0))
    assert Counter(found.values()) == {"below the limit": 40, "not among the most promising": 50}


@pytest.mark.parametrize("question", [{"as_of": day(1)}, {"known_as_of": day(1)}, {"deep": True}])
def test_no_text_that_was_forgotten_on_request_is_shown_whatever_is_asked(
    memory: Memory, question: dict[str, Any]
) -> None:
    ids = [memory.add(f"Invoice {number} was paid.") for number in range(160)]
    memory.forget(*ids[::2], at=2)
    left_out = memory.ask("paid invoice", at=5, limit=3, explain=True, **question).left_out or []
    shown = {UUID(one["id"]): one["text"] for one in left_out}
    assert len(shown) == len(left_out) > 100
    assert {text for id_, text in shown.items() if id_ in ids[::2]} == {""}


@pytest.mark.parametrize("question", [{}, {"tag": "x"}, {"category": "y"}, {"documents": False}])
def test_explaining_changes_no_result(memory: Memory, question: dict[str, Any]) -> None:
    memory.store(*[{"text": text, "tags": ["x"], "category": "y"} for text in [CELLO, *OTHERS]])
    gone = memory.add("Grandmother sold the violoncello.", at=1, tags=["x"], category="y")
    memory.forget(gone, at=2)
    plain = memory.ask("Where is the violoncello?", at=3, **question).results
    explained = memory.ask("Where is the violoncello?", at=3, explain=True, why=gone, **question).results
    assert [(one.id, one.score) for one in explained] == [(one.id, one.score) for one in plain]


def purging(memory: Memory, id_: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """Purge a fact just before its text is read, as a concurrent request may."""
    describe = candidates.describe

    def late(*arguments: Any) -> dict[UUID, Description]:
        memory.forget(id_, at=3, purge=True)
        return describe(*arguments)

    monkeypatch.setattr(candidates, "describe", late)


@pytest.mark.parametrize("question", [{}, {"explain": True}, {"explain": True, "limit": 1}, {"why": True}])
def test_what_is_purged_while_a_recall_reads_is_answered_as_it_was_when_it_began(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, question: dict[str, Any]
) -> None:
    memory.store("Grandmother plays the violoncello upstairs, the violoncello.", *OTHERS)
    id_ = memory.add(CELLO)
    purging(memory, id_, monkeypatch)
    asked = question | ({"why": id_} if "why" in question else {})
    found = memory.ask("the violoncello upstairs", at=3, **asked)
    texts = [one.text for one in found.results] + [one["text"] for one in found.left_out or []]
    assert CELLO in texts
    assert memory.value("select count(*) from facts where id = %s", id_) == 0


def test_what_is_purged_while_a_name_is_looked_up_is_answered_as_it_was(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = memory.add(CELLO, entity="Grandmother")
    purging(memory, id_, monkeypatch)
    results, _ = recall.lookup(memory.context, Lookup(entity="Grandmother"), day(3))
    assert [one.text for one in results] == [CELLO]


def test_why_reports_the_rule_that_hides_a_fact_and_its_rank_otherwise(memory: Memory) -> None:
    id_ = memory.add(CELLO, decay_class="checkpoint")
    memory.store(*OTHERS)
    found = why(memory, "the violoncello upstairs", id_, at=1)
    assert (found["recalled"], found["rule"], found["rank"]) == (False, "expired", 1)
    assert found["words"]["shared"] == ["upstair", "upstairs", "violoncello"]


def test_why_shows_the_score_and_the_rank_that_the_list_of_what_was_left_out_shows(memory: Memory) -> None:
    memory.store(*OTHERS)
    gone = [memory.add(text) for text in ("The invoice of June was paid twice.", "Invoice 7 of June", "Paid in June")]
    memory.forget(*gone, at=1)
    listed = {one["id"]: one for one in memory.ask("the invoice of June", at=2, explain=True).left_out or []}
    for id_ in map(str, gone):
        shown = why(memory, "the invoice of June", UUID(id_), at=2)
        assert (shown["score"], shown["rank"]) == (listed[id_]["score"], listed[id_]["rank"])


def test_why_finds_a_fact_whose_id_ends_in_zeros(memory: Memory) -> None:
    memory.store(*OTHERS)
    id_ = memory.add(CELLO, id=UUID("01a20900-0000-7000-8000-000000000000"))
    assert (why(memory, "violoncello", id_)["recalled"], why(memory, "violoncello", id_)["rank"]) == (True, 1)


def test_why_reports_the_rank_of_facts_below_the_limit(memory: Memory) -> None:
    first, second = memory.add("Tea at four, tea at five."), memory.add("Tea at six with a lot of other things.")
    memory.store(*OTHERS)
    found = why(memory, "tea", second, limit=1)
    assert (found["recalled"], found["rule"], found["rank"]) == (False, "below the limit", 2)
    assert found["words"]["rank"] == 2
    recalled = why(memory, "tea", first, limit=1)
    assert (recalled["recalled"], recalled["rule"], recalled["rank"]) == (True, None, 1)
    (result,) = memory.ask("tea", limit=1, explain=True).results
    assert (recalled["parts"], recalled["score"]) == (result.explain, result.score)


def test_why_reports_the_rank_by_meaning_of_facts_that_no_arm_found(memory: Memory) -> None:
    memory.store(*[f"The violoncello has string number {number}." for number in range(250)])
    far = memory.add("12345 67890")
    found = why(memory, "violoncello strings", far)
    assert found["rule"] == "found by no arm"
    assert found["words"] == {
        "asked": ["string", "strings", "violoncello"], "shared": [], "score": None, "rank": None, "of": 250
    }  # fmt: skip
    assert (found["meaning"]["rank"], found["meaning"]["of"], found["meaning"]["brought"]) == (251, 251, False)


def test_why_names_words_that_are_too_common_to_be_found_by(memory: Memory) -> None:
    memory.store(*[f"Tea at {number}." for number in range(600)], "A violoncello for tea.")
    common = memory.value("select id from facts where text = 'Tea at 599.'")
    found = why(memory, "tea violoncello", common)
    assert found["words"]["shared"] == ["tea"]
    assert found["rule"] in {"not among the most promising", "found by no arm", "below the limit"}


def test_why_needs_a_fact_of_the_namespace(memory: Memory) -> None:
    elsewhere = memory.add(CELLO, namespace="elsewhere")
    memory.add("Tea at four.")
    with pytest.raises(InvalidInputError, match=f"why: no fact {elsewhere} is in namespace 'default'"):
        memory.ask("cello", why=elsewhere)
    with pytest.raises(InvalidInputError, match="why: no fact"):
        memory.ask("cello", namespace="unknown", why=uuid4())


def test_why_finds_a_forgotten_fact_in_the_arms_that_would_have_brought_it(memory: Memory) -> None:
    id_ = memory.add(CELLO)
    memory.store(*OTHERS)
    memory.forget(id_, at=1)
    found = why(memory, "the violoncello upstairs", id_, at=2)
    assert (found["rule"], found["rank"], found["words"]["rank"]) == ("forgotten: asked", 1, 1)
    assert (found["meaning"]["rank"], found["meaning"]["brought"]) == (1, True)


def test_a_misspelt_word_is_read_as_one_that_facts_have_but_a_name_is_not(memory: Memory) -> None:
    cello, name = memory.add(CELLO), memory.add("Melanie keeps the keys.")
    memory.store(*OTHERS)
    memory.store("Invoice 7 was paid.", namespace="elsewhere")
    for namespace in ("default", "elsewhere"):
        search_indexes.count_lexemes(memory.context, namespace, day(0))
    asked = why(memory, "Where is the violincello?", cello)["words"]
    assert asked["shared"] == asked["asked"] == ["violoncello"]
    assert memory.ask("Where is the violincello?").results[0].text == CELLO
    together = memory.ask("Where is the violincello?", namespaces=("elsewhere", "default"))
    assert [one.text for one in together.results] == [CELLO]
    assert why(memory, "What did Melania keep?", name)["words"]["shared"] == ["keep"]


def test_a_name_that_no_fact_has_is_read_as_one_that_sounds_alike_unless_facts_have_that_as_a_word(
    memory: Memory,
) -> None:
    muhammad = memory.add("Muhhamed keeps the key of the boat.")
    king = memory.add("The king of the castle keeps no key.")
    memory.store(*OTHERS)
    memory.store("Zachary mends sails.", namespace="elsewhere")
    for namespace in ("default", "elsewhere"):
        search_indexes.count_lexemes(memory.context, namespace, day(0))
    assert why(memory, "What does Mohammed keep?", muhammad)["words"]["shared"] == ["keep", "muhham", "muhhamed"]
    together = memory.ask("What does Sachary mend?", namespaces=("elsewhere", "default"))
    assert [one.text for one in together.results][:1] == ["Zachary mends sails."]
    assert why(memory, "What does Kung keep?", king)["words"]["shared"] == ["keep"]
    memory.add("Mohammed sails.", at=1)
    assert why(memory, "What does Mohammed keep?", muhammad, at=1)["words"]["shared"] == ["keep"]


def test_a_word_that_a_new_or_an_ended_fact_has_is_not_misspelt(memory: Memory) -> None:
    ended = memory.add("The backup runs on hazelbrook.")
    memory.store({"text": "The backup runs on hazelbrock.", "supersedes": str(ended)}, *OTHERS, at=2)
    search_indexes.count_lexemes(memory.context, "default", day(2))
    assert "hazelbrock" in memory.ask("hazelbrook", at=4).results[0].text
    assert why(memory, "hazelbrook", ended, at=4, as_of=day(1))["words"]["shared"] == ["hazelbrook"]
    new = memory.add("The archive is on hazelbrick.", at=4)
    assert memory.ids("hazelbrick", at=4)[0] == new


def test_a_word_that_a_fact_in_deep_memory_has_is_not_misspelt(memory: Memory) -> None:
    deep = memory.add("The gate code of mirabelle is on the fridge.", decay_class="session")
    memory.store("The gate code of mirabella is in the drawer.", *OTHERS)
    memory.decay(3)
    memory.demote(at=3)
    search_indexes.count_lexemes(memory.context, "default", day(3))
    assert deep not in memory.ids("mirabelle", at=3)
    assert memory.ids("mirabelle", at=3, deep=True)[0] == deep


def test_a_deep_recall_compares_hidden_facts_with_the_question_as_it_does_visible_ones(memory: Memory) -> None:
    memory.store(*OTHERS)
    id_ = memory.add(CELLO, decay_class="session")
    memory.decay(2)
    shown = why(memory, PARAPHRASE, id_, at=3, deep=True)
    memory.forget(id_, at=4)
    hidden = why(memory, PARAPHRASE, id_, at=5, deep=True)
    assert (shown["rule"], hidden["rule"]) == (None, "forgotten: asked")
    assert hidden["parts"]["similarity"] == shown["parts"]["similarity"] > 0
