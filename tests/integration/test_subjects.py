"""Forgetting by subject covers all facts about it, live or not, and no others."""

import json
import math
import os
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from ebb.contract.retention import Forget, Forgot
from memory import Memory, day
from pydantic import ValidationError

from workers.admin import purge
from workers.errors import InvalidInputError, UnavailableError
from workers.memory import forget as forgetting
from workers.memory import restore
from workers.queues import MAINTENANCE
from workers.storage import subjects


def forget(memory: Memory, *, at: float, until: float = float("inf"), **asked: Any) -> Forgot:
    return forgetting.forget_subject(memory.context, Forget(**asked), day(at), uuid4(), until)


def texts(memory: Memory) -> list[str]:
    """Return the rows of a table that no request has hidden."""
    hidden = "coalesce(forgotten_reason in ('asked', 'retracted'), false)"
    return [text for (text,) in memory.rows(f"select text from facts where not {hidden} order by text")]


@pytest.fixture
def stocked(memory: Memory) -> Memory:
    old = memory.add("Mira lives in Porto", entity="Mira", key="home", value="Porto", tags=["city"])
    new = {"text": "Mira lives in Leipzig", "entity": "mira", "key": "home", "value": "Leipzig"}
    memory.store(new | {"supersedes": str(old)})
    memory.add("Mira has a cat", entity="Mira", key="pet", session="s", source="chat")
    memory.add("Anselm bakes rye bread", entity="Anselm", session=7, tags=["food"], category="work")
    return memory


@pytest.mark.parametrize(
    ("subject", "left"),
    [
        ({"entity": "MIRA"}, ["Anselm bakes rye bread"]),
        ({"entity": "Mira", "key": "home"}, ["Anselm bakes rye bread", "Mira has a cat"]),
        ({"tag": "food"}, ["Mira has a cat", "Mira lives in Leipzig", "Mira lives in Porto"]),
        ({"category": "work"}, ["Mira has a cat", "Mira lives in Leipzig", "Mira lives in Porto"]),
        ({"session": 7}, ["Mira has a cat", "Mira lives in Leipzig", "Mira lives in Porto"]),
        ({"source": "chat"}, ["Anselm bakes rye bread", "Mira lives in Leipzig", "Mira lives in Porto"]),
        ({"query": "living in Leipzig?"}, ["Anselm bakes rye bread", "Mira has a cat", "Mira lives in Porto"]),
    ],
)  # fmt: skip
def test_all_that_fits_is_forgotten_and_can_be_restored_by_its_run(
    stocked: Memory, subject: dict[str, Any], left: list[str]
) -> None:
    preview = forget(stocked, at=1, dry_run=True, **subject)
    assert len(texts(stocked)) == 4
    done = forget(stocked, at=1, **subject)

    assert texts(stocked) == left
    assert (done.matching, done.done, done.left) == (4 - len(left), 4 - len(left), False)
    assert [one.id for one in preview.results] == [one.id for one in done.results]
    assert {(one.action, one.text is None) for one in preview.results} == {("matching", False)}
    assert preview.matching == done.matching
    assert len(stocked.forgotten(reasons=("asked",), run=done.run)) == done.done
    assert forget(stocked, at=2, **subject).matching == 0


@pytest.mark.parametrize("deep", [False, True])
def test_case_counts_in_all_but_the_names_of_entities_and_properties(memory: Memory, deep: bool) -> None:
    own = {"entity": "Mira", "key": "Pet", "category": "home", "source": "chat", "session": "s"}
    memory.add("Mira has a cat", **own, salience=0.0)
    if deep:
        memory.decay(900, force=True)
        assert memory.demote(at=990) == 1
    for name, value in own.items():
        others = 1 if name in ("entity", "key") else 0
        assert forget(memory, at=1_000, dry_run=True, **{name: value}).matching == 1
        assert forget(memory, at=1_000, dry_run=True, **{name: value.swapcase()}).matching == others, name


