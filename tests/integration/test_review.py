"""Reviews by an LLM: only redundant facts are forgotten, within limits."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import combinations
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Edit
from ebb.contract.retention import ShowHistory
from hypothesis import given
from hypothesis import strategies as st
from llm import answering, question, saying
from made_up import examples
from memory import Memory, day
from stand_in import Reply, StandIn, drip, failure, raw, serving, silence

from workers.decay import review
from workers.decay.review import Progress
from workers.llm.chat import Chat
from workers.memory import edit, history
from workers.memory.add import Stored

Pairs = Callable[[list[dict[str, Any]]], list[tuple[str, str]]]


def naming(pairs: Pairs) -> Reply:
    """Return a reply that names redundant facts by `pairs` of the shown ones."""
    return answering(
        lambda asked: {
            "forget": [{"id": gone, "because_of": other, "why": "repeats"} for gone, other in pairs(asked["facts"])]
        }
    )


def second_for_the_first(shown: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(shown[1]["id"], shown[0]["id"])]


def all_but_the_first(shown: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(fact["id"], shown[0]["id"]) for fact in shown[1:] if "keep" not in fact]


@pytest.fixture
def llm() -> Iterator[StandIn]:
    with serving(StandIn(naming(second_for_the_first))) as server:
        yield server


@pytest.fixture
def tidy(memory: Memory, llm: StandIn, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Return the same memory with reviews by an LLM, without pauses."""
    seconds = 0.5 if "fault" in request.fixturenames else 30
    tidy = memory.having(prune_by_llm=True, prune_threshold=3, prune_limit=1.0, llm_url=llm.url, llm_timeout=seconds)
    with closing(Chat(tidy.context.settings, sleep=lambda _: None)) as chat:
        tidy.context.chat = chat
        yield tidy


def filled(memory: Memory, count: int, **fields: Any) -> list[UUID]:
    stored = memory.store(*[{"text": f"Fact number {number}.", **fields} for number in range(count)])
    return sorted(one.id for one in stored if isinstance(one, Stored))


def reviewed(memory: Memory, run: UUID | None = None, after: UUID | None = None, seconds: float = 60) -> Progress:
    return review.review(memory.context, "default", run or uuid4(), day(10), after, monotonic() + seconds)


def forgotten(memory: Memory) -> dict[UUID, str]:
    return dict(memory.rows("select id, forgotten_reason from facts where forgotten_at is not null"))  # type: ignore[arg-type]


def shown(llm: StandIn) -> list[list[dict[str, Any]]]:
    return [question(request)["facts"] for request in llm.requests]


def test_a_review_goes_on_though_the_fact_that_it_stopped_at_was_erased(tidy: Memory) -> None:
    filled(tidy, 60)
    run = uuid4()
    begun = reviewed(tidy, run, seconds=0)
    assert begun.rest
    tidy.forget(begun.rest, at=10, purge=True)
    assert reviewed(tidy, run, begun.rest).reviewed >= 60 - begun.reviewed


def test_a_needless_fact_is_forgotten_and_its_text_kept(tidy: Memory) -> None:
    ids = filled(tidy, 3)
    assert reviewed(tidy) == Progress(reviewed=3, forgotten=1)
    assert forgotten(tidy) == {ids[1]: "pruned"}
    assert tidy.row(ids[1])["text"].startswith("Fact number")
    assert ids[1] not in tidy.ids("fact number", at=10, limit=10)


@pytest.mark.parametrize("order", [1, -1])
def test_a_turn_and_what_was_extracted_from_it_both_stay(tidy: Memory, order: int) -> None:
    ids = filled(tidy, 3)
    tidy.link(*ids[:2][::order], kind="PART_OF")
    assert reviewed(tidy) == Progress(reviewed=3, forgotten=0)
    assert forgotten(tidy) == {}


def test_it_is_off_by_default(memory: Memory, llm: StandIn) -> None:
    filled(memory, 30)
    assert reviewed(memory) == reviewed(memory.having(llm_url=llm.url)) == Progress()
    assert llm.requests == []


