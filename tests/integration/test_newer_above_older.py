"""A newer statement ranks above an older one that it makes outdated; both are returned."""

from typing import Any
from uuid import UUID

import pytest
from memory import Memory, day

from workers.admin import search_indexes
from workers.memory import supersede
from workers.memory.recall import updates
from workers.storage import candidates, links
from workers.storage.candidates import Scope
from workers.storage.connection import transaction

LIBRARY = "My reference library has 45 sources, 45 sources in my library, sources by theme in the reference library."
GROWN = "By the way, the library has grown to 52 sources, so how do I sort the books and the notes?"
ASKED = "How many sources are in my library?"


@pytest.fixture
def library(memory: Memory) -> tuple[UUID, UUID]:
    """Store two statements of different days about the same number, the older one with more matching words."""
    memory.store(*[f"Invoice {number} was paid." for number in range(20)])
    older = memory.add(LIBRARY, session="one", turn=1, source_date="2025-01-01T00:00:00Z")
    return older, memory.add(GROWN, session="two", turn=1, source_date="2025-01-20T00:00:00Z")


def ids(memory: Memory, question: str, first: int = 2, **asked: Any) -> list[UUID]:
    return [one.id for one in memory.ask(question, at=30, **asked).results[:first]]


def test_a_newer_figure_ranks_above_the_older_one(memory: Memory, library: tuple[UUID, UUID]) -> None:
    older, newer = library
    assert ids(memory, ASKED) == [newer, older]
    best, second = memory.ask(ASKED, at=30, explain=True).results[:2]
    assert best.explain is not None
    assert second.explain is not None
    assert (best.explain["updates"], second.explain["updates"]) == ([str(older)], [])
    assert (best.outdated_by, second.outdated_by) == (None, [str(newer)])
    (then,) = (
        one for one in memory.ask("How many sources did my library have at first?", at=30).results if one.id == older
    )
    assert then.outdated_by is None
    assert best.explain["newer"] > 0 == second.explain["newer"]
    assert best.score > second.score


def test_a_pair_that_two_rules_find_is_named_once(memory: Memory, library: tuple[UUID, UUID]) -> None:
    older, newer = library
    memory.link(newer, older, kind="UPDATES", at=3)
    best = memory.ask(ASKED, at=30, explain=True).results[0]
    assert best.explain is not None
    assert (best.id, best.explain["updates"]) == (newer, [str(older)])


def test_hidden_updates_do_not_take_the_places_of_visible_ones(memory: Memory, library: tuple[UUID, UUID]) -> None:
    older, _ = library
    visible, *hidden = [memory.add(f"Page {number} of the catalogue.") for number in range(links.MOST_NEWER + 1)]
    for at, one in enumerate([visible, *hidden], start=2):
        memory.link(one, older, kind="UPDATES", at=at)
    memory.forget(*hidden, at=20)
    with transaction(memory.context.database_url) as db:
        (tenant,) = db.execute("select namespace from facts").fetchone() or (0,)
        found = links.ask_updates(db, tenant, [older.bytes], Scope(day(30)))()
    assert [one.newer for one in found] == [visible.bytes]


