"""An LLM may classify new facts before they are written; if it fails, the fact is added."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Remember
from llm import always, answering, judging, question, saying
from memory import Memory, day
from pydantic import BaseModel
from stand_in import Reply, StandIn, broken_off, drip, endless, failure, raw, serving, silence

from workers.coordination.pause import LLM
from workers.errors import InvalidInputError, JudgementError
from workers.llm.chat import Chat
from workers.memory import store
from workers.memory.add import Stored
from workers.memory.remember import outcomes, turns
from workers.settings import Settings

PORTO, LISBON = "Ana lives in Porto by the river.", "Ana lives in Lisbon by the river."
GONE = "Ana no longer lives in Porto by the river."
LIVE = "select id from facts where forgotten_at is null and superseded_at is null order by id"
KEY = "sk-secret-0123456789"


class Nothing(BaseModel):
    """An answer without content."""


@pytest.fixture
def llm() -> Iterator[StandIn]:
    with serving(StandIn(always("ADD"))) as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def judged(memory: Memory, llm: StandIn, pauses: list[float], request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Return the same memory with an LLM, without pauses between attempts."""
    seconds = 0.5 if "fault" in request.fixturenames else 30
    judged = memory.having(classify_before_write=True, llm_url=llm.url, llm_key=KEY, llm_timeout=seconds)
    with closing(Chat(judged.context.settings, sleep=pauses.append)) as chat:
        judged.context.chat = chat
        yield judged


def stored(memory: Memory, *given: str | dict[str, Any], at: float = 10) -> list[tuple[str, UUID]]:
    answers = memory.store(*given, at=at)
    assert all(isinstance(one, Stored) and one.embedded for one in answers), answers
    return [(one.action, one.id) for one in answers if isinstance(one, Stored)]


def live(memory: Memory) -> set[UUID]:
    return {id_ for (id_,) in memory.rows(LIVE)}


def shown(llm: StandIn) -> list[dict[str, Any]]:
    """Return the new facts in the requests to the LLM."""
    return [fact for request in llm.requests for fact in question(request)["facts"]]


def test_by_default_no_llm_is_asked(memory: Memory) -> None:
    memory.store(PORTO, LISBON)
    assert "chat" not in vars(memory.context)
    assert not Settings().classify_before_write