@pytest.mark.parametrize(("count", "threshold", "asked"), [(19, 20, 0), (20, 20, 1), (30, 0, 0)])
def test_it_waits_for_the_threshold_and_0_disables_it(
    tidy: Memory, llm: StandIn, count: int, threshold: int, asked: int
) -> None:
    filled(tidy, count)
    strict = tidy.having(prune_threshold=threshold)
    reviewed(strict)
    strict.context.close()
    assert len(llm.requests) == asked


def test_only_what_is_remembered_is_reviewed(tidy: Memory, llm: StandIn) -> None:
    ids = filled(tidy, 3)
    tidy.add("A ticket.", decay_class="session")
    tidy.add("An episode.", kind="episodic")
    tidy.add("A chapter.", kind="chunk")
    tidy.add("Long. " * 400)
    tidy.store({"text": "Fact number 2.5", "supersedes": str(ids[2])}, at=1)
    tidy.add("Theirs.", namespace="theirs")
    reviewed(tidy)
    live = {"Fact number 0.", "Fact number 1.", "Fact number 2.", "Fact number 2.5"} - {tidy.row(ids[2])["text"]}
    assert {fact["text"] for fact in shown(llm)[0]} == live


def test_facts_are_shown_with_who_said_them_and_when(tidy: Memory, llm: StandIn) -> None:
    for value, on, role in [("Oslo", 3, "user"), ("Bergen", 2.5, "assistant")]:
        fact = {"text": f"Ida lives in {value}.", "source_date": day(on).isoformat(), "role": role}
        tidy.store(fact | {"entity": "Ida", "key": "home", "value": value}, at=5)
    filled(tidy, 3)
    reviewed(tidy)
    said = {(fact["value"], fact["role"], fact["said_at"]) for batch in shown(llm) for fact in batch if "value" in fact}
    assert said == {
        ("Oslo", "user", "2025-01-04T00:00:00+00:00"), ("Bergen", "assistant", "2025-01-03T12:00:00+00:00"),
    }  # fmt: skip


@pytest.mark.parametrize("how", ["permanent", "pinned"])
def test_permanent_and_pinned_facts_are_shown_but_stay(tidy: Memory, llm: StandIn, how: str) -> None:
    first, second, third = filled(tidy, 3)
    if how == "pinned":
        tidy.pin(second, at=1)
    else:
        tidy.rows(
            "update activity set decay_class = 'permanent', decay_class_source = 'explicit' where fact = %s", second
        )
    assert reviewed(tidy).forgotten == 0
    assert [fact.get("keep", False) for fact in shown(llm)[0]] == [False, True, False]
    llm.always = naming(lambda facts: [(facts[0]["id"], facts[1]["id"])])
    assert reviewed(tidy).forgotten == 1
    assert forgotten(tidy) == {first: "pruned"}
    assert {second, third} <= set(tidy.ids("fact number", at=10))


def test_of_a_hundred_pairs_that_say_the_same_all_meet(tidy: Memory, llm: StandIn) -> None:
    rng = random.Random(1)
    topics = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=16)) for _ in range(100)]
    tidy.store(*[f"The {topic} was painted." for topic in topics])
    tidy.store(*[f"An artist painted the {topic}." for topic in reversed(topics)])
    llm.always = naming(lambda _: [])
    assert reviewed(tidy).reviewed == 200
    together = {frozenset(pair) for batch in shown(llm) for pair in combinations((one["text"] for one in batch), 2)}
    pairs = {frozenset((f"The {topic} was painted.", f"An artist painted the {topic}.")) for topic in topics}
    assert len(pairs) == 100
    assert pairs <= together
    assert all(len(batch) <= review.AT_ONCE for batch in shown(llm))