@pytest.mark.parametrize("question", ["How many sources did my library have before?", "Is my library full of sources?"])
def test_the_older_one_stays_above_where_the_past_or_no_value_is_asked_for(
    memory: Memory, library: tuple[UUID, UUID], question: str
) -> None:
    assert ids(memory, question) == [*library]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("My door code is 1111", "The door code changed to 2222", "door code"),
        ("My door code is 1111", "The door code changed to 2222", "What is my door code?"),
        ("My weight is 82 kg", "My weight is 79 kg", "Please say my weight"),
        ("The meeting is on Tuesday at 10", "The meeting was moved to Thursday at 14", "When is the meeting?"),
        ("Anna works at Pegel", "Anna left Pegel and now works at Brevo", "Where does Anna work?"),
        ("I live in Paris", "I moved to Berlin last month", "Where do I live?"),
        ("My order is in Leipzig", "My order is in Erfurt", "Where is my order?"),
        ("The review is on Monday at 10", "The review was moved to Tuesday at 10", "When is the review?"),
    ],
)
@pytest.mark.parametrize("others", [0, 20])
def test_the_newer_of_two_sentences_ranks_above(
    memory: Memory, older: str, newer: str, question: str, others: int
) -> None:
    memory.store(*[f"Invoice {number} was paid." for number in range(others)])
    first, second = memory.add(older, at=0), memory.add(newer, at=1)
    assert ids(memory, question) == [second, first]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("Tim lives in Rome", "Anna lives in Oslo", "Where does Tim live?"),
        ("The first draft is due Monday", "The second draft is due Friday", "When is the first draft due?"),
        ("My dog is called Rex", "My cat is called Tom", "What is my dog called?"),
        ("The deadline was March 3", "The deadline is March 10", "What was the deadline before?"),
    ],
)
def test_a_newer_statement_about_something_else_does_not_rank_above(
    memory: Memory, older: str, newer: str, question: str
) -> None:
    first, _ = memory.add(older, at=0), memory.add(newer, at=1)
    assert ids(memory, question, first=1) == [first]


def test_an_update_is_noticed_before_the_words_are_counted_for_the_first_time(memory: Memory) -> None:
    memory.store(*[f"Invoice {number} was sent." for number in range(20)])
    older = memory.add("We pay 1,150 euros rent a month.")
    newer = memory.add("Our rent is 1,290 euros now.", at=1)
    assert ids(memory, "How much rent do we pay?") == [newer, older]


def test_updates_are_left_alone_if_settings_say_so(memory: Memory, library: tuple[UUID, UUID]) -> None:
    assert ids(memory.having(notice_updates=False), ASKED) == [*library]
    memory.choose({"notice_updates": False})
    assert ids(memory, ASKED) == [*library]


def test_the_newer_of_two_values_of_a_key_ranks_above(memory: Memory) -> None:
    older = memory.add("Mira lives in Riga, where Mira likes the river.", entity="Mira", key="lives in", value="Riga")
    newer = memory.add("A flat in Leipzig.", at=5, entity="mira", key="Lives in", value="Leipzig")
    assert ids(memory, "Mira, river, lives") == [newer, older]
    assert ids(memory, "Mira, river, lives before") == [older, newer]
    assert ("updates", 5) in memory.history(newer)
    assert ("updated", 5) in memory.history(older)
    supersede.accept(memory.context, "default", older, newer, day(6))
    assert ids(memory, "Mira, river, lives") == [older, newer]


OPERA = "I really love the opera: the opera voices and the opera drama. Suggest an evening at the opera."
TIRED = "By the way, I used to enjoy evenings at the opera, but I am not into it anymore."
RECOMMEND = "Can you suggest an evening of voices and drama?"


JANUARY = {"role": "user", "session": "one", "turn": 1, "source_date": "2025-01-01T00:00:00Z"}
LATER = {"role": "user", "session": "two", "turn": 1, "source_date": "2025-01-20T00:00:00Z"}


def outdated(memory: Memory) -> list[tuple[UUID, UUID]]:
    """Return the links from newer facts to those that they make outdated."""
    return memory.rows("select source, target from links where type = 'UPDATES' order by created_at, source")


@pytest.fixture
def invoices(memory: Memory) -> Memory:
    """Return a memory with other facts."""
    memory.store(*[f"Invoice {number} was paid." for number in range(20)])
    return memory


def test_a_statement_that_withdraws_an_older_one_is_linked_with_it_and_stands_above_it(invoices: Memory) -> None:
    older, newer = invoices.add(OPERA, **JANUARY), invoices.add(TIRED, **LATER)
    assert outdated(invoices) == [(newer, older)]
    assert ids(invoices, RECOMMEND) == [newer, older]
    assert ids(invoices.having(notice_updates=False), RECOMMEND, min_relevance=0) == [older, newer]
    assert ids(invoices, f"{RECOMMEND} As before?") == [older, newer]
    best = invoices.ask(RECOMMEND, at=30, explain=True).results[0]
    assert best.explain is not None
    assert best.explain["updates"] == [str(older)]


