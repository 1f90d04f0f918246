"""Touches: strength, expiry and counters change once for each use, and never decrease."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf
from random import Random
from uuid import UUID, uuid4, uuid5

import pytest
from ebb.contract.retention import ShowHistory, Use
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.core.lifetime import LIFETIMES
from workers.errors import NotFoundError, OvertakenError
from workers.memory import history, touch
from workers.memory.touch import Shown

REFRESHED = {"stable": 90, "active": 14, "durable": 90, "normal": 14}
bounded = examples(15)


def strength_of(memory: Memory, id_: UUID, at: float) -> float:
    """Return the strength of a fact just used, read by a reinforcement of 0."""
    done = touch.reinforce(memory.context, "default", id_, 0.0, day(at))
    assert done is not None
    return done.salience


@pytest.mark.parametrize("coactivations", [0, 1, 5, 6, 1_000])
def test_a_recall_lifts_0_35_to_0_85_however_often_it_was_recalled_before(memory: Memory, coactivations: int) -> None:
    id_ = memory.add("Tea at four.", strength=0.35, coactivations=coactivations)
    memory.touch(id_, at=0)
    row = memory.row(id_)
    assert strength_of(memory, id_, 0) == pytest.approx(0.85, abs=1e-12)
    assert (row["coactivations"], row["recall_count"]) == (coactivations + 1, 1)


def test_strength_never_passes_one(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.9)
    memory.touch(id_, at=1)
    assert strength_of(memory, id_, 1) == pytest.approx(1.0)


def test_a_recall_adds_to_what_is_left_of_the_strength(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.5)
    memory.touch(id_, at=30)
    left = strength_of(memory, id_, 30) - 0.5
    assert 0.05 < left < 0.25


def test_a_second_delivery_of_a_touch_changes_nothing(memory: Memory) -> None:
    id_, use = memory.add("Tea at four.", strength=0.35, decay_class="stable"), uuid4()
    memory.touch(id_, at=5, use=use)
    before = memory.row(id_)
    assert memory.touch(id_, at=5, use=use).changed == []
    assert memory.touch(id_, at=7, use=use).changed == []
    assert memory.row(id_) == before


def test_an_older_touch_counts_and_lowers_nothing(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.1, decay_class="stable")
    memory.touch(id_, at=5)
    before, left = memory.row(id_), strength_of(memory, id_, 5)
    assert memory.touch(id_, at=2).changed == [id_]
    after = memory.row(id_)
    assert (after["recall_count"], after["coactivations"]) == (2, 2)
    assert strength_of(memory, id_, 5) > left
    same = ("last_seen", "last_accessed_at", "confirmed", "expires")
    assert [after[name] for name in same] == [before[name] for name in same]


USE = st.tuples(st.sampled_from(["touch", "reinforce"]), st.integers(0, 40), st.floats(0, 0.3))
USED = """
    select recall_count, coactivations, confirmations, last_seen_at, last_accessed_at, last_confirmed_at,
        expires_at::text
    from activity where fact = %s