def test_an_addition_is_stored_besides_known_facts(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    ((action, new),) = stored(judged, LISBON)
    assert (action, live(judged)) == ("added", {old, new})
    assert len(llm.requests) == 1


def test_an_update_supersedes_the_known_fact(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    llm.always = always("UPDATE")
    ((action, new),) = stored(judged, LISBON)
    assert (action, live(judged)) == ("updated", {new})
    columns = "superseded_at, superseded_by, valid_until from facts where id = %s"
    assert judged.rows(f"select {columns}", old) == [(day(10), new, day(10))]
    assert judged.rows("select supersedes_id, valid_from from facts where id = %s", new) == [(old, day(10))]


def test_a_deletion_retracts_the_known_fact_and_stores_nothing(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    llm.always = always("DELETE")
    assert stored(judged, GONE) == [("retracted", old)]
    columns = "superseded_at, superseded_by, valid_until from facts"
    assert judged.rows(f"select {columns}") == [(day(10), None, day(10))]
    assert judged.ids("Where does Ana live?", at=11) == []
    assert judged.ids("Where does Ana live?", at=11, as_of=day(9)) == [old]


def test_what_is_known_already_is_not_stored_and_the_known_fact_lives_on(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO, at=1)
    before = judged.value("select ends_at from activity")
    llm.always = always("NOOP")
    again = {"text": "Ana lives by the river in Porto.", "importance": 1, "tags": ["home"]}
    assert stored(judged, again, at=60) == [("unchanged", old)]
    assert judged.value("select ends_at from activity") > before
    assert judged.rows("select text, importance, tags from facts") == [(PORTO, 0.5, [])]


def turn_of(text: str, on: float, role: str = "user") -> dict[str, Any]:
    return {"text": text, "role": role, "session": "s", "source_date": day(on).isoformat()}


@pytest.mark.parametrize(
    ("action", "live_"),
    [("NOOP", {PORTO, LISBON}), ("DELETE", {LISBON}), ("UPDATE", {LISBON}), ("ADD", {PORTO, LISBON})],
)
def test_a_conversation_keeps_its_turns_whatever_the_verdict(
    judged: Memory, llm: StandIn, action: str, live_: set[str]
) -> None:
    judged.store(PORTO)
    llm.always = always(action)
    asked = Remember(messages=[LISBON], session="s")
    for expected in [("added" if PORTO in live_ else "updated", 0), ("unchanged", None)]:  # the same conversation again
        said, given, _ = turns(judged.context, asked)
        (turn,) = outcomes(asked, said, given, judged.store(*given, at=10)).turns
        assert (turn.action, turn.turn) == expected
        judged.context.redis.flushdb()
    assert len(llm.requests) == 1
    assert {text for (text,) in judged.rows(LIVE.replace("select id", "select text"))} == live_


@pytest.mark.parametrize("action", ["UPDATE", "DELETE"])
def test_what_was_said_earlier_changes_nothing_that_was_said_later(judged: Memory, llm: StandIn, action: str) -> None:
    later = judged.add(PORTO, source_date=day(5).isoformat())
    llm.always = always(action)
    assert stored(judged, {"text": LISBON, "source_date": day(4).isoformat()})[0][0] == "added"
    assert later in live(judged)


def test_the_question_says_who_said_a_turn_and_is_not_about_what_others_than_the_user_say(
    judged: Memory, llm: StandIn
) -> None:
    judged.store(turn_of(PORTO, 1, "assistant"))
    stored(judged, turn_of(LISBON, 2), turn_of("By the river in Lisbon it is Ana who lives.", 3, "assistant"))
    ((new, known),) = [(one["new"], one["known"]) for one in shown(llm)]
    assert (new["text"], new["role"], [one["role"] for one in known]) == (LISBON, "user", ["assistant"])


def test_the_question_has_the_facts_that_resemble_the_new_one_and_a_schema(judged: Memory, llm: StandIn) -> None:
    judged.store("Tea is at four.", "The invoice was paid.")
    old = judged.add(PORTO, entity="Ana", key="home", value="Porto", source_date=day(-30).isoformat())
    stored(judged, {"text": LISBON, "entity": "Ana", "key": "home", "value": "Lisbon"})
    (asked,) = shown(llm)
    assert asked["new"] == {
        "text": LISBON, "said_at": "2025-01-11T00:00:00+00:00", "entity": "Ana", "key": "home", "value": "Lisbon",
    }  # fmt: skip
    assert asked["known"] == [
        {
            "id": str(old),
            "text": PORTO,
            "said_at": "2024-12-02T00:00:00+00:00",
            "entity": "Ana",
            "key": "home",
            "value": "Porto",
        }
    ]
    request = llm.requests[-1]
    assert (request["model"], request["temperature"]) == ("gpt-4o-mini", 0)
    schema = request["response_format"]["json_schema"]
    assert (request["response_format"]["type"], schema["strict"]) == ("json_schema", True)
    for part in [schema["schema"], *schema["schema"]["$defs"].values()]:
        assert (part["additionalProperties"], part["required"]) == (False, list(part["properties"]))
    assert llm.headers[-1]["authorization"] == f"Bearer {KEY}"


def test_what_shares_rare_words_is_shown_however_different_the_rest(judged: Memory, llm: StandIn) -> None:
    old = judged.add("Zanzibar: spice harvest postponed.")
    judged.store("Ana waters the plants on Mondays.", "Ana reads on Mondays.", "Ana swims on Mondays.")
    judged.rows("delete from signatures")
    stored(judged, "The spice harvest of Zanzibar begins on Monday.")
    assert [known["id"] for known in shown(llm)[-1]["known"]] == [str(old)]


def test_what_is_about_the_same_key_is_shown_however_it_is_worded(judged: Memory, llm: StandIn) -> None:
    old = judged.add("Qwxz.", entity="Ana", key="home", value="Porto")
    stored(judged, {"text": LISBON, "entity": "ANA", "key": "Home", "value": "Lisbon"})
    assert [known["id"] for known in shown(llm)[0]["known"]] == [str(old)]


def test_no_llm_is_asked_about_what_resembles_nothing_live(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    judged.add(PORTO + " Now.", namespace="theirs")
    judged.store({"text": "The lamp is green.", "supersedes": str(old)}, at=1)
    stored(judged, "Quarterly invoices: 12345 67890.", PORTO)
    assert shown(llm) == []


def test_no_llm_is_asked_about_known_texts_or_given_decisions(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    llm.always = always("DELETE")
    assert stored(judged, PORTO.upper()) == [("duplicate", old)]
    assert stored(judged, {"text": LISBON, "supersedes": str(old)})[0][0] == "updated"
    assert llm.requests == []


def test_a_text_too_long_to_be_shown_whole_is_not_judged(judged: Memory, llm: StandIn) -> None:
    long = PORTO + " by the river" * 200
    judged.add(PORTO)
    judged.add(long)
    llm.always = always("NOOP")
    assert stored(judged, long + " Not any more.")[0][0] == "added"
    assert llm.requests == []
    stored(judged, LISBON)
    assert [known["text"] for known in shown(llm)[0]["known"]] == [PORTO]


@pytest.mark.parametrize("action", ["UPDATE", "DELETE"])
def test_a_pinned_fact_is_neither_superseded_nor_retracted_by_a_judgement(
    judged: Memory, llm: StandIn, action: str
) -> None:
    old = judged.add(PORTO)
    judged.pin(old, at=1)
    llm.always = always(action)
    ((became, new),) = stored(judged, LISBON)
    assert (became, live(judged)) == ("added", {old, new})


def test_a_pinned_fact_may_be_known_already(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    judged.pin(old, at=1)
    llm.always = always("NOOP")
    assert stored(judged, LISBON) == [("unchanged", old)]


def test_facts_forgotten_on_request_are_not_judged(judged: Memory, llm: StandIn) -> None:
    judged.forget(judged.add(LISBON), at=1)
    judged.add(PORTO, at=2)
    llm.always = always("UPDATE")
    (answer,) = judged.store(LISBON, at=10)
    assert isinstance(answer, Stored)
    assert (answer.action, llm.requests) == ("forgotten", [])


def test_an_update_inherits_what_it_does_not_say(judged: Memory, llm: StandIn) -> None:
    judged.add(
        PORTO, entity="Ana", key="home", value="Porto", category="people", decay_class="permanent", importance=0.9
    )
    llm.always = always("UPDATE")
    ((_, new),) = stored(judged, LISBON)
    columns = "entity, key, value, category, importance, decay_class"
    row = judged.rows(f"select {columns} from facts, activity where fact = id and id = %s", new)
    assert row == [("Ana", "home", None, "people", 0.9, "permanent")]


def test_what_an_update_inherits_tells_it_from_statements_about_others(judged: Memory, llm: StandIn) -> None:
    judged.add("Ana lives in flat 3A.", entity="Ana", key="home", value="3A")
    llm.always = always("UPDATE")
    stored(judged, "Ana lives in flat 7B.")
    llm.always = always("ADD")
    ((action, _),) = stored(judged, {"text": "Ana lives in flat 7B.", "entity": "another Ana", "key": "home"}, at=11)
    assert action == "added"
    entities = judged.rows("select entity from facts where superseded_at is null order by created_at")
    assert entities == [("Ana",), ("another Ana",)]


def test_an_update_inherits_no_subject_about_which_its_text_was_forgotten(judged: Memory, llm: StandIn) -> None:
    gone = judged.add("It is in flat 7B.", entity="Ana", key="home", value="7B")
    judged.forget(gone, at=1)
    old = judged.add("Ana lives in flat 3A.", entity="Ana", key="home", value="3A", at=2)
    llm.always = always("UPDATE")
    (answer,) = judged.store({"text": "It is in flat 7B.", "value": "7B"}, at=3)
    assert isinstance(answer, Stored)
    assert (answer.action, answer.id, live(judged)) == ("forgotten", gone, {old})


@pytest.mark.parametrize("source", ["auto", "explicit"])
def test_an_update_keeps_who_chose_the_class_and_the_tags(judged: Memory, llm: StandIn, source: str) -> None:
    judged.add(PORTO, decay_class="normal", decay_class_source=source, tags=["people", "home"])
    llm.always = always("UPDATE")
    ((_, new),) = stored(judged, {"text": LISBON, "tags": ["moved", "home"]})
    row = judged.rows(
        "select decay_class, decay_class_source, tags from facts, activity where fact = id and id = %s", new
    )
    assert row == [("normal", source, ["moved", "home", "people"])]


def test_an_update_says_itself_what_it_says(judged: Memory, llm: StandIn) -> None:
    judged.add(PORTO, entity="Ana", key="home", category="people", decay_class="permanent", importance=0.1)
    llm.always = always("UPDATE")
    said = {"entity": "Ana", "key": "city", "category": "places", "decay_class": "short", "importance": 0.3}
    ((_, new),) = stored(judged, {"text": LISBON} | said)
    row = judged.rows(f"select {', '.join(said)} from facts, activity where fact = id and id = %s", new)
    assert row == [tuple(said.values())]


def changed(change: Callable[[list[dict[str, Any]]], object]) -> Reply:
    """Return a reply that retracts everything, with the verdicts modified by `change`."""

    def answer(asked: Any) -> dict[str, Any]:
        verdicts_ = [
            {"number": fact["number"], "action": "DELETE", "id": fact["known"][0]["id"]} for fact in asked["facts"]
        ]
        change(verdicts_)
        return {"verdicts": verdicts_}

    return answering(answer)


FAILURES: dict[str, Reply] = {
    "an unknown id": judging(lambda _: ("DELETE", str(uuid4()))),
    "no id": judging(lambda _: ("NOOP", None)),
    "no id but words": judging(lambda _: ("UPDATE", "the first one")),
    "an action that there is not": always("FORGET"),
    "no verdict": changed(lambda said: said.clear()),
    "two verdicts": changed(lambda said: said.append(said[0])),
    "a verdict on another": changed(lambda said: said[0].update(number=7)),
    "a verdict with more in it": changed(lambda said: said[0].update(reason="I know better")),
    "a verdict without number": changed(lambda said: said[0].pop("number")),
    "a bare list": answering(lambda _: []),
    "a number": answering(lambda _: 7),
    "words": saying("ADD, I should say."),
    "fenced JSON": saying('```json\n{"verdicts": []}\n```'),
    "cut JSON": saying('{"verdicts": [{"number": 1, "action": "DEL'),
    "nothing": saying(None),
    "a refusal": saying(None, refusal="I cannot help with that."),
    "no choices": raw(b'{"choices": []}'),
    "no completion": raw(b'{"error": {"message": "no such model"}}'),
    "a web page": raw(b"<html>Welcome to the gateway</html>", "text/html"),
    "no UTF-8": raw(b"\xff\xfe"),
    "an empty body": raw(b""),
    "a wrong request": failure(400),
    "a wrong key": failure(401, f"Incorrect key {KEY}"),
    "no such path": failure(404),
    "too many requests": failure(429),
    "a broken server": failure(500),
    "silence": silence,
    "a dripping body": drip,
    "a body broken off": broken_off,
}


@pytest.mark.parametrize("fault", FAILURES)
def test_every_failure_ends_in_an_addition(
    judged: Memory, llm: StandIn, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = judged.add(PORTO)
    llm.always = FAILURES[fault]
    ((action, new),) = stored(judged, GONE)
    assert (action, live(judged)) == ("added", {old, new})
    assert llm.requests
    assert KEY not in caplog.text


def test_an_answer_without_end_is_not_read_to_the_timeout(
    judged: Memory, llm: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    judged.add(PORTO)
    llm.always = endless
    assert stored(judged, GONE)[0][0] == "added"
    assert "answered with more than 5 MiB, too much for what it was asked. Check EBB_LLM_URL" in caplog.text


def test_an_llm_that_is_away_costs_a_store_no_more_than_its_time(judged: Memory, llm: StandIn) -> None:
    judged.add(PORTO)
    away = judged.having(llm_url="http://127.0.0.1:1/v1")
    with closing(Chat(away.context.settings, sleep=lambda _: None)) as chat:
        away.context.chat = chat
        assert stored(away, LISBON)[0][0] == "added"
    assert llm.requests == []


def test_after_a_failure_no_task_waits_for_the_llm_for_a_while(judged: Memory, llm: StandIn) -> None:
    judged.add(PORTO)
    llm.always = failure(500)
    stored(judged, LISBON)
    assert len(llm.requests) == 5
    llm.always = always("NOOP")
    assert stored(judged, GONE)[0][0] == "added"
    assert len(llm.requests) == 5
    judged.context.redis.delete(LLM.keys[0])
    assert stored(judged, "Ana lives by the river in Porto.")[0][0] == "unchanged"


def test_an_unusable_answer_does_not_pause_the_llm(judged: Memory, llm: StandIn) -> None:
    judged.add(PORTO)
    llm.replies.append(saying("rubbish"))
    assert stored(judged, LISBON)[0][0] == "added"
    llm.always = always("NOOP")
    assert stored(judged, "Ana lives by the river in Porto.")[0][0] == "unchanged"


def test_no_llm_is_asked_when_there_is_no_time_left(
    judged: Memory, llm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged.add(PORTO)
    monkeypatch.setattr(store, "JUDGED_SECONDS", 0.5)
    assert stored(judged, LISBON)[0][0] == "added"
    assert llm.requests == []


def test_a_question_ends_with_the_time_that_is_left(
    judged: Memory, llm: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    judged.add(PORTO)
    llm.always = silence
    monkeypatch.setattr(store, "JUDGED_SECONDS", 1.2)
    slow = judged.having(llm_timeout=30)
    assert stored(slow, LISBON)[0][0] == "added"
    assert "did not answer within 1." in caplog.text
    slow.context.close()


def test_a_batch_is_judged_in_one_question_and_each_fact_by_its_own_known_ones(
    memory: Memory, judged: Memory, llm: StandIn
) -> None:
    rooms = [memory.add(f"Room {name} of the house is painted.") for name in ("Alpha", "Bravo", "Charlie")]

    def decide(fact: dict[str, Any]) -> tuple[str, str | None]:
        same = [one for one in fact["known"] if one["text"].split()[1] in fact["new"]["text"]]
        return {"not": "DELETE", "now": "UPDATE"}.get(fact["new"]["text"].split()[5], "NOOP"), same[0]["id"]

    llm.always = judging(decide)
    answers = stored(
        judged,
        "Room Alpha of the house not painted.",
        "An invoice: 12345 67890.",
        "Room Bravo of the house now tiled.",
        "Room Charlie of the house is in paint.",
    )
    assert [action for action, _ in answers] == ["retracted", "added", "updated", "unchanged"]
    assert live(judged) == {answers[1][1], answers[2][1], rooms[2]}
    assert len(llm.requests) == 1


def test_two_facts_of_a_batch_that_mean_the_same_known_one_do_so_in_order(judged: Memory, llm: StandIn) -> None:
    for action, second in (("UPDATE", "added"), ("DELETE", "retracted")):
        judged.rows("delete from facts")
        judged.add(PORTO)
        llm.always = always(action)
        answers = stored(judged, LISBON, GONE)
        assert [became for became, _ in answers] == [{"UPDATE": "updated", "DELETE": "retracted"}[action], second]


@pytest.mark.parametrize(
    ("action", "answers", "left"),
    [
        ("ADD", ["added", "added"], [PORTO, LISBON]), ("UPDATE", ["added", "updated"], [LISBON]),
        ("DELETE", ["added", "retracted"], []), ("NOOP", ["added", "unchanged"], [PORTO]),
    ],
)  # fmt: skip
def test_a_fact_of_a_batch_is_judged_by_the_earlier_ones_too(
    judged: Memory, llm: StandIn, action: str, answers: list[str], left: list[str]
) -> None:
    llm.always = always(action)
    given: list[dict[str, Any]] = [{"text": text, "id": str(uuid4())} for text in (PORTO, LISBON)]
    given[0] |= {"category": "people", "tags": ["home"]}
    done = stored(judged, *given)
    assert [one for one, _ in done] == answers
    ((asked, known),) = [(one["new"]["text"], one["known"]) for one in shown(llm)]
    assert (asked, [one["id"] for one in known]) == (LISBON, [given[0]["id"]])
    kept = judged.rows(LIVE.replace("select id", "select text, category"))
    inherits = {PORTO, LISBON} if action == "UPDATE" else {PORTO}
    assert sorted(kept) == sorted((text, "people" if text in inherits else None) for text in left)

    llm.always = always("ADD")
    again = [one.id for one in judged.store(*given, at=10) if isinstance(one, Stored)]
    assert (again, len(llm.requests)) == ([id_ for _, id_ in done], 1)


def test_of_a_batch_the_last_facts_about_the_same_key_are_shown_however_they_are_worded(
    judged: Memory, llm: StandIn
) -> None:
    texts = ["Qwxz.", "Lamp.", "Tea at four.", "Invoice: 12345.", "Rain.", "Zanzibar.", LISBON]
    done = stored(judged, *[{"text": text, "entity": "Zoë", "key": "Home"} for text in texts[:-1]],
                  {"text": LISBON, "entity": "zoe", "key": "home"})  # fmt: skip
    assert {known["id"] for known in shown(llm)[-1]["known"]} == {str(id_) for _, id_ in done[1:-1]}


def test_the_same_words_twice_in_a_batch_mean_the_same(judged: Memory, llm: StandIn) -> None:
    old = judged.add(PORTO)
    llm.always = always("DELETE")
    assert stored(judged, GONE, GONE.lower()) == [("retracted", old)] * 2
    assert len(shown(llm)) == 1
    assert judged.value("select count(*) from facts") == 1


def test_a_fact_superseded_meanwhile_is_not_superseded_again(judged: Memory, memory: Memory, llm: StandIn) -> None:
    for action in ("UPDATE", "DELETE", "NOOP"):
        judged.rows("delete from facts")
        old = judged.add(PORTO)

        def meanwhile(_: dict[str, Any], action: str = action, old: UUID = old) -> tuple[str, str | None]:
            memory.store({"text": "Ana moved to Braga.", "supersedes": str(old)}, at=9)
            return action, str(old)

        llm.always = judging(meanwhile)
        assert stored(judged, GONE)[0][0] == "added"
        assert len(live(judged)) == 2


@pytest.mark.parametrize("action", ["ADD", "UPDATE", "DELETE", "NOOP"])
def test_a_second_delivery_answers_the_same_without_asking(judged: Memory, llm: StandIn, action: str) -> None:
    judged.add(PORTO)
    llm.always = always(action)
    fact, use = {"text": GONE, "id": str(uuid4())}, uuid4()
    once = judged.store(fact, at=10, use=use)
    state = judged.rows("select facts::text, activity::text from facts, activity where fact = id order by id")
    llm.always = always("DELETE" if action != "DELETE" else "ADD")
    again = judged.store(fact, at=10, use=use)
    assert [one.id for one in again if isinstance(one, Stored)] == [one.id for one in once if isinstance(one, Stored)]
    assert action == "ADD" or again == once
    assert judged.rows("select facts::text, activity::text from facts, activity where fact = id order by id") == state
    assert len(llm.requests) == 1


def test_another_text_with_the_id_of_one_that_was_known_is_judged_itself(judged: Memory, llm: StandIn) -> None:
    old, id_ = judged.add(PORTO), uuid4()
    llm.always = always("NOOP")
    assert stored(judged, {"text": "Ana lives by the river in Porto.", "id": str(id_)}) == [("unchanged", old)]
    llm.always = always("UPDATE")
    assert stored(judged, {"text": LISBON, "id": str(id_)}) == [("updated", id_)]


def test_a_delivery_that_died_before_its_commit_is_done_as_it_was_judged(
    judged: Memory, llm: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = judged.add(PORTO)
    llm.always = always("UPDATE")
    fact = {"text": LISBON, "id": str(uuid4())}

    def die(*_: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("workers.storage.supersession.link", die)
    with pytest.raises(RuntimeError):
        judged.store(fact, at=10)
    monkeypatch.undo()
    assert live(judged) == {old}
    llm.always = always("ADD")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert stored(judged, fact) == [("updated", UUID(fact["id"]))]


def test_a_batch_of_many_is_asked_about_in_several_questions(judged: Memory, llm: StandIn) -> None:
    judged.add("Room 0 of the house is painted.")
    stored(judged, *[f"Room {number} of the house is painted." for number in range(1, 46)])
    assert [len(question(request)["facts"]) for request in llm.requests] == [20, 20, 5]


def test_invalid_facts_among_judged_ones_are_refused_alone(judged: Memory, llm: StandIn) -> None:
    judged.add(PORTO)
    llm.always = always("NOOP")
    answers = judged.store("Ana lives by the river in Porto.", {"text": "x", "supersedes": str(uuid4())}, at=10)
    assert isinstance(answers[0], Stored)
    assert answers[0].action == "unchanged"
    assert isinstance(answers[1], InvalidInputError)


def test_a_message_says_what_was_answered_and_never_the_key(llm: StandIn) -> None:
    llm.always = saying(f"Your key is {KEY}.")
    settings = Settings(llm_url=llm.url, llm_key=KEY)
    with closing(Chat(settings)) as chat, pytest.raises(JudgementError, match=r"Your key is \*\*\*") as caught:
        chat.ask("Judge.", {}, Nothing, 5)
    assert KEY not in str(caught.value)