def test_what_withdraws_a_result_comes_with_it_though_it_holds_no_word_of_the_question(invoices: Memory) -> None:
    older = invoices.add("Joan Crawford is an actress with a lot of presence, and I love her movies.", **JANUARY)
    newer = invoices.add("Speaking of change, I used to prefer Joan Crawford.", **LATER)
    invoices.store(*[f"A movie for a rainy evening: number {number}." for number in range(300)])
    for graph in (True, False):
        found = ids(invoices.having(graph_in_recall=graph), "a movie with a lot of presence", first=10)
        assert found.index(newer) < found.index(older)


@pytest.mark.parametrize("question", ["a movie with a lot of presence", "Which actress has a lot of presence?"])
def test_what_many_withdraw_is_still_an_answer_below_the_newest_of_them(memory: Memory, question: str) -> None:
    older = memory.add("Joan Crawford is an actress with a lot of presence, and I love her movies.", **JANUARY)
    memory.store(*[f"A movie for a rainy evening: number {number}." for number in range(50)])
    newer = [
        memory.add(f"Speaking of change in week {number}, I used to prefer Joan Crawford.", at=number, **said)
        for number in range(14)
        for said in [LATER | {"source_date": f"2025-01-{number + 10}T00:00:00Z"}]
    ]
    about = {own for own, withdrawn in outdated(memory) if withdrawn == older}
    assert len(about) > links.MOST_NEWER - 1
    newest = [id_ for id_ in reversed(newer) if id_ in about][: updates.MOST_ABOVE]
    assert ids(memory, question, first=4) == [*newest, older]


def test_what_is_withdrawn_once_more_is_linked_wherever_its_row_lies(invoices: Memory) -> None:
    older = invoices.add("Joan Crawford is an actress with a lot of presence, and I love her movies.", **JANUARY)
    for number in range(supersede.MOST_OUTDATED + 2):
        if number == supersede.MOST_OUTDATED + 1:  # PostgreSQL writes the row again, behind the others
            assert invoices.rows("update facts set turn = 9 where id = %s returning id", older) == [(older,)]
        said = LATER | {"source_date": f"2025-01-{number + 10}T00:00:00Z"}
        newest = invoices.add(f"Speaking of change in week {number}, I used to prefer Joan Crawford.", **said)
    assert (newest, older) in outdated(invoices)


def test_a_long_chain_of_updates_does_not_hide_that_something_answers(invoices: Memory) -> None:
    chain = [invoices.add(OPERA, **JANUARY)]
    for number in range(12):
        chain.append(invoices.add(f"Week {number} was dry.", **LATER | {"session": str(number)}))
        invoices.link(chain[-1], chain[-2], kind="UPDATES")
    assert ids(invoices, OPERA, limit=20, first=20) == chain[::-1]


def test_an_older_statement_that_is_said_again_is_not_outdated_any_more(invoices: Memory) -> None:
    older, newer = invoices.add(OPERA, **JANUARY), invoices.add(TIRED, **LATER)
    assert ids(invoices, RECOMMEND) == [newer, older]
    invoices.store({"text": OPERA, **JANUARY}, at=5)
    assert ids(invoices, RECOMMEND, min_relevance=0) == [older, newer]


def test_a_question_about_the_past_does_not_make_what_it_finds_true_again(invoices: Memory) -> None:
    older, newer = invoices.add(OPERA, **JANUARY), invoices.add(TIRED, **LATER)
    invoices.touch(older, at=5)
    assert ids(invoices, RECOMMEND, min_relevance=0) == [newer, older]


def test_a_value_that_is_said_again_after_another_one_is_not_outdated_any_more(
    memory: Memory, library: tuple[UUID, UUID]
) -> None:
    older, newer = library
    for at, session, said in (5, "three", "2025-01-10"), (6, "four", "2025-01-25"):
        assert ids(memory, ASKED) == [newer, older]  # what was said before the newer one changes nothing
        memory.store({"text": LIBRARY, "session": session, "turn": 1, "source_date": said}, at=at)
    assert ids(memory, ASKED) == [older, newer]
    memory.store({"text": GROWN, "session": "five", "turn": 1, "source_date": "2025-01-28"}, at=8)
    assert ids(memory, ASKED) == [newer, older]


