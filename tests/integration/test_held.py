"""Held facts are listed, stay visible before and after passes, and their owner decides."""

from collections.abc import Callable
from math import inf
from uuid import UUID, uuid4

import pytest
from ebb.contract.decay import ListHeld
from memory import Memory, day

from workers.admin import stats
from workers.core.fading import REASONS
from workers.decay import forget_limit
from workers.memory.add import Stored
from workers.storage.connection import transaction
from workers.storage.limits import held_by_namespace

OVER = 68
"""Days after which a fact of a default user is over."""


def default(memory: Memory, count: int, at: float = 0, namespace: str = "default") -> list[UUID]:
    facts = [{"text": f"Guest number {number} likes tea on day {at}."} for number in range(count)]
    stored = memory.store(*facts, at=at, classify=True, namespace=namespace)
    return [one.id for one in stored if isinstance(one, Stored)]


def live(memory: Memory, namespace: str = "default") -> set[UUID]:
    named = "namespace = (select id from namespaces where name = %s)"
    return {id_ for (id_,) in memory.rows(f"select id from facts where forgotten_at is null and {named}", namespace)}


def test_held_facts_are_listed_page_by_page_in_the_order_of_their_ends(memory: Memory) -> None:
    for number in range(3):
        default(memory, 4, at=number)
    memory.decay(OVER + 3)
    first = forget_limit.held_facts(memory.context, ListHeld(limit=4))
    rest = forget_limit.held_facts(memory.context, ListHeld(limit=4, cursor=first.next))
    facts = [*first.held, *rest.held]
    assert (first.total, len(facts), rest.next) == (7, 7, None)
    assert facts == sorted(facts, key=lambda one: (one.ended_at, one.id))
    assert {one.reason for one in facts} == {"faded"}
    assert {one.id for one in facts} == live(memory)


def test_how_many_facts_are_held_where_is_known_for_the_doctor(memory: Memory) -> None:
    default(memory, 30)
    default(memory, 3, namespace="theirs")
    memory.decay(OVER)
    with transaction(memory.context.database_url) as db:
        assert held_by_namespace(db) == {"default": 24}


def test_what_is_let_go_ends_as_by_a_pass_and_counts_towards_no_limit(memory: Memory) -> None:
    ids = default(memory, 30)
    memory.decay(OVER)
    one, *_ = left = sorted(live(memory))
    assert forget_limit.let_go(memory.context, "default", [one], day(OVER + 1), inf) == forget_limit.Decided([one], 23)
    assert memory.row(one)["forgotten_reason"] in REASONS
    assert forget_limit.let_go(memory.context, "default", [one], day(OVER + 1), inf) == forget_limit.Decided([], 23)
    assert forget_limit.let_go(memory.context, "default", None, day(OVER + 1), inf).ids == left[1:]
    assert live(memory) == set()
    assert memory.value("select sum(facts) from endings") == 6
    assert memory.value("select count(*) from namespaces where held_since is not null") == 0
    memory.restore(ids[0], at=OVER + 2)
    assert live(memory) == {ids[0]}


def holding(memory: Memory, at: float) -> set[str]:
    stats.settle_tallies(memory.context, day(at))
    return {name for (name,) in memory.rows("select name from namespaces where held_since is not null")}


def test_a_namespace_whose_held_facts_were_all_used_or_forgotten_holds_nothing_any_more(memory: Memory) -> None:
    default(memory, 10, namespace="used")
    default(memory, 10, namespace="forgotten")
    default(memory, 10)
    memory.decay(OVER)
    assert holding(memory, OVER) == {"used", "forgotten", "default"}
    memory.touch(*live(memory, "used"), at=OVER, namespace="used")
    memory.forget(*live(memory, "forgotten"), at=OVER, namespace="forgotten")
    assert holding(memory, OVER + 1) == {"default"}
    assert memory.value("select held_since from namespaces where name = 'default'") == day(OVER)


def test_an_import_of_held_facts_holds_them(memory: Memory) -> None:
    default(memory, 10)
    memory.decay(OVER)
    memory.import_records(memory.archive(OVER), OVER + 1, "copy")
    assert holding(memory, OVER + 2) == {"default", "copy"}
    assert memory.value("select held_since from namespaces where name = 'copy'") == day(OVER + 2)