def test_facts_about_the_same_property_are_compared_in_any_wording(tidy: Memory, llm: StandIn) -> None:
    for number in range(30):
        tidy.store(f"Filler {number} of {uuid4()}")
    tidy.store({"text": "She moved to the harbour town.", "entity": "Ana", "key": "city", "value": "Bergen"})
    tidy.store({"text": "0815 is where the post goes.", "entity": "ANA", "key": "City", "value": "Oslo"}, at=1)
    llm.always = naming(lambda _: [])
    reviewed(tidy)
    assert any({"Bergen", "Oslo"} <= {fact.get("value") for fact in batch} for batch in shown(llm))


def test_facts_that_met_are_not_shown_together_again(tidy: Memory, llm: StandIn) -> None:
    filled(tidy, 4)
    llm.always = naming(lambda _: [])
    reviewed(tidy)
    assert len(llm.requests) == 1


def test_without_time_it_goes_on_where_it_was(tidy: Memory, llm: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "AT_ONCE", 5)
    filled(tidy, 12)
    llm.always = naming(lambda _: [])
    run, after, steps = uuid4(), None, []
    while not steps or after is not None:
        done = reviewed(tidy, run, after, seconds=-1)
        after = done.rest
        steps.append(done.reviewed)
        assert len(llm.requests) <= len(steps)
    assert sum(steps) == 12
    assert len(steps) > 2


def test_history_says_because_of_which_fact_and_why(tidy: Memory, llm: StandIn) -> None:
    ids = filled(tidy, 3)
    llm.always = answering(
        lambda asked: {
            "forget": [{"id": asked["facts"][1]["id"], "because_of": asked["facts"][0]["id"], "why": "contradicts"}]
        }
    )
    run = uuid4()
    reviewed(tidy, run)
    (gone,) = forgotten(tidy)
    details = history.history(tidy.context, ShowHistory(id=gone), day(11)).events[-1].details
    (first,) = [one["id"] for one in shown(llm)[0][:1]]
    assert gone in ids
    assert details == {"reason": "pruned", "run": str(run), "because_of": first, "why": "contradicts"}


def test_what_its_owner_restored_is_never_pruned_again(tidy: Memory, llm: StandIn) -> None:
    filled(tidy, 3)
    assert reviewed(tidy).forgotten == 1
    (gone,) = forgotten(tidy)
    tidy.restore(gone, at=10.5)
    llm.always = naming(lambda facts: [(str(gone), next(one["id"] for one in facts if one["id"] != str(gone)))])
    assert reviewed(tidy).forgotten == 0
    assert {fact["id"] for fact in shown(llm)[-1] if fact.get("keep")} == {str(gone)}


@pytest.mark.parametrize(("count", "limit", "pruned"), [(40, 0.05, 2), (40, 0.03, 1), (10, 0.03, 1), (40, 0.0, 0)])
def test_reviews_together_forget_no_more_in_a_day_than_their_share(
    tidy: Memory, llm: StandIn, count: int, limit: float, pruned: int
) -> None:
    filled(tidy, count)
    llm.always = naming(all_but_the_first)
    strict = tidy.having(prune_limit=limit)
    strict.context.chat = tidy.context.chat
    assert sum(reviewed(strict).forgotten for _ in range(3)) == pruned
    asked = len(llm.requests)
    tidy.restore(*forgotten(tidy), at=10.1)
    assert reviewed(strict) == Progress()
    assert len(llm.requests) == asked
    tomorrow = review.review(strict.context, "default", uuid4(), day(11.1), None, monotonic() + 60)
    assert tomorrow.forgotten == pruned