@pytest.mark.parametrize("touch", [True, False])
def test_a_value_that_is_said_again_makes_the_one_between_outdated(memory: Memory, *, touch: bool) -> None:
    def say(text: str, session: str, month: int) -> None:
        said = {"text": text, "session": session, "turn": 0, "source_date": f"2024-{month:02}-01"}
        memory.store(said, at=month, touch=touch)

    rome, oslo = "My city is now Rome.", "My city is Oslo."
    for text, session, month in (rome, "a", 1), (oslo, "c", 3), (rome, "b", 2):
        say(text, session, month)
    assert [one.text for one in memory.ask("What is my city?", at=30).results] == [oslo, rome]
    say(rome, "d", 4)
    assert [one.text for one in memory.ask("What is my city?", at=30).results] == [rome, oslo]


def test_of_two_values_of_a_key_the_one_that_was_stored_last_again_is_not_outdated(memory: Memory) -> None:
    city = {"entity": "Tim", "key": "city"}
    rome = {"text": "Tim lives in the city of Rome.", "value": "Rome", **city}
    older, newer = memory.add(**rome), memory.add("Tim is in Oslo.", value="Oslo", at=1, **city)
    assert ids(memory, "In which city does Tim live?") == [newer, older]
    memory.store(rome, at=5)
    assert ids(memory, "In which city does Tim live?") == [older, newer]


def test_a_forgotten_statement_withdraws_nothing(invoices: Memory) -> None:
    older, newer = invoices.add(OPERA, **JANUARY), invoices.add(TIRED, **LATER)
    invoices.forget(newer, at=5)
    assert newer not in ids(invoices, RECOMMEND, min_relevance=0)
    assert ids(invoices, RECOMMEND, min_relevance=0)[0] == older


def test_a_link_by_hand_outdates_too_and_makes_no_fact_worth_more(invoices: Memory) -> None:
    older, newer = invoices.add(OPERA, **JANUARY), invoices.add("Evenings are for reading.", **LATER)
    worth = invoices.rows("select fact, worth from activity order by fact")
    invoices.link(newer, older, kind="UPDATES", at=3)
    assert ids(invoices, RECOMMEND, min_relevance=0)[:2] == [newer, older]
    assert invoices.rows("select fact, worth from activity order by fact") == worth
    invoices.link(newer, older, kind="RELATED_TO", at=3)
    assert invoices.rows("select fact, worth from activity order by fact") != worth


def test_withdrawals_are_noticed_within_a_batch_and_once(invoices: Memory) -> None:
    turns = [{"text": OPERA, **JANUARY}, {"text": TIRED, **LATER}]
    for _ in range(2):
        invoices.store(*turns, at=1)
    ((newer, older),) = outdated(invoices)
    assert ids(invoices, RECOMMEND) == [newer, older]
    invoices.store({"text": OPERA, **JANUARY}, namespace="other")
    assert len(outdated(invoices)) == 1


def test_a_withdrawal_is_noticed_though_the_older_statement_is_stored_after_it(invoices: Memory) -> None:
    newer = invoices.add(TIRED, at=30, **LATER)
    older = invoices.add(OPERA, at=31, **JANUARY)
    assert outdated(invoices) == [(newer, older)]
    assert ids(invoices, RECOMMEND) == [newer, older]


@pytest.mark.parametrize(
    "late",
    [
        {"text": OPERA, **JANUARY, "source_date": "2025-01-25T00:00:00Z"},
        {"text": OPERA, **JANUARY, "role": "assistant"},
        {"text": "I like evenings of football.", **JANUARY},
        {"text": OPERA},
    ],
)
def test_what_was_said_by_others_of_else_or_later_is_not_withdrawn_by_what_is_there(
    invoices: Memory, late: dict[str, Any]
) -> None:
    invoices.add(TIRED, at=30, **LATER)
    invoices.store(late, at=31)
    assert outdated(invoices) == []


