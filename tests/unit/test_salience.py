"""Salience: informative statements score higher than small talk, also with missing inputs."""

from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.ranking import LONG, SHORT
from workers.core.salience import FEW_FACTS, WEIGHTS, Statement, features, salience, words

COMMON = {"great": 80, "wow": 60, "hi": 70, "thanks": 75, "good": 90, "day": 85}


def one(
    text: str, role: str | None = None, known: dict[str, int] | None = None, facts: int = 100, before: str | None = None
) -> float:
    held = COMMON if known is None else known
    return float(salience([Statement(text, role, before)], held, facts, set(held))[0])


def test_an_informative_statement_scores_higher_than_small_talk() -> None:
    small_talk = ["Wow, that's great!", "Hi there! How are you?", "Thanks, have a good day."]
    stated = ["I moved to Porto in March and work as a nurse now.", "My sister is allergic to peanuts since 2019."]
    assert max(map(one, small_talk)) < 0.5 < min(map(one, stated))


def test_what_a_user_states_is_worth_more_than_what_an_assistant_answers_and_without_role_it_is_between() -> None:
    text = "The deadline for the grant is 14 May, and the budget is 12,000 euros."
    assert one(text, "assistant") < one(text) < one(text, "user")
    assert one(text, "system") == one(text, "tool") == one(text, "assistant")


def test_rare_words_score_higher_than_common_ones() -> None:
    assert one("The oboe needs a reed.", known={}) > one(
        "The oboe needs a reed.", known={"oboe": 90, "reed": 95, "needs": 90}
    )


def test_in_a_small_namespace_the_rarity_of_words_hardly_counts() -> None:
    text = "The oboe has a reed."

    def difference(facts: int) -> float:
        rare, common = ({"oboe": held, "reed": held} for held in (0, facts))
        return one(text, known=rare, facts=facts) - one(text, known=common, facts=facts)

    assert 0 < difference(1) < difference(FEW_FACTS) / 5


def test_features_are_in_the_order_of_the_weights() -> None:
    row = features([Statement("I bought 3 lamps in Braga on Monday.", "user")], {}, 0, set())[0]
    by_name = dict(zip(WEIGHTS, row.tolist(), strict=True))
    assert by_name["start"] == by_name["figure"] == by_name["change"] == by_name["time"] == by_name["user"] == 1
    assert by_name["new_words"] == pytest.approx(np.log(5))
    assert by_name["assistant"] == by_name["markdown"] == by_name["code"] == by_name["second_person"] == 0


@pytest.mark.parametrize("text", ["我喜欢喝咖啡", "コーヒーがすきだ", "ฉันชอบดื่มกาแฟ"])
def test_scripts_without_blanks_have_several_words(text: str) -> None:
    known = dict.fromkeys(words(text), 90)
    assert len(known) > 3
    assert max(map(len, known)) == 2
    assert one(text, known=known) < one(text, known={})
    row = features([Statement(text)], {}, 0, set())[0]
    assert np.log1p(2) ** 2 < row[list(WEIGHTS).index("words_squared")] < np.log1p(len(text)) ** 2


def test_what_answers_a_question_is_worth_more_and_what_asks_one_less() -> None:
    text = "Caroline paints horses"
    assert one(f"{text}?") < one(text) < one(text, before="What did you paint?")
    assert one(text, before="I like it.") == one(text)


def test_what_people_say_of_somebody_or_of_lately_is_worth_more_unless_it_is_said_to_an_assistant() -> None:
    plain, more = "The gate was painted green", "The gate was painted green by my aunt yesterday"
    added = [
        features([Statement(more, role)], {}, 0, set())[0] - features([Statement(plain, role)], {}, 0, set())[0]
        for role in (None, "user")
    ]
    places = [list(WEIGHTS).index(name) for name in ("people", "recent")]
    assert added[0][places].tolist() == pytest.approx([1 / 3, 1 / 3])
    assert added[1][places].tolist() == [0, 0]
    assert min(*WEIGHTS["people"], *WEIGHTS["recent"]) > 0


def test_words_that_no_older_statement_has_are_new() -> None:
    seen: set[str] = set()
    rows = features([Statement("The oboe needs a reed."), Statement("A reed for the oboe.")], {}, 0, seen)
    new = list(WEIGHTS).index("new_words")
    assert rows[:, new].tolist() == [pytest.approx(np.log(4)), 0.0]
    assert seen == {"oboe", "needs", "reed"}


def test_words_are_different_and_say_something() -> None:
    assert words("The oboe and the Oboe's reed, of the reed-maker") == ["oboe", "reed", "maker"]
    assert words("user_id") == ["user", "id"]


def test_words_are_those_of_the_text_index() -> None:
    assert words("Größer als Łódź") == ["grosser", "als", "lodz"]
    assert words("राज़ दिल्ली") == ["राज़", "दिल्ली"]
    known = {"grosser": 50, "lodz": 50, "als": 50}
    assert one("Größer als Łódź", known=known) == one("Grosser als Lodz", known=known)


def test_salience_does_not_depend_on_how_accents_are_written() -> None:
    text = "Chị Hương không ăn được đậu phộng"
    assert one(normalize("NFD", text)) == one(text)


def test_where_facts_are_long_rare_words_score_lower_and_in_between_both_weights_count() -> None:
    def gain(mean_words: float) -> float:
        rare, common = (
            salience(
                [Statement("The oboe needs a reed.")], {"oboe": held, "reed": held, "needs": 90}, 100, set(), mean_words
            )
            for held in (0, 90)
        )
        return float((rare - common)[0])

    assert gain(LONG) < gain((SHORT + LONG) / 2) < 0 < gain(SHORT) == gain(1)


def test_without_a_count_of_words_facts_are_as_long_as_the_statements_and_what_precedes_them() -> None:
    answer = "word " * 2 * LONG
    for before, mean_words in ((None, SHORT), ("", SHORT), (answer, LONG)):
        said = [Statement("I moved to Porto in March.", "user", before)]
        assert salience(said, {}, 100, set()) == salience(said, {}, 100, set(), mean_words)


def test_no_statement_has_no_salience() -> None:
    assert salience([], {}, 0, set()).shape == (0,)


@given(st.text(max_size=300), st.sampled_from([None, "user", "assistant", "tool"]), st.integers(0, 10**7))
def test_salience_of_any_text_is_within_its_bounds(text: str, role: str | None, facts: int) -> None:
    known = dict.fromkeys(words(text), facts + 3)
    assert 0 <= one(text, role, known, facts) <= 1
