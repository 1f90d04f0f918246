"""Estimates: content salience is the initial strength, and is estimated again after a namespace has grown tenfold."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.admin import search_indexes
from workers.coordination import signals
from workers.core.ranking import LONG
from workers.core.salience import Statement, salience
from workers.memory import estimate
from workers.memory.edit import edit_within
from workers.memory.facts import show
from workers.storage import activity, namespaces
from workers.storage.connection import connect

SAYS_MUCH, SAYS_LITTLE = "I moved to Porto in March 2024 and work as a nurse now.", "Wow, that's great!"


@pytest.fixture
def estimated(memory: Memory) -> Memory:
    """Return a memory with the default salience setting, unlike other tests."""
    return memory.having(salience="estimated")


def strengths(memory: Memory) -> dict[str, float]:
    return dict(memory.rows("select text, base from activity join facts on id = fact"))


def test_a_fact_is_as_strong_at_first_as_its_content_is_salient(estimated: Memory) -> None:
    much, little = estimated.add(SAYS_MUCH), estimated.add(SAYS_LITTLE)
    found = [show(estimated.context, "default", id_, day(0)) for id_ in (much, little)]
    assert [one["strength"] for one in found] == pytest.approx([one["content_salience"] for one in found], abs=1e-6)
    assert found[0]["strength"] > 0.5 > found[1]["strength"]


def test_a_salience_that_was_given_is_the_strength_and_so_is_that_of_an_archive(estimated: Memory) -> None:
    estimated.add(SAYS_MUCH, salience=0.25)
    estimated.add(SAYS_LITTLE, salience=0.9, strength=0.75)
    assert strengths(estimated) == pytest.approx({SAYS_MUCH: 0.25, SAYS_LITTLE: 0.75})


def test_the_documented_constant_is_a_setting(memory: Memory) -> None:
    memory.add(SAYS_MUCH)
    assert strengths(memory) == {SAYS_MUCH: 0.5}


def test_how_long_facts_are_by_the_last_count_decides_what_their_words_are_worth(estimated: Memory) -> None:
    for namespace, times in (("notes", 1), ("chats", LONG)):
        estimated.store(
            *({"text": f"The oboe of room {room} {'sounds ' * times}"} for room in range(20)), namespace=namespace
        )
        search_indexes.count_lexemes(estimated.context, namespace, day(0))
        estimated.add("The oboe sounds well.", namespace=namespace)
    statement, held = [Statement("The oboe sounds well.")], {"oboe": 20, "sounds": 20}
    expected = {
        namespace: salience(statement, held, 20, set(held), mean_words)[0]
        for namespace, mean_words in (("notes", 1), ("chats", LONG))
    }
    found = {namespace: content(estimated, "The oboe sounds well.", namespace) for namespace in expected}
    assert found == pytest.approx(expected, abs=1e-6)
    assert abs(expected["notes"] - expected["chats"]) > 0.01


def content(memory: Memory, text: str, namespace: str = "default") -> float:
    """Return the content salience of a fact."""
    where = "join namespaces on namespaces.id = namespace where text = %s and name = %s"
    return float(memory.value(f"select content_salience from facts {where}", text, namespace))


def test_a_namespace_that_has_grown_tenfold_is_estimated_again_but_for_what_was_given(estimated: Memory) -> None:
    used = estimated.add("The oboe needs a reed from Porto.")
    estimated.touch(used, at=0)
    estimated.add("The oboe was sold in Braga.", salience=0.25)
    estimated.add("The oboe is tuned every winter.")
    before = strengths(estimated)
    estimated.store(*({"text": f"The oboe played piece {number}."} for number in range(60)))
    search_indexes.count_lexemes(estimated.context, "default", day(0))
    assert estimate.grown_tenfold(estimated.context) == ["default"]
    assert estimate.estimate_again(estimated.context, "default", day(0)) == 62
    after = strengths(estimated)
    assert after["The oboe is tuned every winter."] != before["The oboe is tuned every winter."]
    for text in ("The oboe needs a reed from Porto.", "The oboe was sold in Braga."):
        assert after[text] == before[text]
    assert estimate.grown_tenfold(estimated.context) == []
    assert estimate.estimate_again(estimated.context, "default", day(0)) == 62
    assert strengths(estimated) == after


def test_an_estimate_of_a_role_that_is_edited_meanwhile_is_not_written(estimated: Memory) -> None:
    said = estimated.add("I moved to Leipzig with my dog Rex.", role="user")
    with ThreadPoolExecutor(1) as pool, connect(estimated.context.database_url) as db:
        tenant = namespaces.id_of(db, "default")
        activity.lock(db, tenant, [said])
        estimating = pool.submit(estimate.estimate_again, estimated.context, "default", day(1))
        wait_for(lambda: bool(estimated.value(LOCK_WAITS)))
        edit_within(estimated.context, db, tenant, {said: {"role": "assistant"}}, day(1))
        db.commit()
        estimating.result()
    assert estimated.value("select content_salience from facts") is None


def test_a_grown_namespace_is_estimated_again_by_one_caller_and_until_that_is_done(
    estimated: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimated.store(*({"text": f"The oboe played piece {number}."} for number in range(20)))
    search_indexes.count_lexemes(estimated.context, "default", day(0))

    def interrupted(*_: object) -> None:
        assert estimate.estimate_grown(estimated.context, day(0), math.inf) == 0
        redis, key = estimated.context.redis, f"{signals.WORKING}:estimate:default"
        assert redis.ttl(key) <= 6  # so that the lock of a killed caller expires soon
        assert redis.persist(key)
        while redis.ttl(key) < 0:  # until it is renewed
            time.sleep(0.01)
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr(estimate, "ALONE_SECONDS", 6.0)
        patched.setattr(estimate, "_estimate_batch", interrupted)
        with pytest.raises(InterruptedError):
            estimate.estimate_grown(estimated.context, day(0), math.inf)
    assert estimate.estimate_grown(estimated.context, day(0), math.inf) == 20
    assert estimate.estimate_grown(estimated.context, day(0), math.inf) == 0


def test_grown_namespaces_are_estimated_the_smallest_first_and_none_is_begun_too_late(estimated: Memory) -> None:
    for namespace, facts in (("large", 9), ("small", 3), ("middle", 6)):
        estimated.store(*({"text": f"The oboe played piece {number}."} for number in range(facts)), namespace=namespace)
        search_indexes.count_lexemes(estimated.context, namespace, day(0))
    assert estimate.grown_tenfold(estimated.context) == ["small", "middle", "large"]
    assert estimate.estimate_grown(estimated.context, day(0), -math.inf) == 0
    assert estimate.estimate_grown(estimated.context, day(0), math.inf) == 18
    assert estimate.grown_tenfold(estimated.context) == []


@pytest.mark.parametrize("given", [1e-300, 5e-324, 0.0])
def test_the_least_strength_that_was_given_stays_when_content_is_estimated_again(
    estimated: Memory, given: float
) -> None:
    estimated.add(SAYS_MUCH, strength=given)
    estimated.add(SAYS_LITTLE)
    estimated.rows("update facts set content_salience = 0.5 where text = %s", SAYS_MUCH)
    assert estimate.estimate_again(estimated.context, "default", day(0)) == 2
    assert strengths(estimated)[SAYS_MUCH] == given


@pytest.mark.parametrize("is_of_an_earlier_version", [False, True])
def test_an_estimate_that_was_imported_is_estimated_again_if_the_archive_says_so(
    estimated: Memory, twin: Memory, *, is_of_an_earlier_version: bool
) -> None:
    estimated.add(SAYS_MUCH)
    estimated.add(SAYS_LITTLE, salience=0.25)
    estimated.rows("update facts set content_salience = 0.5 where text = %s", SAYS_MUCH)
    lines = estimated.archive()
    for line in lines if is_of_an_earlier_version else ():
        line.pop("salience_given", None)
    twin.import_records(lines)
    assert estimate.estimate_again(twin.context, "default", day(0)) == (0 if is_of_an_earlier_version else 1)
    assert (content(twin, SAYS_MUCH) == 0.5) == is_of_an_earlier_version
    assert content(twin, SAYS_LITTLE) == 0.25


def test_a_constant_start_stays_where_content_is_estimated_again(memory: Memory) -> None:
    memory.add(SAYS_MUCH)
    memory.rows("update facts set content_salience = 0.5")
    estimate.estimate_again(memory.context, "default", day(0))
    assert strengths(memory) == {SAYS_MUCH: 0.5}
    assert memory.rows("select content_salience > 0.5 from facts") == [(True,)]


def test_a_turn_that_answers_a_question_is_worth_more_however_the_turns_are_stored(memory: Memory) -> None:
    asks, says, answer = "What do you paint?", "I like your hat.", "Horses on a hill."
    for namespace, before in (("asked", asks), ("stated", says)):
        memory.add(before, namespace=namespace, session="s", turn=1)
        memory.add(answer, namespace=namespace, session="s", turn=2)
    turns = [{"text": text, "session": 7, "turn": place} for place, text in enumerate((asks, answer), start=1)]
    memory.store(*turns, namespace="at-once")
    asked, stated, at_once = (content(memory, answer, namespace) for namespace in ("asked", "stated", "at-once"))
    assert asked > stated
    assert asked == pytest.approx(at_once)


def test_words_of_older_facts_are_not_new_when_all_are_estimated_again(memory: Memory) -> None:
    first, second = "The oboe needs a reed.", "A reed for the oboe she needs."
    memory.store({"text": first}, {"text": second})
    memory.rows("update facts set content_salience = 0")
    for _ in range(2):
        estimate.estimate_again(memory.context, "default", day(0))
        assert content(memory, first) > content(memory, second) > 0


def test_facts_with_long_texts_are_estimated_few_at_a_time(estimated: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "MOST_LETTERS", 100)
    for number in range(4):
        estimated.add(f"The oboe played piece number {number}, which is long.")
    estimated.add("The oboe played. " * 20)
    before = sorted(strengths(estimated))
    estimated.rows("update facts set content_salience = null")
    done = [estimate.fill(estimated.context) for _ in range(5)]
    assert (sum(done), max(done), done[-1]) == (5, 2, 0)
    assert estimate.estimate_again(estimated.context, "default", day(0)) == 5
    assert sorted(strengths(estimated)) == before
