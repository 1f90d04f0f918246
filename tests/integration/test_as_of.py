"""Reads agree as of now and at present, before and after a pass, and never show facts forgotten on request."""

from contextlib import suppress
from operator import itemgetter
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from ebb.contract.recall import Lookup
from ebb.contract.reports import ListFacts
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.core.fading import is_over
from workers.decay import forget_limit
from workers.errors import NotFoundError
from workers.memory import context, recall, touch
from workers.memory import facts as show
from workers.memory.add import Stored
from workers.storage import visible
from workers.storage.connection import transaction

pytestmark = pytest.mark.long

bounded = examples(20)

SECOND = 1 / 86_400
CLASSES = ("permanent", "normal", "short", "session", None)
FACTS = 6
STEP = st.tuples(
    st.sampled_from(["forget", "restore", "pin", "unpin", "touch", "supersede", "pass"]),
    st.integers(0, FACTS - 1),
    st.floats(0, 8),
)
LIVES = st.lists(STEP, max_size=10)
EMPTY = "truncate namespaces, decay_runs, tallies, tally_changes, endings cascade"
MANY = st.lists(
    st.tuples(st.sampled_from([*CLASSES, "by its words"]), st.sampled_from([0.2, 0.5, 1.0]), st.integers(0, 3)),
    min_size=8,
    max_size=20,
)
"""Of facts: the decay class, the confidence, and the day on which each is stored."""
WAITS = st.lists(st.floats(0, 70), min_size=1, max_size=4)