@pytest.mark.parametrize(("most", "noticed"), [(0, 0), (2, 1)])
def test_a_limited_number_of_facts_is_read_for_later_withdrawals_whenever_they_were_said(
    invoices: Memory, monkeypatch: pytest.MonkeyPatch, most: int, noticed: int
) -> None:
    monkeypatch.setattr(supersede, "MOST_READ", most)
    invoices.add("I no longer play chess.", at=1, role="user", source_date="2024-01-01T00:00:00Z")
    invoices.add(TIRED, at=30, **LATER)
    invoices.add(OPERA, at=31, **JANUARY)
    assert len(outdated(invoices)) == noticed


def test_of_many_later_withdrawals_the_newest_are_compared(invoices: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supersede, "MOST_LATER", 1)
    invoices.add("I no longer play chess.", at=29, **LATER | {"source_date": "2025-01-19T00:00:00Z"})
    newer = invoices.add(TIRED, at=30, **LATER)
    older = invoices.add(OPERA, at=31, **JANUARY)
    assert outdated(invoices) == [(newer, older)]


def test_nothing_is_noticed_if_settings_say_so(invoices: Memory) -> None:
    invoices.add(OPERA, **JANUARY)
    invoices.choose({"notice_updates": False})
    invoices.add(TIRED, **LATER)
    assert outdated(invoices) == []


def test_what_is_in_a_file_withdraws_nothing(invoices: Memory) -> None:
    invoices.add(OPERA)
    invoices.add(TIRED, at=1, kind="chunk", source="/books/novel.md")
    assert outdated(invoices) == []
    invoices.add(TIRED, at=2)
    assert len(outdated(invoices)) == 1


def test_words_of_many_facts_are_not_searched_for(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.store(*[f"Evening {number} at the opera." for number in range(200)])
    search_indexes.count_lexemes(memory.context, "default", day(0))
    searched: list[list[str]] = []
    matches = candidates.matches

    def noting(db: Any, owner: Any, lexemes: list[str], *rest: Any) -> Any:
        searched.append(lexemes)
        return matches(db, owner, lexemes, *rest)

    monkeypatch.setattr(candidates, "matches", noting)
    memory.add("I used to like evenings at the opera.")
    assert searched == []
    memory.add("I used to like evenings of chess.")
    assert [sorted(one) for one in searched] == [["chess", "even"]]


def test_a_longer_statement_withdraws_an_older_one_too(invoices: Memory) -> None:
    older = invoices.add(OPERA, **JANUARY)
    longer = f"{TIRED} {'What else is there to say about it? ' * 14}"
    assert len(longer) > candidates.SHORT
    newer = invoices.add(longer, **LATER)
    assert ids(invoices, RECOMMEND, min_relevance=0) == [newer, older]


def test_what_is_withdrawn_of_one_person_is_not_withdrawn_of_another(invoices: Memory) -> None:
    own, anna = invoices.add("I play tennis on Mondays."), invoices.add("plays tennis on Fridays", entity="Anna")
    newer = invoices.add("Anna no longer plays tennis.", at=1)
    assert outdated(invoices) == [(newer, anna)]
    assert ids(invoices, "When do I play tennis?", first=1) == [own]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TIRED, LATER | {"role": "assistant"}),
        (TIRED, LATER | {"source_date": "2024-01-01T00:00:00Z"}),
        ("By the way, I used to enjoy evenings of football, but I am not into it anymore.", LATER),
        ("By the way, I enjoy evenings at the opera.", LATER),
    ],
)
def test_other_speakers_subjects_and_times_and_mere_mentions_withdraw_nothing(
    invoices: Memory, text: str, said: dict[str, Any]
) -> None:
    older = invoices.add(OPERA, **JANUARY)
    invoices.add(text, **said)
    assert outdated(invoices) == []
    assert ids(invoices, RECOMMEND, min_relevance=0)[0] == older