def test_what_is_kept_has_its_whole_life_before_it(memory: Memory) -> None:
    default(memory, 30)
    memory.decay(OVER)
    left = live(memory)
    assert set(forget_limit.keep(memory.context, "default", None, day(OVER), inf).ids) == left
    assert memory.stats(OVER).held == 0
    assert memory.decay(2 * OVER - 1).counters.forgotten == 0
    assert {memory.row(id_)["expires"] for id_ in left} == {OVER + 90}
    assert ("kept", OVER) in memory.history(left.pop(), at=OVER)


def test_a_fact_that_is_kept_by_its_id_is_kept_once_however_often_the_task_is_delivered(memory: Memory) -> None:
    (id_,) = default(memory, 1)
    task, state = uuid4(), "select activity::text from activity"
    answer = forget_limit.keep(memory.context, "default", [id_], day(OVER - 10), inf, task)
    kept = memory.rows(state)
    assert forget_limit.keep(memory.context, "default", [id_], day(OVER - 10), inf, task) == answer
    assert answer.ids == [id_]
    assert memory.rows(state) == kept
    assert memory.history(id_, at=OVER).count(("kept", OVER - 10)) == 1
    forget_limit.keep(memory.context, "default", [id_], day(OVER - 9), inf, uuid4())
    assert ("kept", OVER - 9) in memory.history(id_, at=OVER)


@pytest.mark.parametrize("decide", [forget_limit.let_go, forget_limit.keep])
def test_what_a_delivery_decides_before_it_is_broken_off_is_in_the_answer_of_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, decide: Callable[..., forget_limit.Decided]
) -> None:
    default(memory, 10)
    memory.decay(OVER)
    left, task = live(memory), uuid4()
    monkeypatch.setattr(forget_limit, "BATCH", 3)
    broken_off = decide(memory.context, "default", None, day(OVER + 1), 0.0, task)
    assert len(broken_off.ids) == 3
    done = decide(memory.context, "default", None, day(OVER + 1), inf, task)
    assert (len(done.ids), set(done.ids), done.left) == (len(left), left, 0)


def test_held_facts_that_are_let_go_by_id_are_in_the_answer_of_each_delivery(memory: Memory) -> None:
    default(memory, 10)
    memory.decay(OVER)
    (one, *_), task = live(memory), uuid4()
    answer = forget_limit.let_go(memory.context, "default", [one], day(OVER + 1), inf, task)
    assert answer.ids == [one]
    assert forget_limit.let_go(memory.context, "default", [one], day(OVER + 1), inf, task) == answer


def test_nothing_is_decided_about_facts_that_are_not_held_or_of_others(memory: Memory) -> None:
    mine, theirs = default(memory, 3), default(memory, 30, namespace="theirs")
    memory.decay(OVER - 10)
    memory.decay(OVER, namespace="theirs")
    for decide in (forget_limit.let_go, forget_limit.keep):
        assert decide(memory.context, "default", [*mine, *theirs, uuid4()], day(OVER), inf).ids == []
        assert decide(memory.context, "unknown", None, day(OVER), inf) == forget_limit.Decided([], 0)
    assert (len(live(memory)), memory.stats(OVER, "theirs").held) == (3, 24)
    assert forget_limit.held_facts(memory.context, ListHeld(namespace="unknown")).held == []


def test_use_that_does_not_prolong_a_held_fact_leaves_it_visible(memory: Memory) -> None:
    memory.store(*[{"text": f"Preflight number {number}."} for number in range(30)], classify=True)
    memory.decay(0.1)
    memory.decay(1)
    id_ = min(live(memory))
    memory.touch(id_, at=1.5)
    assert (memory.row(id_)["held"], id_ in memory.ids("preflight", at=1.5, limit=50)) == (True, True)
    memory.decay(1.6)
    assert id_ in memory.ids("preflight", at=1.7, limit=50)


def test_what_no_longer_ends_by_other_settings_is_held_no_more(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(40)))
    memory.decay(19)
    memory.add("Ends as asked.", decay_class="short", importance=1.0, at=20)
    assert memory.decay(30).counters.held == 33
    memory.choose({"hygiene.confidenceDecay.halfLife": 3600}, at=30)

    memory.decay(30.1)

    assert memory.stats(30.1).held == 1
    assert memory.value("select text from facts join activity on fact = id where held") == "Ends as asked."