class Lives:
    """A namespace in which facts about one entity are forgotten, superseded, kept and ended."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.name, self.at, self.asked = memory, f"ana-{uuid4()}", 0.0, set[UUID]()
        self.ids = [self.add(f"Ana took boat number {place}.", CLASSES[place % 5]) for place in range(FACTS)]

    def add(self, text: str, decay_class: str | None, **more: Any) -> UUID:
        about = {"text": text, "entity": "Ana", "key": "boat", "decay_class": decay_class, **more}
        (stored,) = self.memory.store(about, at=self.at, namespace=self.name)
        return stored.id if isinstance(stored, Stored) else self.ids[0]

    def live(self, steps: list[tuple[str, int, float]]) -> None:
        for what, place, days in steps:
            self.at += days
            self.do(what, self.ids[place])

    def do(self, what: str, id_: UUID) -> None:
        here: dict[str, Any] = {"at": self.at, "namespace": self.name}
        match what:
            case "pass":
                self.memory.decay(self.at)
            case "supersede":
                new = self.add(f"Ana took boat {uuid4()}.", "short", supersedes=str(id_))
                self.ids = [new if one == id_ else one for one in self.ids]
            case "forget":
                self.memory.forget(id_, **here)
                self.asked.add(id_)
            case "restore":
                self.memory.restore(id_, **here)
                self.asked.discard(id_)
            case "touch":
                self.memory.touch(id_, **here)
            case _:
                with suppress(NotFoundError):  # what is not live cannot be pinned
                    getattr(self.memory, what)(id_, **here)

    def recalled(self, **question: Any) -> list[tuple[UUID, float]]:
        found = self.memory.ask("Which boat did Ana take?", at=self.at, namespace=self.name, limit=50, **question)
        return [(one.id, one.score) for one in found.results]

    def why(self, id_: UUID, **question: Any) -> str:
        asked = {"explain": True, "why": id_} | question
        found = self.memory.ask("Which boat did Ana take?", at=self.at, namespace=self.name, **asked)
        assert found.why is not None
        return str(found.why["rule"])

    def looked_up(self, **options: Any) -> list[UUID]:
        found, _ = recall.lookup(
            self.memory.context, Lookup(entity="Ana", key="boat", namespace=self.name, **options), day(self.at)
        )
        return [one.id for one in found]

    def listed(self) -> set[UUID]:
        found, _ = show.page(self.memory.context, ListFacts(namespace=self.name), day(self.at))
        return {one["id"] for one in found}

    def injected(self) -> set[UUID]:
        shape = context.Shape(form="full", most_tokens=10_000, stable=True, summary_threshold=1_000)
        question = recall.Question("Which boat did Ana take?", limit=50)
        lines = context.inject(self.memory.context, self.name, question, shape, day(self.at)).lines
        return {line.fact.id for line in lines}

    def compared(self) -> set[UUID]:
        with transaction(self.memory.context.database_url) as db:
            row = db.execute("select id from namespaces where name = %s", [self.name]).fetchone()
            assert row is not None
            return set(visible.among(db, row[0], self.ids, day(self.at)))

    def readers(self) -> dict[str, set[UUID]]:
        return {
            "recall": {id_ for id_, _ in self.recalled()},
            "lookup": set(self.looked_up()),
            "list": self.listed(),
            "context": self.injected(),
        }


@bounded
@given(steps=LIVES, later=st.floats(0, 20))
def test_a_read_as_of_now_is_the_read_at_present(
    memory: Memory, steps: list[tuple[str, int, float]], later: float
) -> None:
    lives = Lives(memory)
    lives.live(steps)
    lives.at += later
    now = day(lives.at)
    present, found = lives.recalled(), lives.looked_up()
    for asked in ({"as_of": now}, {"known_as_of": now}, {"as_of": now, "known_as_of": now}):
        assert lives.recalled(**asked) == present
        assert lives.looked_up(**asked) == found
    assert lives.recalled(as_of=day(lives.at + SECOND / 1000)) == present


@bounded
@given(steps=LIVES, as_of=st.floats(-1, 100))
def test_what_was_asked_to_be_forgotten_is_in_no_read(
    memory: Memory, steps: list[tuple[str, int, float]], as_of: float
) -> None:
    lives = Lives(memory)
    lives.live(steps)
    for asked in ({"as_of": day(as_of)}, {"known_as_of": day(as_of)}):
        shown = {id_ for id_, _ in lives.recalled(**asked)} | set(lives.looked_up(**asked))
        assert shown.isdisjoint(lives.asked)


@bounded
@given(steps=LIVES, later=st.floats(0, 100))
def test_all_readers_show_the_same_before_a_pass_and_after_it(
    memory: Memory, steps: list[tuple[str, int, float]], later: float
) -> None:
    lives = Lives(memory)
    lives.live(steps)
    lives.at += later
    before = lives.readers()
    assert len({frozenset(shown) for shown in before.values()}) == 1
    assert lives.compared() == before["list"] & set(lives.ids)
    memory.decay(lives.at)
    assert lives.readers() == before


@examples(12)
@given(facts=MANY, waits=WAITS, share=st.sampled_from([None, None, 0, 0.5]))
@example(facts=[("short", 1.0, 2)], waits=[0.0], share=0).via("a lifetime that runs out at the very instant of a pass")
def test_what_the_forget_limit_will_hold_is_shown_before_a_pass_and_after_it(
    memory: Memory, facts: list[tuple[str | None, float, int]], waits: list[float], share: float | None
) -> None:
    memory.rows(EMPTY)
    memory = memory if share is None else memory.having(forget_limit=share)
    with transaction(memory.context.database_url) as db:
        forget_limit.publish(memory.context, db)
    lives = Lives(memory)
    for place, (chosen, confidence, at) in enumerate(sorted(facts, key=itemgetter(2))):
        said = {"text": f"Ana took ship number {place}.", "entity": "Ana", "key": "boat", "confidence": confidence}
        by_words = chosen == "by its words"
        given = said if by_words else said | {"decay_class": chosen}
        memory.store(given, at=at, namespace=lives.name, classify=by_words)
    lives.at = 4
    for wait in waits:
        lives.at += wait
        before = lives.readers()
        assert len({frozenset(shown) for shown in before.values()}) == 1
        memory.decay(lives.at)
        assert lives.readers() == before


@pytest.mark.parametrize("passed", [False, True])
def test_of_facts_that_end_at_once_the_same_ones_stay_before_a_pass_and_after_it(memory: Memory, passed: bool) -> None:
    facts = [{"text": f"Rumour number {number}.", "confidence": 0.2, "salience": 0.5} for number in range(30)]
    ids = sorted(one.id for one in memory.store(*facts) if isinstance(one, Stored))
    at = memory.row(ids[0])["ends"] + 1
    if passed:
        memory.decay(at)
    assert {one["id"] for one in show.page(memory.context, ListFacts(limit=100), day(at))[0]} == set(ids[6:])
    assert memory.stats(at).expired_pending == (0 if passed else 6)
    text = memory.value("select text from facts where id = %s", ids[20])
    (again,) = memory.store({"text": text, "confidence": 0.2}, at=at)
    assert isinstance(again, Stored)
    assert again.id == ids[20]
    assert memory.restore(ids[20], at=at)[0].action == "unchanged"
    assert set(memory.touch(*ids, at=at).changed) <= set(ids[6:])


@bounded
@given(steps=LIVES, later=st.floats(0, 100), use=st.sampled_from(["touch", "reinforce", "pin"]))
def test_a_use_reaches_what_readers_show_before_a_pass_and_after_it(
    memory: Memory, steps: list[tuple[str, int, float]], later: float, use: str
) -> None:
    lives = Lives(memory)
    lives.live(steps)
    lives.at += later
    shown = lives.listed()
    for passed in (False, True):
        if passed:
            memory.decay(lives.at)
        for id_ in lives.ids:
            assert reached(lives, use, id_) == (id_ in shown)


def reached(lives: Lives, use: str, id_: UUID) -> bool:
    here: dict[str, Any] = {"at": lives.at, "namespace": lives.name}
    if use == "touch":
        return lives.memory.touch(id_, **here).changed == [id_]
    if use == "reinforce":
        return touch.reinforce(lives.memory.context, lives.name, id_, 0.0, day(lives.at)) is not None
    try:
        lives.memory.pin(id_, **here)
    except NotFoundError:
        return False
    return True


@pytest.mark.parametrize("asked", [{}, {"as_of": day(5)}, {"known_as_of": day(5)}])
def test_explanations_do_not_quote_facts_forgotten_on_request(memory: Memory, asked: dict[str, Any]) -> None:
    id_ = memory.add("The safe opens with 4711.")
    memory.forget(id_, at=10)
    found = memory.ask("What opens the safe?", at=20, explain=True, why=id_, **asked)
    (hidden,) = found.left_out or []
    assert found.why is not None
    assert (hidden["text"], found.why["text"], found.why["words"]["shared"]) == ("", "", [])
    assert hidden["rule"] == found.why["rule"] == "forgotten: asked"


def test_as_of_sees_what_ended_by_itself_only_before_it_did(memory: Memory) -> None:
    id_ = memory.add("The ticket is in the car.", confidence=0.2)
    ends = memory.row(id_)["ends"]
    for passed in (False, True):
        if passed:
            memory.decay(ends + 10)
        shown = [memory.ids("ticket", at=ends + 20, as_of=day(at)) for at in (1, ends - 1, ends + 1, ends + 20, 9_999)]
        assert shown == [[id_], [id_], [], [], []]


@pytest.mark.parametrize("where", ["deep memory", "deep memory after a look at its history", "an archive"])
def test_what_a_late_pass_forgot_is_not_shown_as_of_after_its_end(memory: Memory, twin: Memory, where: str) -> None:
    id_ = memory.add("The ticket is in the car.", confidence=0.2)
    ends = memory.row(id_)["ends"]
    memory.decay(ends + 10)
    if where == "an archive":
        twin.import_records(memory.archive(ends + 20), at=ends + 20)
        memory = twin
    else:
        assert memory.demote(at=ends + 20) == 1
    if where.endswith("history"):
        memory.history(id_, at=ends + 20)
    asked = ({"as_of": day(at)} for at in (ends + 1, ends + 9, ends - 1, 1))
    assert [memory.ids("ticket", at=ends + 30, **one) for one in asked] == [[], [], [id_], [id_]]
    assert memory.ids("ticket", at=ends + 30, known_as_of=day(ends + 1)) == []


@pytest.mark.parametrize("named", ["stored again", "an id that is taken", "superseded", "imported again"])
def test_what_leaves_deep_memory_because_it_is_named_again_is_not_shown_as_of_after_its_end(
    memory: Memory, named: str
) -> None:
    id_ = memory.add("The ticket is in the car.", confidence=0.2)
    ends = memory.row(id_)["ends"]
    memory.decay(ends + 10)
    assert memory.demote(at=ends + 20) == 1
    if named == "imported again":
        memory.import_records(memory.archive(ends + 20), at=ends + 20)
    else:
        again = {"id": str(id_), "text": "The ticket is in the car."}
        other = {"text": "The bike is in the shed.", "id" if named == "an id that is taken" else "supersedes": str(id_)}
        memory.store(again if named == "stored again" else other, at=ends + 20)
    assert memory.value("select count(*) from deep") == 0
    assert memory.ids("ticket", at=ends + 30, as_of=day(ends + 1)) == []
    assert memory.ids("ticket", at=ends + 30, as_of=day(ends - 1)) == [id_]


@bounded
@given(
    begins=st.floats(-5, 12),
    ends=st.one_of(st.none(), st.floats(0.1, 30)),
    known_as_of=st.floats(0, 9),
    as_of=st.one_of(st.none(), st.floats(-6, 9)),
)
@example(begins=0, ends=5, known_as_of=7, as_of=None).via("an end that was given before the supersession")
def test_a_supersession_does_not_change_what_was_known_before_it(
    memory: Memory, begins: float, ends: float | None, known_as_of: float, as_of: float | None
) -> None:
    lives = Lives(memory)
    validity = {"valid_from": day(begins), "valid_until": None if ends is None else day(begins + ends)}
    old = lives.add("Ana took the red boat.", "permanent", **validity)
    asked = {"known_as_of": day(known_as_of)} | ({} if as_of is None else {"as_of": day(as_of)})
    lives.at = 10.0
    before = lives.recalled(**asked), lives.looked_up(**asked)
    lives.do("supersede", old)
    lives.at = 20.0
    shown = {id_ for id_, _ in lives.recalled(**asked)}
    assert (shown, lives.looked_up(**asked)) == ({id_ for id_, _ in before[0]}, before[1])


def test_a_superseded_fact_is_as_relevant_as_of_before_as_it_was_then(memory: Memory) -> None:
    flat = memory.add("The flat costs 940 dollars a month.")

    def relevance(at: float, **asked: Any) -> float | None:
        (found,) = memory.ask("How much is the rent of the flat?", at=at, min_relevance=0, **asked).results
        return found.relevance

    then = relevance(1)
    memory.store({"text": "The flat costs 1,020 dollars a month.", "supersedes": str(flat)}, at=2)
    assert relevance(3, as_of=day(1)) == pytest.approx(then, abs=0.05)  # its vector is a signature since


@pytest.mark.parametrize("what", ["forget", "supersede", "pass"])
def test_what_was_gone_and_is_restored_was_not_known_in_between(memory: Memory, what: str) -> None:
    lives = Lives(memory)
    old = lives.add("Ana took the red boat.", "session" if what == "pass" else "permanent")
    lives.at = 10.0
    if what == "supersede":
        lives.add("Ana took the blue boat.", "permanent", supersedes=str(old))
    else:
        lives.do(what, old)
    memory.restore(old, at=20, namespace=lives.name)
    lives.at = 30.0

    def known(at: float, **asked: Any) -> tuple[bool, bool]:
        asked |= {"known_as_of": day(at)}
        return old in {id_ for id_, _ in lives.recalled(**asked)}, old in lives.looked_up(**asked)

    assert [known(at) for at in (0.5, 15, 20.5)] == [(True, True), (False, False), (True, True)]
    assert known(15, as_of=day(0.5)) == (False, False)
    assert lives.why(old, known_as_of=day(15)).startswith("superseded" if what == "supersede" else "forgotten: ")


def test_a_fact_from_a_clock_that_is_ahead_is_shown_as_of_now_as_at_present(memory: Memory) -> None:
    id_ = memory.add("The ticket is in the car.", at=1)
    assert memory.ids("ticket", at=0.5) == memory.ids("ticket", at=0.5, as_of=day(0.5)) == [id_]
    assert memory.ids("ticket", at=0.5, as_of=day(0.4)) == []


def test_the_rule_of_the_schema_and_the_one_of_the_core_are_one(memory: Memory) -> None:
    for ends, held, at in [(1, False, 1), (1, True, 1), (2, False, 1), (1, False, 2), (2, True, 1)]:
        (own,) = is_over(np.array([float(ends)]), np.array([held]), at).tolist()
        assert memory.value("select is_over(to_timestamp(%s), %s, to_timestamp(%s))", ends, held, at) == own