@examples(15)
@given(seed=st.integers(0, 2**32), count=st.integers(3, 45), limit=st.sampled_from([0.0, 0.03, 0.1, 0.5]))
def test_whatever_the_llm_says_only_so_many_go_and_none_that_must_stay(
    tidy: Memory, llm: StandIn, seed: int, count: int, limit: float
) -> None:
    rng, name = random.Random(seed), f"made-up-{uuid4()}"
    stored = tidy.store(*[f"Fact number {number}." for number in range(count)], namespace=name)
    ids = [one.id for one in stored if isinstance(one, Stored)]
    lasting = {tidy.add("Fact number 1000.", namespace=name, decay_class="permanent"), ids[0]}
    tidy.pin(ids[0], at=1, namespace=name)
    llm.always = answering(lambda asked: anything(rng, asked["facts"]))
    llm.requests.clear()
    strict = tidy.having(prune_limit=limit)
    strict.context.chat = tidy.context.chat
    pruned: list[tuple[float, UUID]] = []
    restored: set[UUID] = set()
    for at in sorted(rng.uniform(10, 12) for _ in range(5)):
        review.review(strict.context, name, uuid4(), day(at), None, monotonic() + 60)
        gone = set(gone_of(tidy, name))
        pruned += [(at, id_) for id_ in gone]
        assert str(gone - {UUID(fact["id"]) for batch in shown(llm) for fact in batch}) == "set()"
        assert not gone & (lasting | restored)
        restored |= {id_ for id_ in gone if rng.random() < 0.5}
        tidy.restore(*gone & restored, at=at, namespace=name)
        tidy.forget(*gone - restored, at=at, namespace=name)
    most = max(int(limit * (count + 1)), 1) if limit else 0
    assert all(sum(then - 1 < at <= then for at, _ in pruned) <= most for then, _ in pruned)


def anything(rng: random.Random, facts: list[dict[str, Any]]) -> Any:
    """Return any answer: valid, about facts that must stay or were not shown, or nonsense."""
    ids = [fact["id"] for fact in facts]
    foreign = [str(uuid4()), "the second", ""]
    pairs = {
        "sound": list(zip(ids[1:], ids[:1] * len(ids), strict=False)),
        "any": [(rng.choice(ids), rng.choice(ids)) for _ in ids],
        "foreign": [(rng.choice(ids + foreign), rng.choice(ids + foreign)) for _ in ids],
        "one": [tuple(rng.sample(ids, 2))],
    }
    kind = rng.choice([*pairs, "nonsense"])
    if kind == "nonsense":
        return rng.choice([[], None, "all", {"forget": "all"}, {"forget": ids}, {"forget": [{"id": ids[0]}]}])
    why = rng.choice(["repeats", "contradicts"])
    return {"forget": [{"id": gone, "because_of": other, "why": why} for gone, other in pairs[kind]]}


def gone_of(memory: Memory, namespace: str) -> list[UUID]:
    """Return the facts that reviews have forgotten in a namespace."""
    of = "(select id from namespaces where name = %s)"
    gone = memory.rows(f"select id from facts where forgotten_reason = 'pruned' and namespace = {of}", namespace)
    return [id_ for (id_,) in gone]


FAILURES: dict[str, Reply] = {
    "an id that was not shown": naming(
        lambda facts: [(facts[1]["id"], facts[0]["id"]), (str(uuid4()), facts[0]["id"])]
    ),
    "a reason that was not shown": naming(lambda facts: [(facts[1]["id"], str(uuid4()))]),
    "no id but words": naming(lambda facts: [("the second", facts[0]["id"])]),
    "a fact because of itself": naming(lambda facts: [(facts[0]["id"], facts[0]["id"])]),
    "two because of each other": naming(
        lambda facts: [(facts[0]["id"], facts[1]["id"]), (facts[1]["id"], facts[0]["id"])]
    ),
    "one because of another that goes": naming(
        lambda facts: [(facts[0]["id"], facts[1]["id"]), (facts[1]["id"], facts[2]["id"])]
    ),
    "one twice": naming(lambda facts: [(facts[0]["id"], facts[1]["id"]), (facts[0]["id"], facts[2]["id"])]),
    "no word of why": answering(
        lambda asked: {"forget": [{"id": asked["facts"][1]["id"], "because_of": asked["facts"][0]["id"]}]}
    ),
    "a reason of its own": answering(
        lambda asked: {
            "forget": [{"id": asked["facts"][1]["id"], "because_of": asked["facts"][0]["id"], "why": "boring"}]
        }
    ),
    "an id alone": answering(lambda asked: {"forget": [{"id": asked["facts"][0]["id"]}]}),
    "bare ids": answering(lambda asked: {"forget": [fact["id"] for fact in asked["facts"]]}),
    "words": saying("Forget everything."),
    "nothing": saying(None),
    "a refusal": saying('{"forget": []}', refusal="I cannot help with that."),
    "no completion": raw(b"{}"),
    "a web page": raw(b"<html>Welcome</html>", "text/html"),
    "a wrong key": failure(401),
    "a broken server": failure(503),
    "silence": silence,
    "a dripping body": drip,
}


