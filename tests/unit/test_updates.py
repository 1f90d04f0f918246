"""Which statement makes an older one outdated, and its rank then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core import updates


@pytest.mark.parametrize(
    "question",
    [
        "How many sources are in my library?", "What is the deadline?", " When is the call?", "Tell me the door code.",
        "door code", "current deadline of the audit", "Mira's employer", "order number",
        "What is in my order?", "Which cloth do I use to clean the oven?",
    ],
)  # fmt: skip
def test_a_question_for_a_value_asks_for_the_present(question: str) -> None:
    assert updates.asks_for_a_value(question)
    assert not updates.asks_for_the_past(question)


@pytest.mark.parametrize(
    "question",
    [
        "What was the deadline at first?",
        "How much did my score change?",
        "How many did I have before?",
        "Where did we use to live?",
        "Which came first?",
        "In what order did I visit them?",
        "Which did I visit, in order?",
        "What is the order in which they came?",
    ],
)
def test_a_question_for_the_past_or_for_both_asks_for_no_present_value(question: str) -> None:
    assert updates.asks_for_the_past(question)
    assert not updates.asks_for_a_value(question)


@pytest.mark.parametrize("question", ["Does Mira sing?", "Who sings?", "Mira sings alto?", "Why does Mira sing alto?"])
def test_other_questions_ask_for_no_value(question: str) -> None:
    assert not updates.asks_for_a_value(question)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My weight is 82 kg", "My weight is 79 kg"), ("The deadline is March 3", "The deadline is March 10"),
        ("My favourite colour is blue", "My favourite colour is green now"), ("Tim lives in Rome", "Tim lives in Oslo"),
        ("The user prefers dark mode", "The user prefers light mode"), ("My boss is Karl", "My new boss is Petra"),
        ("The code is 555-1234", "The code is 555-9876"), ("My son is 4 years old", "My son is 5 years old"),
        ("Ann has a 1-year-old boy", "Ann has a 2-year-old boy"),
        ("The meeting is on Tuesday", "The meeting is on Friday"), ("The password is tulip7", "The password is rose8"),
    ],
)  # fmt: skip
def test_a_statement_may_be_made_again_with_another_value(older: str, newer: str) -> None:
    assert updates.has_another_value(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My weight is 82 kg", "My weight is 82 kg!"), ("Anna likes tea", "Anna likes coffee"),
        ("Anna likes tea", "Ben drinks coffee"), ("I visited Rome in May", "I visited Oslo in May"),
        ("My code is blue", "My old code was red"), ("His code is blue", "His old code was red"),
        ("I'm meeting Anna in May", "I'm meeting Ben in May"), ("Tea is in the drawer", "The key is behind the clock"),
        ("Mira sings alto in the choir", "Mira works as an analyst"),
        ("The deadline is March 3", f"The deadline is March 10. {'And so on. ' * 20}"),
        ("I am allergic to shellfish", "I am allergic to peanuts"),
        ("My weight is 79 kg", "Ben's weight is 82 kg"), ("My phone number is 1", "My sister's phone number is 2"),
        ("The door code is known", "The door code is known to 5"), ("Mira", "Anna"),
        ("Mira sings alto", "Mira sings alto loudly"),
    ],
)  # fmt: skip
def test_other_statements_are_no_other_values(older: str, newer: str) -> None:
    assert not updates.has_another_value(newer, older)


@pytest.mark.parametrize(
    ("older", "newer", "is_other"),
    [
        ("The review is on Monday at 10", "The review was moved to Tuesday at 10", True),
        ("My pass ends on 1 March", "My pass was extended to 1 September", True),
        ("The review is on Mondays at 10", "The review of Monday at 10 was cancelled", False),
        ("The review is on Monday at 10", f"The review was moved to Tuesday at 10. {'And so on. ' * 20}", False),
    ],
)
def test_a_short_text_that_reports_a_change_may_state_the_same_figure_on_another_day(
    older: str, newer: str, *, is_other: bool
) -> None:
    assert updates.outdates(newer, older) is is_other


def test_a_short_text_that_reports_a_change_may_state_another_name() -> None:
    assert updates.outdates("Anna left Pegel and now works at Brevo", "Anna works at Pegel")
    assert not updates.outdates("Anna works at Brevo", "Anna works at Pegel")
    assert not updates.outdates("Anna now works at Pegel", "Anna works at Pegel")
    assert not updates.outdates("Ben left the house and now walks to Brevo", "Anna works at Pegel")


@pytest.mark.parametrize(
    ("older", "newer", "is_move"),
    [
        ("I live in Paris", "I moved to Berlin last month", True),
        ("The user lives in Paris", "The user relocated to Berlin", True),
        ("Anna works at Pegel", "Anna joined Brevo in May", True),
        ("Tim lives in Rome", "Anna moved to Oslo", False),
        ("I live in Paris", "We moved the sofa to the attic", False),
        ("I live in Paris", "I moved to Paris", False),
        ("I live in Paris", "In my former life I moved to Berlin", False),
        ("I heard a concert in Paris", "I moved to Berlin", False),
        ("I live in Paris", "I moved my savings to Commerzbank", False),
        ("I live in Paris", "I have not moved to Berlin", False),
        ("I live in Paris", "My sister moved to Berlin", False),
        ("My sister lives in Paris", "My sister moved to Berlin", True),
        ("My sister lives in Paris", "My brother moved to Berlin", False),
        ("My friend Tom lives in Rome", "Tom moved to Oslo", True),
        ("I live in Paris", "My wife and I moved to Berlin", True),
        ("I live in Paris", "Last week I moved to Paris", False),
        ("I work at Siemens", "I hired Tom as a plumber", False),
        ("I work at Siemens", "I joined a gym near Alexanderplatz", False),
        ("I work at Siemens", "I was hired by Bosch", True),
        ("I live in Paris with my partner Jonas", "I now live in Berlin", True),
        ("I live in Paris with my partner Jonas", "We live in Berlin now", True),
        ("I live in Paris with my partner Jonas", "My sister now lives in Berlin", False),
        ("I live in Paris with my partner Jonas", "I live in Paris now", False),
        ("I live in Paris with my partner Jonas", "I live in a house by Taut that is now a monument", False),
        ("I work as a nurse at Siemens in Ulm", "I now work at Bosch", True),
        ("I work as a nurse at Siemens in Ulm", "I work at a startup of Rocket that is now public", False),
        ("I work as a nurse at Siemens in Ulm", "I work for Bosch now", True),
        ("I work as a nurse at Siemens in Ulm", "Anna now works at Bosch", False),
    ],
)
def test_a_move_outdates_where_someone_lived_or_worked(older: str, newer: str, *, is_move: bool) -> None:
    assert updates.says_a_move(newer, older) is is_move


def test_only_a_question_about_home_or_work_may_be_answered_by_a_move() -> None:
    assert all(map(updates.asks_for_a_place, ("Where do I live?", "home city", "What is Anna's job?")))
    assert not any(
        map(updates.asks_for_a_place, ("When is the concert?", "Do I live in Paris?", "Where did I live before?"))
    )


def test_other_figures_and_a_word_of_change_make_an_older_text_outdated() -> None:
    assert updates.outdates("The library now has 52 sources.", "The library has 45 sources.")
    assert not updates.outdates("The library has 52 sources.", "The library has 45 sources.")
    assert not updates.outdates("The library now has 45 sources.", "The library has 45 sources.")
    assert not updates.outdates("The library now has ४५ sources.", "The library has 45 sources.")
    assert updates.outdates("The library now has ५२ sources.", "The library has 45 sources.")
    assert not updates.outdates("Sources that the library now has: 45.", "The library has 45 sources.")
    assert not updates.outdates("The library has new sources.", "The library has 45 sources.")


def test_the_newest_ranks_highest_and_correct_orders_stay() -> None:
    scores, stated_at = np.array([2.0, 1.0, 1.5, 3.0]), np.array([0.0, 2.0, 1.0, 3.0])
    above = updates.with_newer_above(scores, stated_at, [(1, 0), (2, 0)])
    assert np.argsort(-above).tolist() == [3, 1, 2, 0]
    assert above[[0, 3]].tolist() == [2.0, 3.0]
    assert updates.with_newer_above(scores, stated_at, [(3, 0)]).tolist() == scores.tolist()


def test_the_newest_ranks_highest_also_above_one_that_makes_a_better_one_outdated_too() -> None:
    above = updates.with_newer_above(np.array([2.0, 3.0, 1.0, 0.0]), np.arange(4.0), [(2, 0), (2, 1), (3, 0)])
    assert np.argsort(-above).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("pairs", [[(2, 1), (1, 0)], [(1, 0), (2, 1)]])
@pytest.mark.parametrize("dates", [[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
def test_what_makes_one_of_those_outdated_comes_too_in_several_steps(
    dates: list[float], pairs: list[tuple[int, int]]
) -> None:
    stated_at = np.array(dates)
    above = updates.with_newer_above(np.array([4.0, 3.0, 2.0, 1.0]), stated_at, pairs)
    assert np.argsort(-above).tolist() == [2, 1, 0, 3]
    oldest, newest = np.array([True, False, False, False]), np.array([False, False, True, False])
    assert updates.with_newer_of(oldest, stated_at, pairs).tolist() == [True, True, True, False]
    assert updates.with_newer_of(newest, stated_at, pairs).tolist() == newest.tolist()


def test_links_are_put_in_order_in_time_that_grows_with_their_number() -> None:
    pairs = [(newer, older) for newer in range(30_000) for older in range(max(newer - 5, 0), newer)]
    ranked = updates.with_newer_above(np.zeros(30_000), np.arange(30_000.0), pairs)
    assert np.all(np.diff(ranked) > 0)


def test_links_by_hand_in_a_circle_are_all_seen_once() -> None:
    circle, dates = [(1, 0), (2, 1), (0, 2)], np.zeros(3)
    assert updates.with_newer_of(np.array([True, False, False]), dates, circle).all()
    assert updates.with_newer_above(np.zeros(3), dates, circle).max() < 1e-4


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("I used to like opera.", "opera"),
        ("I actually used to be really into Tayari Jones, but now I am not.", "Tayari Jones"),
        ("She used to live in Riga and now lives in Leipzig.", "live in Riga"),
        ("We're not into chamber music anymore!", "into chamber music"),
        ("I really don't like Count Basie any more.", "Count Basie"),
        ("Please also remove 'The agency.' from the list.", "'The agency.'"),
        ("I've just finished the report for Mira.", "the report for Mira"),
        ("I no longer need to water the plants.", "need to water the plants"),
        ("We switched from oat milk to soy milk.", "oat milk"),
        ("I take the tram instead of the bus.", "the bus"),
        ("I sold the Toyota and bought a Volvo.", "Toyota"),
        ("We have finally got rid of our old sofa.", "sofa"),
    ],
)
def test_what_a_text_withdraws_is_named_in_its_words(text: str, subject: str) -> None:
    assert [one.text for one in updates.withdrawn_subjects(f"Hello there. {text}")] == [subject]


def test_what_was_finished_is_identified_by_two_words() -> None:
    words = {"I no longer like opera.": 1, "I finished reading Dune.": 2}
    assert {text: one.least_words for text in words for one in updates.withdrawn_subjects(text)} == words


@pytest.mark.parametrize(
    "text",
    [
        "Any more tips for baking?", "The rule is used to prove a theorem.", "What have you been up to lately?",
        "The audit was completed on June 28.", "I have finished 90% of it.", "They sold a house in May.",
    ],
)  # fmt: skip
def test_words_of_change_in_other_senses_withdraw_nothing(text: str) -> None:
    assert updates.withdrawn_subjects(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Please don't remove oat milk from the list.", "Never delete the photos from the phone.",
        "I have not finished the report for Mira.", "I have not sold the house.",
        "Should I remove oat milk from the list?",
        "Do we have to take out the loan from the bank?", "If I no longer liked opera, what would be left?",
        "I wonder whether she no longer likes opera.", "What if we stopped asking questions?",
        "How do I remove red wine from wool?", "How to delete photos from a phone?",
    ],
)  # fmt: skip
def test_what_is_denied_or_asked_or_only_supposed_withdraws_nothing(text: str) -> None:
    assert updates.withdrawn_subjects(text) == []


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Can you remove oat milk from the list?", "oat milk"),
        ("I'm not sure, but I used to like opera.", "opera"),
        ("If you can, please remove oat milk from the list.", "oat milk"),
        ("I do not know why I used to like opera.", "opera"),
    ],
)
def test_a_doubt_about_something_else_still_withdraws(text: str, subject: str) -> None:
    assert [one.text for one in updates.withdrawn_subjects(text)] == [subject]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I play tennis on Mondays", "My son no longer plays tennis"), ("Anna likes tea", "Ben no longer likes tea"),
        ("I like evenings at the opera", "My son doesn't like evenings at the opera any more"),
        ("My mother takes lisinopril", "I no longer take lisinopril"), ("Anna lived in Riga", "I used to live in Riga"),
        ("Mira's passport is valid", "My passport is no longer valid"),
        ("My passport is valid", "Mira's passport is no longer valid"),
        ("Our parents own a house in Kiel", "We sold our house in Kiel"),
        ("Tom works at Bosch", "The heating no longer works"), ("There are 12 chairs", "The fee changed from 12 to 15"),
    ],
)  # fmt: skip
def test_what_a_text_withdraws_is_not_what_is_said_of_another_person_or_thing(older: str, newer: str) -> None:
    assert [one.is_of_another(older) for one in updates.withdrawn_subjects(newer)] == [True]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My son plays tennis", "My son no longer plays tennis"), ("He plays tennis", "Tom no longer plays tennis"),
        ("The user likes tea", "I no longer like tea"), ("I like tea", "The user no longer likes tea"),
        ("Lisinopril helps", "I no longer take lisinopril"), ("My dad gave me the car", "I sold my car"),
        ("My son sings with me", "I no longer sing with my son"), ("Buy milk", "Please remove milk from the list"),
        ("The fee is 12", "The fee changed from 12 to 15"), ("Anna has a car. " * 20, "I sold my car"),
    ],
)  # fmt: skip
def test_what_a_text_withdraws_may_be_said_in_other_words(older: str, newer: str) -> None:
    assert [one.is_of_another(older) for one in updates.withdrawn_subjects(newer)] == [False]


SAID = st.sampled_from(
    [
        "I", "WE", "used to", "no longer", "never", "isn't", "any", "more", "anymore", "Please", "also", "from",
        "remove", "delete", "take out", "has", "have", "just", "Finished", "completed", "cancelled", "canceled", "quit",
        "gave up", "given up", "moved on from", "\u017ftopped", "stopped", "instead of", "rather than", "changed",
        "switched", "moved", "gone off", "cross off", "to", ".", "\n", "tea",
    ]
)  # fmt: skip


@given(said=st.lists(SAID, max_size=12).map(" ".join))
def test_what_rules_texts_out_quickly_changes_nothing(said: str) -> None:
    assert updates.withdrawn_subjects(said) == updates.withdrawn_subjects(f"{said}\n\u00e9")


def test_long_runs_of_marks_and_long_sentences_withdraw_nothing() -> None:
    assert updates.withdrawn_subjects("." * 65_000) == []
    assert updates.withdrawn_subjects("I used to like opera, " * 100) == []
    assert len(updates.withdrawn_subjects("I used to like opera. " * 100)) == updates.MAX_SUBJECTS


def test_a_long_run_of_blanks_costs_little() -> None:
    assert updates.withdrawn_subjects(f"remove{' ' * 480}\n" * 30_000) == []
    assert [one.text for one in updates.withdrawn_subjects("Remove  oat \t milk  from it.")] == ["oat milk"]


def test_a_text_that_contains_most_of_a_subject_with_a_rare_word_of_it_is_withdrawn() -> None:
    held = np.array([[True, True, False], [False, True, True], [True, False, True], [True, True, True]])
    information = np.array([3.0, 2.0, 1.0])
    assert updates.withdrawn(held, information, most=4.0).round(3).tolist() == [0.833, 0, 0, 1]
    assert not updates.withdrawn(held, information, most=7.0).any()


def test_the_rarest_words_tell_a_subject_until_the_others_are_not_enough() -> None:
    assert updates.decisive(np.array([3.0, 2.0, 1.0])) == 1
    assert updates.decisive(np.ones(10)) == 4
    assert updates.decisive(np.ones(1)) == 1


def test_a_subject_may_be_named_by_texts_that_have_the_first_letters_of_one_of_its_words() -> None:
    said = updates.beginnings(["I love the Opera.", "Bananas are cheap."])
    assert updates.may_be_named("operas in town", said)
    assert updates.may_be_named("it", said)  # too short to be excluded
    assert not updates.may_be_named("football", said)


@pytest.mark.parametrize(
    "key", ["allergies", "allergy", "food_allergy", "Likes", "hobbies", "children", "sister", "pets", "wants to visit"]
)
def test_a_key_of_several_things_may_have_several_values_at_once(key: str) -> None:
    assert updates.may_have_several(key)


@pytest.mark.parametrize(
    "key",
    [
        "city",
        "door code",
        "address",
        "status",
        "opening hours",
        "launch_date",
        "boss",
        "number of children",
        "oldest sister",
        "",
    ],
)
def test_a_key_of_one_thing_has_one_value(key: str) -> None:
    assert not updates.may_have_several(key)