@pytest.mark.parametrize("subject", [{"entity": "mira"}, {"query": "Where does Mira live?"}])
def test_what_ended_and_what_is_deep_goes_too(stocked: Memory, subject: dict[str, str]) -> None:
    stocked.forget(*[id_ for (id_,) in stocked.rows("select id from facts where key = 'pet'")], at=1, purge=True)
    stocked.decay(900)
    stocked.demote(at=990)
    assert texts(stocked) != []
    forget(stocked, at=1_000, **subject, purge=True)

    assert "Mira" not in " ".join(texts(stocked))
    assert not any("Mira" in str(line.get("text")) for line in stocked.archive(at=1_001))


def test_what_is_demoted_while_its_subject_is_forgotten_goes_too(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("Mira has a cat", entity="Mira", decay_class="session")
    memory.decay(2)
    read = subjects.matching_deep

    def then_demoted(*given: Any) -> Any:
        found = read(*given)
        assert purge.demote_batch(memory.context, day(4), None) == 1
        return found

    monkeypatch.setattr(subjects, "matching_deep", then_demoted)
    assert forget(memory, at=4, entity="Mira").done == 1
    assert memory.value("select forgotten_reason from facts") == "asked"


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("by", ["recall", "import"])
def test_what_comes_back_along_the_way_while_its_subject_is_forgotten_goes_too(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, by: str, deep: bool
) -> None:
    id_ = memory.add("Mira has a cat", entity="Mira", decay_class="session")
    lines = memory.archive()
    memory.decay(2)
    assert not deep or memory.demote(at=4) == 1
    read = subjects.matching

    def then_restored(*given: Any) -> Any:
        found = read(*given)
        if by == "recall":
            assert restore.revive(memory.context, "default", [id_], day(5))[0] == [id_]
        else:
            assert "restored" in memory.import_records(lines, at=5)
        return found

    monkeypatch.setattr(subjects, "matching", then_restored)
    done = forget(memory, at=4.9, entity="Mira")
    assert [one.action for one in done.results] == ["forgotten"]
    assert memory.ids("Who has a cat?", at=5, deep=True) == []


def test_what_was_forgotten_before_is_erased_as_well(stocked: Memory) -> None:
    forget(stocked, at=1, entity="Mira")
    assert forget(stocked, at=2, entity="Mira", purge=True).done == 3
    assert stocked.value("select count(*) from facts") == 1


def test_work_beyond_the_time_limit_is_left_and_reported(stocked: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "BATCH", 1)
    first = forget(stocked, at=1, until=0, entity="Mira")
    assert (first.matching, first.done, first.left) == (1, 1, True)
    assert forget(stocked, at=1, entity="Mira").done == 2


@pytest.mark.parametrize("purge", [False, True])
def test_what_is_said_after_a_request_is_not_forgotten_by_it(stocked: Memory, *, purge: bool) -> None:
    """Such as by its redelivery, by a successor minutes later, or if it waited for a worker."""
    said = {"text": "Mira lives in Rome", "entity": "Mira", "key": "home", "value": "Rome"}
    assert forget(stocked, at=1, purge=purge, entity="Mira").done == 3
    stocked.store(said, at=1.01)
    assert forget(stocked, at=1, purge=purge, entity="Mira").done == 0
    assert texts(stocked) == ["Anselm bakes rye bread", "Mira lives in Rome"]
    assert forget(stocked, at=1.01, purge=purge, entity="Mira").done


def test_another_namespace_is_not_reached(stocked: Memory) -> None:
    stocked.add("Mira sails", entity="Mira", namespace="other")
    assert forget(stocked, at=1, entity="Mira", namespace="none").matching == 0
    forget(stocked, at=1, entity="Mira")
    assert texts(stocked) == ["Anselm bakes rye bread", "Mira sails"]


def test_a_request_names_ids_or_a_subject(stocked: Memory) -> None:
    ids = {"ids": [str(uuid4())]}
    for wrong in ({}, ids | {"entity": "Mira"}, ids | {"dry_run": True}, {"dry_run": True}):
        with pytest.raises(ValidationError, match="give either ids, or any of entity"):
            Forget(**wrong)
    with pytest.raises(InvalidInputError, match="only words that every text has"):
        forget(stocked, at=1, query="the of and")


def test_the_error_about_a_long_query_shows_its_beginning(stocked: Memory) -> None:
    with pytest.raises(InvalidInputError, match="only words that every text has") as refused:
        forget(stocked, at=1, query="x" * 70_000)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("purge", [False, True])
def test_the_receipt_counts_what_a_delivery_forgot_before_it_was_broken_off(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, purge: bool
) -> None:
    for number in range(3):
        memory.add(f"Stone {number} is grey.", entity="stones")
    memory.forget(memory.add("Stone 3 is grey.", entity="stones"), at=1)
    monkeypatch.setattr(forgetting, "BATCH", 1)
    acting, run, asked = forgetting.forget, uuid4(), Forget(entity="stones", purge=purge)

    def broken_off(*given: Any, **options: Any) -> Any:
        monkeypatch.setattr(forgetting, "forget", broken_off_now)
        return acting(*given, **options)

    def broken_off_now(*_: Any, **__: Any) -> Any:
        raise UnavailableError("broken off")

    monkeypatch.setattr(forgetting, "forget", broken_off)
    with pytest.raises(UnavailableError):
        forgetting.forget_subject(memory.context, asked, day(2), run, math.inf)
    monkeypatch.setattr(forgetting, "forget", acting)
    done = forgetting.forget_subject(memory.context, asked, day(2), run, math.inf)
    assert (done.matching, done.done) == (3 + purge, 3 + purge)


@pytest.mark.parametrize("purge", [False, True])
def test_the_receipt_counts_what_another_successor_of_the_same_request_forgot(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, purge: bool
) -> None:
    memory.store(*[{"text": f"Stone {number} is grey.", "entity": "stones"} for number in range(4)])
    monkeypatch.setattr(forgetting, "BATCH", 1)
    run, asked = uuid4(), Forget(entity="stones", purge=purge)

    def part(until: float = 0.0, **given: Any) -> Forgot:
        return forgetting.forget_subject(memory.context, asked, day(2), run, until, **given)

    first, repeated = part(), part()
    assert part(part=uuid4(), so_far=first).left
    done = part(math.inf, part=uuid4(), so_far=repeated)
    assert (done.matching, done.done) == (4, 4)


LONG_FORGET = """
import json, sys
from uuid import uuid4
from workers.memory import forget
from workers.tasks import retention

def send(kwargs, queue, **_):
    queues.append(queue)
    sent.append(kwargs)

forget.BATCH, retention.SHORT_SECONDS, retention.FORGET_SECONDS = 1, 0, 0
queues, sent = [], [{"session": "a"} | json.loads(sys.argv[1])]
retention.forget.apply_async = send
while sent and len(queues) < 9:
    done = retention.forget.apply(kwargs=sent.pop(), task_id=str(uuid4()))
print(json.dumps({"queues": queues, "answer": done.result}))
"""


def in_parts(memory: Memory, **asked: bool) -> dict[str, Any]:
    """Forget the session "a" in parts of one batch; return their queues and the answer of the last."""
    settings = memory.context.settings
    urls = {"EBB_DATABASE_URL": settings.database_url, "EBB_REDIS_URL": settings.redis_url}
    program = [sys.executable, "-c", LONG_FORGET, json.dumps(asked)]
    done: dict[str, Any] = json.loads(
        subprocess.run(program, env=os.environ | urls, check=True, stdout=subprocess.PIPE).stdout
    )
    return done


@pytest.mark.parametrize(("accepted", "matching", "parts"), [(False, 2, 2), (True, 4, 5)])
def test_the_rest_of_a_long_request_is_left_to_children_that_do_not_recall(
    memory: Memory, accepted: bool, matching: int, parts: int
) -> None:
    memory.store({"text": "Tea at four.", "session": "b"})
    for hour in ("four", "five", "six", "seven"):
        memory.store({"text": f"Tea at {hour}.", "session": "a"})
    done = in_parts(memory, accepted=accepted)
    assert done["queues"] == [MAINTENANCE] * (parts - 1)
    counts = {name: done["answer"][name] for name in ("matching", "done", "kept", "left")}
    assert counts == {"matching": matching, "done": matching - 1, "kept": 1, "left": not accepted}
    assert len(done["answer"]["results"]) == matching
    assert memory.value("select count(*) from facts where forgotten_at is null") == 5 - matching


def test_a_long_count_that_no_caller_waits_for_ends(memory: Memory) -> None:
    for hour in ("four", "five"):
        memory.store({"text": f"Tea at {hour}.", "session": "a"})
    done = in_parts(memory, accepted=True, dry_run=True)
    assert done["queues"] == [MAINTENANCE]
    assert (done["answer"]["matching"], done["answer"]["left"]) == (1, True)


def test_a_session_that_is_forgotten_keeps_what_another_one_said_too(memory: Memory) -> None:
    for session in ("a", 7):
        memory.store({"text": "Tea at four.", "session": session, "turn": 1})
    memory.add("Only here.", session="a", turn=2)
    preview = forget(memory, at=1, session="a", dry_run=True)
    assert (preview.matching, preview.kept, preview.done) == (2, 1, None)
    assert memory.value("select count(*) from occurrences") == 1
    done = forget(memory, at=1, session="a", purge=True)
    assert (done.matching, done.done, done.kept) == (2, 1, 1)
    assert memory.rows("select text, session, turn from facts") == [("Tea at four.", 7, 1)]
    assert memory.value("select count(*) from erasures") > 0
    again = forget(memory, at=2, session="a", purge=True)
    assert (again.matching, again.kept) == (0, 0)
    last = forget(memory, at=3, session="7", purge=True)
    assert (last.done, last.kept) == (1, 0)
    assert memory.value("select count(*) from occurrences") == 0


def test_what_is_said_elsewhere_while_its_session_is_forgotten_stays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = memory.add("Tea at four.", session="a")
    acting = forgetting.forget

    def once_said_again(*given: Any, **options: Any) -> Any:
        memory.store({"text": "Tea at four.", "session": "b"}, at=1)
        return acting(*given, **options)

    monkeypatch.setattr(forgetting, "forget", once_said_again)
    assert forget(memory, at=1, session="a").kept == 1
    assert memory.rows("select id, session, forgotten_at from facts") == [(id_, "b", None)]


def test_a_deep_fact_leaves_a_session_and_goes_with_the_last(memory: Memory) -> None:
    for session in ("a", "b", "c"):
        memory.store({"text": "Tea at four.", "session": session, "decay_class": "session"}, at=0)
    memory.decay(10)
    assert memory.demote(at=20) == 1
    assert forget(memory, at=21, session="b").kept == 1
    assert memory.demote(at=22) == 1
    assert forget(memory, at=23, session="a").kept == 1
    assert memory.rows("select session from facts where forgotten_at is not null") == [("c",)]
    done = forget(memory, at=24, session="c")
    assert (done.matching, done.done, done.kept) == (1, 1, 0)


def test_a_deep_fact_of_a_session_is_counted_and_reported_once(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", session="a", decay_class="session")
    memory.decay(10)
    assert memory.demote(at=20) == 1
    memory.add("Cake at five.", session="a", at=20)
    assert forget(memory, at=21, session="a", dry_run=True).matching == 2
    memory.restore(id_, at=30)
    memory.decay(40)
    assert memory.demote(at=50) == 1
    done = forget(memory, at=21, session="a")
    assert [one.action for one in done.results] == ["refused", "forgotten"]
    assert (done.matching, done.done) == (2, 1)


def test_what_each_part_of_a_request_refuses_is_reported_once(memory: Memory) -> None:
    id_ = memory.add("Mira has a cat", entity="Mira")
    memory.forget(id_, at=1)
    memory.restore(id_, at=9)
    asked, run = Forget(entity="Mira"), uuid4()
    first = forgetting.forget_subject(memory.context, asked, day(5), run, 0)
    second = forgetting.forget_subject(memory.context, asked, day(5), run, math.inf, part=uuid4(), so_far=first)
    assert [(one.id, one.action) for one in second.results] == [(id_, "refused")]
    assert (first.matching, second.matching) == (1, 1)


def test_the_same_fact_in_the_same_place_adds_no_occurrence(memory: Memory) -> None:
    for _ in range(3):
        memory.store({"text": "Tea at four.", "session": "a"}, "Tea at four.")
    memory.store({"text": "Tea at four.", "session": "b", "turn": 1})
    memory.store({"text": "Tea at four.", "session": "b", "turn": 1})
    assert memory.rows("select session, turn from occurrences") == [("b", 1)]