@pytest.mark.parametrize("fault", FAILURES)
def test_every_failure_forgets_nothing(tidy: Memory, llm: StandIn, fault: str) -> None:
    filled(tidy, 3)
    llm.always = FAILURES[fault]
    assert reviewed(tidy) == Progress(reviewed=3)
    assert llm.requests
    assert forgotten(tidy) == {}


def test_an_unusable_answer_affects_only_its_own_batch(
    tidy: Memory, llm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "AT_ONCE", 5)
    filled(tidy, 10)
    llm.replies.append(saying("rubbish"))
    assert reviewed(tidy).forgotten > 0


def test_an_llm_that_does_not_answer_is_not_asked_about_the_rest(
    tidy: Memory, llm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "AT_ONCE", 5)
    filled(tidy, 10)
    llm.always = failure(401)
    assert reviewed(tidy) == Progress(reviewed=1)
    assert reviewed(tidy) == Progress()
    assert len(llm.requests) == 1


def test_no_more_is_forgotten_than_a_pass_may_and_then_it_stops(tidy: Memory, llm: StandIn) -> None:
    filled(tidy, 150)
    llm.always = naming(all_but_the_first)
    run = uuid4()
    assert reviewed(tidy, run).forgotten == 30
    assert reviewed(tidy, run).forgotten == 0
    assert len(forgotten(tidy)) == 30
    assert reviewed(tidy).forgotten == 0


def test_what_was_used_for_something_else_meanwhile_stays(tidy: Memory, memory: Memory, llm: StandIn) -> None:
    ids = filled(tidy, 3)

    def meanwhile(facts: list[dict[str, Any]]) -> list[tuple[str, str]]:
        memory.store({"text": "Something else.", "supersedes": str(ids[0])}, at=9)
        return second_for_the_first(facts)

    llm.always = naming(meanwhile)
    assert reviewed(tidy) == Progress(reviewed=3)
    assert forgotten(tidy) == {}


def test_what_is_pinned_while_the_llm_thinks_stays(tidy: Memory, memory: Memory, llm: StandIn) -> None:
    ids = filled(tidy, 3)

    def meanwhile(facts: list[dict[str, Any]]) -> list[tuple[str, str]]:
        memory.pin(ids[1], at=10)
        return second_for_the_first(facts)

    llm.always = naming(meanwhile)
    assert reviewed(tidy).forgotten == 0


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_edited_while_the_llm_thinks_stays(tidy: Memory, memory: Memory, llm: StandIn, place: int) -> None:
    ids = filled(tidy, 3)

    def meanwhile(facts: list[dict[str, Any]]) -> list[tuple[str, str]]:
        edit.edit(memory.context, Edit(id=ids[place], entity="the other house"), day(10))
        return second_for_the_first(facts)

    llm.always = naming(meanwhile)
    assert reviewed(tidy).forgotten == 0


def test_a_repeat_of_the_same_run_finds_only_what_is_left(tidy: Memory) -> None:
    ids = filled(tidy, 4)
    run = uuid4()
    assert [reviewed(tidy, run).forgotten for _ in range(3)] == [1, 1, 0]
    assert forgotten(tidy).keys() == {ids[1], ids[2]}
    assert tidy.value("select count(*) from decay_runs where id = %s and finished_at is not null", run) == 1