"""


@bounded
@given(
    uses=st.lists(USE, min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
    decay_class=st.sampled_from(["stable", "durable", "permanent", None]),
)
def test_in_any_order_and_with_any_repetitions_uses_give_the_same_counts_and_anchor(
    memory: Memory, uses: list[tuple[str, int, float]], order: Random, decay_class: str | None
) -> None:
    named = [(*use, uuid4()) for use in uses]
    shuffled = [*named, *order.choices(named, k=3)]
    order.shuffle(shuffled)
    one, two = (memory.add(f"Tea {uuid4()}.", strength=0.35, decay_class=decay_class) for _ in range(2))
    memory_of_order = [(one, named), (two, [(*use[:3], uuid5(use[3], "other")) for use in shuffled])]
    for id_, each in memory_of_order:
        for what, at, boost, use in each:
            if what == "touch":
                memory.touch(id_, at=at, use=use)
            else:
                memory.reinforce(id_, at=at, boost=boost, use=use)
    assert memory.rows(USED, one) == memory.rows(USED, two)


@bounded
@given(boosts=st.lists(st.floats(0, 0.3), min_size=2, max_size=6), order=st.randoms(use_true_random=False))
def test_uses_at_one_instant_give_the_same_strength_in_any_order(
    memory: Memory, boosts: list[float], order: Random
) -> None:
    one, two = (memory.add(f"Tea {uuid4()}.", strength=0.1) for _ in range(2))
    for id_ in (one, two):
        for boost in boosts:
            memory.reinforce(id_, at=9, boost=boost)
        order.shuffle(boosts)
    assert strength_of(memory, one, 9) == pytest.approx(strength_of(memory, two, 9), abs=1e-9)


def test_eight_clients_with_10_reinforcements_each_of_one_fact_are_80(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.1)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda client: [memory.reinforce(id_, at=1 + client / 999) for _ in range(10)], range(8)))
    assert memory.value("select confirmations from activity") == 80


def test_80_clients_that_reinforce_one_fact_at_one_instant_all_count(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.1)
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda _: memory.reinforce(id_, at=1), range(80)))
    assert None not in done
    assert memory.value("select confirmations from activity") == 80


def test_a_client_five_minutes_behind_is_counted(memory: Memory) -> None:
    id_, minute = memory.add("Tea at four.", strength=0.1), 1 / 1440
    memory.reinforce(id_, at=1)
    memory.reinforce(id_, at=1 - 5 * minute)
    memory.touch(id_, at=1 - 5 * minute)
    row = memory.row(id_)
    assert (memory.value("select confirmations from activity"), row["recall_count"], row["last_seen"]) == (2, 1, 1)


def test_touches_of_one_fact_by_many_recalls_at_once_all_count(memory: Memory) -> None:
    ids = [memory.add(f"Guest number {number}.") for number in range(5)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: memory.touch(*order(ids, number), at=1 - number / 999), range(40)))
    assert {memory.row(id_)["recall_count"] for id_ in ids} == {40}


def order(ids: list[UUID], number: int) -> list[UUID]:
    return ids[number % 5 :] + ids[: number % 5]


def test_the_largest_counts_that_can_be_stored_make_no_use_fail(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.35)
    most = 2**31 - 1
    memory.rows("update activity set coactivations = %s, recall_count = %s, confirmations = %s", most, most, most)
    assert memory.touch(id_, at=1).changed == [id_]
    assert memory.reinforce(id_, at=2) is not None
    counts = "select coactivations, recall_count, confirmations from activity"
    assert memory.rows(counts) == [(most, most, most)]
    assert strength_of(memory, id_, 2) == pytest.approx(1.0, abs=0.1)


def test_what_was_counted_is_known_for_a_day_before_the_newest_use(memory: Memory) -> None:
    id_, old, new = memory.add("Tea at four."), uuid4(), uuid4()
    memory.touch(id_, at=1, use=old)
    memory.rows("update uses set counted_at = %s", datetime.now(UTC) - timedelta(days=3))
    assert touch.drop_old_uses(memory.context) == 0
    memory.touch(id_, at=1, use=new)
    assert touch.drop_old_uses(memory.context) == 1
    assert memory.rows("select id from uses") == [(new,)]


def test_a_use_counts_once_though_others_are_ahead_of_a_clock_that_was_set_back(memory: Memory) -> None:
    id_, use = memory.add("Tea at four."), uuid4()
    memory.touch(id_, at=1)
    memory.rows("update uses set counted_at = %s", datetime.now(UTC) + timedelta(days=300))
    memory.touch(id_, at=2, use=use)
    touch.drop_old_uses(memory.context)
    memory.touch(id_, at=2, use=use)
    assert memory.row(id_)["recall_count"] == 2


@bounded
@given(microseconds=st.lists(st.integers(0, 400 * 86_400_000_000), min_size=1, max_size=6), again=st.integers(0, 5))
def test_touches_that_arrive_again_count_once_at_every_microsecond(
    memory: Memory, microseconds: list[int], again: int
) -> None:
    instants = [(day(0) + timedelta(microseconds=number), uuid4()) for number in sorted(microseconds)]
    id_ = memory.add(f"Tea {uuid4()}.", strength=0.35)
    for instant, use in [*instants, instants[again % len(instants)]]:
        touch.touch(memory.context, "default", [Shown([id_], instant, use)])
    assert memory.row(id_)["recall_count"] == len(instants)
    assert memory.row(id_)["last_accessed_at"] == instants[-1][0]


def test_two_threads_that_deliver_the_same_touch_count_it_once(memory: Memory) -> None:
    ids, use = [memory.add(f"Guest number {number}.") for number in range(20)], uuid4()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda order: memory.touch(*order, at=1, use=use).changed, [ids, ids[::-1]]))
    assert sorted(found[0] + found[1]) == sorted(ids)
    assert {memory.row(id_)["recall_count"] for id_ in ids} == {1}


@pytest.mark.parametrize("decay_class", LIFETIMES)
def test_use_restarts_the_lifetime_of_four_classes_only(memory: Memory, decay_class: str) -> None:
    id_ = memory.add("Tea at four.", decay_class=decay_class)
    before = memory.row(id_)["expires"]
    memory.touch(id_, at=0.1)
    after = memory.row(id_)
    refreshed = decay_class in REFRESHED
    assert after["expires"] == pytest.approx(0.1 + REFRESHED[decay_class] if refreshed else before)
    assert after["confirmed"] == (0.1 if refreshed else 0)


def test_a_permanent_fact_never_ends(memory: Memory) -> None:
    id_ = memory.add("Ana is allergic to nuts.", decay_class="permanent", confidence=0.05)
    memory.touch(id_, at=1)
    assert (memory.row(id_)["expires"], memory.row(id_)["ends"]) == (inf, inf)


def test_without_reinforcement_on_query_a_recall_counts_and_leaves_the_strength(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.35, decay_class="stable")
    memory.having(decay_reinforce_on_query=False).touch(id_, at=1)
    row = memory.row(id_)
    assert (row["recall_count"], row["base"], row["last_seen"], row["coactivations"]) == (1, 0.35, 0, 0)
    assert row["expires"] == 91


def test_touching_an_unknown_fact_changes_no_other(memory: Memory) -> None:
    ended = memory.add("Tea at four.", decay_class="session")
    memory.decay(2)
    theirs = memory.add("Cake on Sunday.", namespace="theirs")
    assert memory.touch(ended, theirs, uuid4(), at=3).changed == []
    assert memory.touch(theirs, at=3, namespace="unknown").changed == []


def test_a_touch_names_those_that_have_less_than_the_full_vector(memory: Memory) -> None:
    faded, fresh = memory.add("Tea at four.", strength=0.4), memory.add("Cake on Sunday.", at=99)
    memory.decay(100)
    assert memory.touch(faded, fresh, at=100).faded == [faded]


def test_a_reinforcement_says_whether_the_fact_had_faded(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.4)
    memory.decay(100)
    done = touch.reinforce(memory.context, "default", id_, 0.2, day(100))
    assert done is not None
    assert done.faded


def test_reinforcing_adds_the_boost_and_confirms_without_counting_a_recall(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.3, decay_class="session")
    done = touch.reinforce(memory.context, "default", id_, 0.2, day(0.5))
    assert done is not None
    assert (done.salience, done.faded) == (pytest.approx(0.5, abs=0.01), False)
    row = memory.row(id_)
    assert (row["recall_count"], row["confirmed"], row["last_seen"], row["expires"]) == (0, 0.5, 0.5, 1)


def test_a_second_delivery_of_a_reinforcement_answers_and_changes_nothing(memory: Memory) -> None:
    id_, use = memory.add("Tea at four.", strength=0.3), uuid4()
    memory.reinforce(id_, at=3, use=use)
    before = memory.row(id_)
    again = memory.reinforce(id_, at=3, use=use)
    assert again is not None
    assert again.salience == pytest.approx(before["base"])
    assert memory.row(id_) == before


def used(memory: Memory, *ids: UUID, at: float, use: UUID | None = None) -> tuple[list[UUID], list[UUID]]:
    answer, _ = touch.used(memory.context, Use(ids=list(ids)), day(at), use)
    return answer.used, answer.unknown


def test_what_an_agent_used_is_confirmed_and_what_it_was_only_shown_is_not(memory: Memory) -> None:
    shown, of_use = (memory.add(text, strength=0.35, decay_class="short") for text in ("Tea.", "Cake."))
    memory.touch(shown, at=1)
    assert used(memory, of_use, at=1) == ([of_use], [])
    assert [memory.row(id_)["confirmed"] for id_ in (shown, of_use)] == [0, 1]
    assert strength_of(memory, of_use, 1) == pytest.approx(strength_of(memory, shown, 1))


def test_a_use_counts_once_and_is_in_the_history_but_not_among_recalls(memory: Memory) -> None:
    id_, use = memory.add("Tea at four."), uuid4()
    assert used(memory, id_, id_, at=1, use=use) == ([id_], [])
    before = memory.row(id_)
    assert used(memory, id_, at=1, use=use) == ([id_], [])
    assert memory.row(id_) == before
    assert before["recall_count"] == 0
    assert memory.history(id_, at=2) == [("stored", 0), ("used", 1)]


def test_a_reinforcement_is_in_the_history_once(memory: Memory) -> None:
    id_, use = memory.add("Tea at four."), uuid4()
    for _ in range(2):
        memory.reinforce(id_, at=1, use=use)
    assert memory.history(id_, at=2) == [("stored", 0), ("reinforced", 1)]


def test_uses_one_after_another_are_one_entry_of_the_history_with_their_number(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    for at in (2, 5, 1, 3):
        memory.reinforce(id_, at=at, boost=at / 10)
        used(memory, id_, at=at)
    memory.pin(id_, at=6)
    memory.reinforce(id_, at=7)
    found = history.history(memory.context, ShowHistory(id=id_), day(8)).events
    since = {"times": 4, "since": "2025-01-02T00:00:00Z"}
    assert [(one.what, one.at, one.details) for one in found[1:]] == [
        ("reinforced", day(5), {"boost": 0.5, **since}),
        ("used", day(5), since),
        ("pinned", day(6), {"until": None}),
        ("reinforced", day(7), {"boost": 0.2}),
    ]
    assert memory.value("select count(*) from events") == 4


def test_what_is_not_there_any_more_was_not_used(memory: Memory) -> None:
    live, gone, theirs = memory.add("Tea."), memory.add("Cake."), memory.add("Rye.", namespace="theirs")
    memory.forget(gone, at=1)
    assert used(memory, gone, live, theirs, at=2) == ([live], [gone, theirs])


MINUTE = 1 / 1440


def test_neither_a_use_nor_a_pin_reaches_what_has_ended_whether_or_not_a_pass_has_come(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="normal")
    ends = memory.row(id_)["ends"] + MINUTE / 60
    for passed in (False, True):
        if passed:
            memory.decay(ends)
        assert memory.touch(id_, at=ends).changed == []
        assert memory.reinforce(id_, at=ends) is None
        with pytest.raises(NotFoundError, match="no live fact"):
            memory.pin(id_, at=ends)


@pytest.mark.parametrize("use", ["touch", "reinforce", "pin"])
@pytest.mark.parametrize("passed", [False, True])
def test_a_use_before_the_end_that_arrives_after_it_keeps_the_fact(memory: Memory, use: str, *, passed: bool) -> None:
    id_ = memory.add("Tea at four.", decay_class="normal")
    ends = memory.row(id_)["ends"]
    if passed:
        memory.decay(ends + 5 * MINUTE)
        assert memory.ids("tea", at=ends + 6 * MINUTE) == []
    getattr(memory, use)(id_, at=ends - MINUTE)
    assert memory.ids("tea", at=ends + 6 * MINUTE) == [id_]
    memory.decay(ends + 7 * MINUTE)
    row = memory.row(id_)
    assert (row["forgotten_at"], row["live"], row["held"]) == (None, True, False)
    assert row["ends"] > ends + 1
    assert memory.examine(ends + 1) == {}


def test_a_use_more_than_ten_minutes_before_a_pass_does_not_undo_it(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="normal")
    ends = memory.row(id_)["ends"]
    memory.decay(ends + 10 * MINUTE)
    assert memory.touch(id_, at=ends - MINUTE).changed == []
    assert memory.reinforce(id_, at=ends - MINUTE) is None


def test_a_late_use_undoes_no_request_and_takes_no_place_that_is_taken(memory: Memory) -> None:
    asked, told_again = memory.add("Tea at four."), memory.add("Cake on Sunday.", decay_class="normal")
    ends = memory.row(told_again)["ends"]
    memory.forget(asked, at=1)
    memory.decay(ends + MINUTE)
    memory.add("Cake on Sunday.", at=ends + MINUTE)
    assert memory.touch(asked, at=1 - MINUTE).changed == []
    assert memory.touch(told_again, at=ends - MINUTE).changed == []


def test_a_late_use_that_cannot_prolong_a_lifetime_does_not_revive_the_fact(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="ephemeral")
    ends = memory.row(id_)["ends"]
    memory.decay(ends + MINUTE)
    assert memory.touch(id_, at=ends - MINUTE).changed == []
    assert memory.row(id_)["forgotten_at"] is not None


def test_what_is_held_stays_visible_when_a_use_cannot_prolong_it(memory: Memory) -> None:
    memory.store(*[{"text": f"Guest number {number}.", "kind": "episodic"} for number in range(150)])
    memory.decay(100)
    held = memory.value("select fact from activity where held limit 1")
    memory.touch(held, at=101)
    memory.reinforce(held, at=101)
    row = memory.row(held)
    assert (row["held"], row["recall_count"], row["ends"] < 101) == (True, 1, True)
    assert held in memory.ids(row["text"], at=101, limit=150)


def test_reinforcing_who_is_not_there_answers_nothing(memory: Memory) -> None:
    memory.add("Tea at four.")
    assert touch.reinforce(memory.context, "default", uuid4(), 0.2, day(0)) is None
    assert touch.reinforce(memory.context, "unknown", uuid4(), 0.2, day(0)) is None


def test_a_question_strengthens_a_fact_once_in_a_cool_down_and_others_do_too(memory: Memory) -> None:
    fact = memory.add("Mira lives in Leipzig", salience=0.2)
    minute = 1 / 1440

    def touched(question: int, minutes: float) -> list[UUID]:
        return touch.touch(memory.context, "default", [Shown([fact], day(minutes * minute), question=question)]).changed

    assert [touched(1, 0), touched(1, 9), touched(2, 9), touched(1, 5)] == [[fact], [], [fact], []]
    assert touched(1, 11) == [fact]
    assert memory.value("select coactivations from activity") == 3
    assert memory.value("select length(asked) from activity") == 16


def test_a_repeated_question_that_arrives_again_after_the_cool_down_counts_no_more_than_before(memory: Memory) -> None:
    fact = memory.add("Mira lives in Leipzig")
    first, repeated, other = (
        Shown([fact], day(minutes * MINUTE), question=question) for minutes, question in [(0, 1), (5, 1), (20, 2)]
    )
    for shown in (first, repeated, other, repeated):
        touch.touch(memory.context, "default", [shown])
    assert memory.value("select recall_count from activity") == 2


def test_without_cool_down_each_recall_counts(memory: Memory) -> None:
    fact = memory.add("Mira lives in Leipzig")
    other = memory.having(touch_cooldown=0)
    for _ in range(3):
        touch.touch(other.context, "default", [Shown([fact], day(0), question=1)])
    assert memory.value("select recall_count from activity") == 3


def test_a_fact_that_faded_is_regenerated_even_if_the_question_is_repeated(memory: Memory) -> None:
    fact = memory.add("Mira lives in Leipzig")
    touch.touch(memory.context, "default", [Shown([fact], day(0), question=1)])
    memory.rows("update activity set fidelity = 2")
    assert touch.touch(memory.context, "default", [Shown([fact], day(0), question=1)]).faded == [fact]


TOGETHER = st.lists(
    st.tuples(st.integers(0, 40), st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), st.integers(0, 3)),
    min_size=1, max_size=8,
)  # fmt: skip
"""Touches: days, places of facts, and questions (0 for none)."""


@bounded
@example(drawn=[(13, [1], 1), (13, [1], 1), (16, [1], 2)], order=Random(0), again=0)
@given(drawn=TOGETHER, order=st.randoms(use_true_random=False), again=st.integers(0, 8))
def test_touches_recorded_together_are_as_if_each_came_by_itself(
    memory: Memory, drawn: list[tuple[int, list[int], int]], order: Random, again: int
) -> None:
    """Those that are delivered again count once; facts that end in between are left out.

    Each example has its own namespace: else the forget limit, which keeps facts of equal value by id, holds some.
    """
    namespace = f"tea-{uuid4()}"
    kinds = [{"decay_class": "session"}, {"strength": 0.2}, {"confidence": 0.9}, {}]
    one, two = ([memory.add(f"Tea {uuid4()}.", namespace=namespace, **kind) for kind in kinds] for _ in range(2))
    shown = [(places, day(at), uuid4(), question or None) for at, places, question in drawn]
    for places, at, use, question in sorted(shown, key=lambda touched: touched[1]):
        touch.touch(memory.context, namespace, [Shown([one[place] for place in places], at, use, question)])
    together = [Shown([two[place] for place in places], at, use, question) for places, at, use, question in shown]
    together = [replace(touched, use=uuid5(touched.use, "two")) for touched in together]
    order.shuffle(together)
    touch.touch(memory.context, namespace, [*together, *together[:again]])
    touch.touch(memory.context, namespace, together)
    for before, after in zip(one, two, strict=True):
        assert memory.rows(USED, after) == memory.rows(USED, before)


def test_facts_of_one_touch_that_a_pass_forgot_meanwhile_are_known_again_since_that_pass(memory: Memory) -> None:
    first, second = (memory.add(text, decay_class="normal") for text in ("Tea at four.", "Cake on Sunday."))
    ends = memory.row(first)["ends"]
    memory.decay(ends + 5 * MINUTE)
    assert memory.ids("tea", at=ends + 6 * MINUTE) == []
    shown = [Shown([first], day(ends - MINUTE)), Shown([second], day(ends - 2 * MINUTE))]
    assert {*touch.touch(memory.context, "default", shown).changed} == {first, second}
    assert [memory.row(id_)["last_seen"] for id_ in (first, second)] == pytest.approx(
        [ends - MINUTE, ends - 2 * MINUTE], rel=1e-9
    )
    assert [what for what, _ in memory.history(first, at=ends + 1)] == ["stored", "recalled", "forgotten", "revived"]
    known = ({"known_as_of": day(ends + minutes * MINUTE)} for minutes in (4, 5, 6))
    assert [memory.ids("tea", at=ends + 1, **one) for one in known] == [[first]] * 3


def test_a_use_that_two_deliveries_gave_other_facts_counts_once(memory: Memory) -> None:
    one, two, use = memory.add("Tea at four."), memory.add("Cake on Sunday."), uuid4()
    shown = [Shown([one], day(1), use), Shown([two], day(1), use)]
    assert touch.touch(memory.context, "default", shown).changed == [one]


def test_of_two_ended_facts_with_equal_texts_one_is_revived_and_no_other_use_is_kept_back(memory: Memory) -> None:
    first = memory.add("Tea at four.", decay_class="normal")
    other = memory.add("Cake on Sunday.", decay_class="stable")
    first_ends = memory.row(first)["ends"]
    memory.decay(first_ends + MINUTE)
    second = memory.add("Tea at four.", at=first_ends + 2 * MINUTE, decay_class="normal")
    second_ends = memory.row(second)["ends"]
    memory.decay(second_ends + MINUTE)
    shown = [
        Shown([first], day(first_ends - MINUTE)),
        Shown([second], day(second_ends - MINUTE)),
        Shown([other], day(second_ends)),
    ]
    with pytest.raises(OvertakenError):
        touch.touch(memory.context, "default", shown)
    done = [touch.touch(memory.context, "default", [one]).changed for one in shown]
    assert done == [[first], [], [other]]
