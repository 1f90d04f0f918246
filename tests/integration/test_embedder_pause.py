"""After failures all processes pause requests to the embedder, and recall uses words only."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from memory import Memory, day
from stand_in import Handler, Reply, StandIn, broken_off, drip, failure, raw, serving, silence

from workers import endpoint
from workers.admin.stats import health
from workers.context import Context
from workers.coordination import pause
from workers.coordination.pause import EMBEDDER, LONGEST_SECONDS, Pause
from workers.errors import EmbedderAwayError, EmbedderPausedError, EmbeddingError
from workers.memory import embed
from workers.memory.add import Stored

DIMS = 8
PAUSED, FAILURES, TRYING = EMBEDDER.keys


def answering(handler: Handler) -> None:
    data = [
        {"index": place, "embedding": [float(1 + text.count(letter)) for letter in "abcdefgh"]}
        for place, text in enumerate(handler.request_json["input"])
    ]
    handler.send(200, json.dumps({"data": data}).encode())


@pytest.fixture
def server() -> Iterator[StandIn]:
    with serving(StandIn(answering)) as server:
        yield server


@pytest.fixture
def away(memory: Memory, server: StandIn) -> Iterator[Memory]:
    """Return the same memory with an embedder on that server."""
    away = memory.having(
        embedder="openai",
        embedding_url=server.url,
        embedding_model="never-asked-before",
        embedding_timeout=2.0,
        embedding_query_timeout=2.0,
    )
    embed.reset(away.context)
    away.store("The dentist is in Mill Lane.")
    server.requests.clear()
    with closing(away.context):
        yield away


def later(memory: Memory) -> None:
    """End the pause."""
    memory.context.redis.delete(PAUSED)


def test_deep_memory_is_searched_by_words_though_the_embedder_has_never_answered(
    memory: Memory, server: StandIn
) -> None:
    key = memory.add("Mira hides the spare key behind the blue flower pot.", decay_class="session")
    memory.decay(2)
    assert memory.demote(at=3.5) == 1
    server.always = failure(503)
    away = memory.having(embedder="openai", embedding_url=server.url, embedding_model="never-asked-before")
    with closing(away.context):
        assert away.ask("Where does Mira hide the spare key?", at=4).deep == 1
        assert away.ids("Where does Mira hide the spare key?", at=4, deep=True) == [key]


FAULTS: dict[str, Reply] = {
    "500": failure(500),
    "502": failure(502),
    "a broken connection": broken_off,
    "503": failure(503),
    "429": failure(429),
    "429 that asks to wait": failure(429, retry_after="30"),
    "no credit": failure(429, code="insufficient_quota", message="insufficient_quota"),
    "wrong key": failure(401),
    "no such model": failure(404),
    "silence": silence,
    "a dripping body": drip,
}


PROBED = ("500", "502", "a broken connection")
"""Faults that one text may cause, so that another one is tried."""


@pytest.mark.parametrize("fault", FAULTS)
def test_an_embedder_that_fails_is_asked_once_and_words_decide(away: Memory, server: StandIn, fault: str) -> None:
    server.always = FAULTS[fault]
    found = [away.ask(f"dentist {number}") for number in range(3)]
    assert [[one.text for one in one.results] for one in found] == [["The dentist is in Mill Lane."]] * 3
    assert not any(one.by_meaning for one in found)
    assert len(server.requests) == (2 if fault in PROBED else 1)


def test_a_port_that_refuses_begins_the_pause_too(away: Memory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    gone = away.having(embedding_url=f"http://127.0.0.1:{port}/v1")
    with closing(gone.context):
        assert not gone.ask("dentist").by_meaning
    assert pause.state(gone.context.redis).failures == 1


def test_what_one_process_learnt_holds_for_all_and_for_every_namespace(away: Memory, server: StandIn) -> None:
    server.always = failure(503)
    away.ask("dentist")
    other = Memory(Context(away.context.settings))
    with closing(other.context):
        assert not other.ask("dentist", namespace="theirs").by_meaning
        (stored,) = other.store("A new fact.", namespace="theirs")
    assert isinstance(stored, Stored)
    assert not stored.embedded
    assert len(server.requests) == 1


def test_a_store_that_fails_is_not_repeated_and_begins_the_pause(away: Memory, server: StandIn) -> None:
    server.always = failure(503)
    assert [one.embedded for one in away.store("One.", "Two.") if isinstance(one, Stored)] == [False, False]
    away.store("Three.")
    assert not away.ask("dentist").by_meaning
    assert len(server.requests) == 1


def test_pending_facts_wait_for_the_end_of_the_pause(away: Memory, server: StandIn) -> None:
    server.replies.append(failure(503))
    away.store("A new fact.")
    with pytest.raises(EmbedderPausedError):
        embed.embed_pending(away.context, embed.START, day(1))
    assert len(server.requests) == 1
    later(away)
    assert embed.embed_pending(away.context, embed.START, day(1)) is not None
    assert embed.waiting(away.context) == 0


def test_after_the_pause_one_request_tries_and_its_success_ends_the_pause_for_all(
    away: Memory, server: StandIn
) -> None:
    server.replies.append(failure(503))
    away.ask("dentist")
    later(away)
    away.context.redis.set(TRYING, 1)  # as another process that is trying now
    assert not away.ask("dentist").by_meaning
    away.context.redis.delete(TRYING)
    assert away.ask("dentist").by_meaning
    assert away.context.redis.exists(PAUSED, FAILURES, TRYING) == 0
    assert len(server.requests) == 2


def test_every_failed_try_makes_the_next_pause_longer_up_to_a_minute(away: Memory, server: StandIn) -> None:
    server.always = failure(503)
    lengths = []
    for number in range(8):
        away.ask(f"dentist {number}")
        lengths.append(away.context.redis.pttl(PAUSED))
        later(away)
    assert pause.state(away.context.redis).failures == 8
    assert lengths[:4] == sorted(set(lengths[:4]))
    assert max(lengths) <= LONGEST_SECONDS * 1000


def test_many_failures_at_once_make_one_pause(away: Memory) -> None:
    own = Pause(away.context.redis, EMBEDDER)
    for _ in range(20):
        own.failed(EmbedderAwayError("It is away."))
    assert pause.state(away.context.redis).failures == 1


def test_a_server_that_asks_to_wait_is_given_that_time(away: Memory) -> None:
    Pause(away.context.redis, EMBEDDER).failed(EmbedderAwayError("Too many requests.", retry_after=40))
    first = away.context.redis.pttl(PAUSED)
    later(away)
    away.context.redis.delete(FAILURES)
    Pause(away.context.redis, EMBEDDER).failed(EmbedderAwayError("It is away."))
    assert first > away.context.redis.pttl(PAUSED)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_the_server_refuses_causes_no_pause(away: Memory, server: StandIn, status: int) -> None:
    server.replies.append(failure(status))
    assert not away.ask("dentist").by_meaning
    assert away.ask("dentist").by_meaning


POISONED: dict[str, Reply] = {str(status): failure(status) for status in (400, 413, 422, 500, 502, 504)} | {
    "a broken connection": broken_off,
    "silence": silence,
}


def picky(fault: Reply) -> Reply:
    """Return a server that has a fault for some texts alone."""

    def reply(handler: Handler) -> None:
        refused = any("poison" in text for text in handler.request_json["input"])
        (fault if refused else answering)(handler)

    return reply


@pytest.mark.parametrize("fault", POISONED)
def test_one_text_that_the_server_cannot_take_leaves_no_other_without_vector(
    away: Memory, server: StandIn, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(endpoint, "_backoff", lambda _: 0.0)
    server.always = failure(400)
    quick = away.having(embedding_timeout=0.5)
    poison = away.add("This is poison.", namespace="default")
    others = [away.add(f"Guest {number} takes tea.", namespace="theirs") for number in range(3)]
    server.always = picky(POISONED[fault])
    with closing(quick.context):
        place, steps = embed.embed_pending(quick.context, embed.START, day(1)), 1
        while place is not None:
            place, steps = embed.embed_pending(quick.context, place, day(1)), steps + 1
    assert [away.row(id_)["dims"] for id_ in (poison, *others)] == [0, DIMS, DIMS, DIMS]
    assert away.context.redis.exists(PAUSED, FAILURES, TRYING) == 0


@pytest.mark.parametrize("fault", ["500", "a broken connection", "silence"])
def test_storing_a_text_that_the_server_cannot_take_delays_no_other(away: Memory, server: StandIn, fault: str) -> None:
    server.always = picky(POISONED[fault])
    quick = away.having(embedding_timeout=0.5)
    with closing(quick.context):
        for namespace in ("ours", "theirs"):
            (poison,) = quick.store("This is poison.", namespace=namespace)
            (other,) = quick.store("Guests take tea.", namespace=namespace)
            assert isinstance(poison, Stored)
            assert isinstance(other, Stored)
            assert (poison.embedded, other.embedded) == (False, True)


def test_a_question_that_the_server_cannot_take_is_answered_by_words_and_the_next_by_meaning(
    away: Memory, server: StandIn
) -> None:
    server.always = picky(failure(500))
    assert [away.ask(query).by_meaning for query in ("poison", "dentist", "more poison", "tea")] == [False, True] * 2


def test_a_text_that_ends_the_server_is_soon_left_out_and_holds_up_no_other(
    away: Memory, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "_backoff", lambda _: 0.0)

    def ending(handler: Handler) -> None:
        if "poison" in str(handler.request_json["input"]):
            server.replies.append(failure(500))  # while it starts again
            failure(500)(handler)
        else:
            answering(handler)

    server.always = failure(400)
    poison, *others = [away.add(text) for text in ("This is poison.", "Guests take tea.", "Rye bread.")]
    server.always = ending
    for _ in range(3):
        with suppress(EmbeddingError):
            place: embed.Position | None = embed.START
            while place is not None:
                place = embed.embed_pending(away.context, place, day(1))
        later(away)
    assert [away.row(id_)["dims"] for id_ in (poison, *others)] == [0, DIMS, DIMS]
    asked = len(server.requests)
    assert embed.embed_pending(away.context, embed.START, day(1)) is not None
    assert away.regenerate(poison) == []
    assert len(server.requests) == asked


def test_of_many_batches_that_are_stored_the_one_with_a_text_that_is_refused_waits_alone(
    away: Memory, server: StandIn
) -> None:
    server.always = picky(failure(500))
    few = away.having(embedding_batch=2)
    with closing(few.context):
        stored = few.store("Tea.", "This is poison.", "Cake.", "Milk.", "Rye.")
    assert [one.embedded for one in stored if isinstance(one, Stored)] == [False, False, True, True, True]


def test_a_faded_fact_whose_text_is_refused_leaves_no_other_faded(away: Memory, server: StandIn) -> None:
    poison, other = away.add("This is poison."), away.add("Guests take tea.")
    away.decay(100)
    server.always = picky(failure(500))
    assert away.regenerate(poison, other, at=100) == [other]
    assert away.context.redis.exists(PAUSED, FAILURES, TRYING) == 0


def test_an_embedder_that_refuses_every_text_is_not_asked_for_each(away: Memory, server: StandIn) -> None:
    server.always = failure(400)
    away.store("One.", "Two.", "Three.")
    server.requests.clear()
    with pytest.raises(EmbeddingError):
        embed.embed_pending(away.context, embed.START, day(1))
    assert len(server.requests) == 2


def test_a_text_that_is_refused_after_a_pause_ends_it(away: Memory, server: StandIn) -> None:
    server.replies.append(failure(503))
    away.ask("dentist")
    later(away)
    server.replies.append(failure(400))
    assert not away.ask("poison").by_meaning
    assert away.ask("dentist").by_meaning


def test_a_query_that_was_embedded_before_needs_no_embedder(away: Memory, server: StandIn) -> None:
    away.ask("dentist")
    server.always = failure(503)
    assert not away.ask("anything else").by_meaning
    assert away.ask("dentist").by_meaning


def test_explain_and_why_and_the_touch_work_in_a_pause(away: Memory, server: StandIn) -> None:
    server.always = failure(503)
    (id_,) = away.ids("dentist")
    found = away.ask("dentist", explain=True, why=id_)
    assert found.why is not None
    assert (found.why["recalled"], found.why["meaning"]) == (True, None)
    assert found.results[0].explain is not None
    away.touch(id_, at=1)
    assert away.row(id_)["recall_count"] == 1


def test_a_reset_ends_the_pause_since_an_operator_has_mended_something(away: Memory, server: StandIn) -> None:
    server.replies.append(failure(503))
    away.ask("dentist")
    assert embed.reset(away.context) == 1
    assert pause.state(away.context.redis).failures == 0


def test_health_reports_the_pause_without_a_request(away: Memory, server: StandIn) -> None:
    server.always = failure(503, "secret words of a text")
    away.ask("dentist")
    status = health(away.context)["embedder"]
    assert "Failures in a row: 1." in status
    assert "secret" not in status
    assert len(server.requests) == 1


def test_health_asks_an_embedder_that_hangs_no_longer_than_a_query_does(away: Memory, server: StandIn) -> None:
    server.always = silence
    hanging = away.having(embedding_timeout=3.0, embedding_query_timeout=0.5)
    with closing(hanging.context):
        found = health(hanging.context)
    assert found["database"] == "ok"
    assert "EmbedderAwayError" in found["embedder"]
    assert "within 0.5 s" in pause.state(away.context.redis).error


@pytest.mark.parametrize("status", [400, 503])
def test_health_leaves_what_the_server_says_of_its_own_request_to_the_log(
    away: Memory, server: StandIn, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    server.always = failure(status, "secret words")
    said = health(away.context)["embedder"]
    assert "See the log" in said
    assert [word for word in ("secret", "127.0.0.1", "/v1") if word in said] == []
    assert "secret words" in caplog.text


def test_a_batch_that_could_outlast_the_time_limit_of_a_store_is_embedded_later(away: Memory, server: StandIn) -> None:
    slow = away.having(embedding_timeout=40.0, embedding_batch=1)
    with closing(slow.context):
        stored = slow.store("The dentist is in Oak Lane.", "The baker is in Elm Lane.")
    assert [isinstance(one, Stored) and one.embedded for one in stored] == [True, False]
    assert len(server.requests) == 1


def test_a_redis_that_is_away_causes_no_pause(away: Memory) -> None:
    alone = Context(away.context.settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"}))
    with closing(alone):
        assert alone.queries.embed("dentist").shape == (DIMS,)


def test_an_answer_that_is_no_vector_is_no_reason_for_a_pause(away: Memory, server: StandIn) -> None:
    server.replies.append(lambda handler: handler.send(200, b"{}"))
    with pytest.raises(EmbeddingError):
        away.context.embedder.embed(["text"])
    assert pause.state(away.context.redis).failures == 0


def test_a_wrong_answer_after_a_fork_is_not_taken_for_the_dims_of_the_model(away: Memory, server: StandIn) -> None:
    away.context.close()  # as a worker does before it forks
    server.replies.append(raw(b'{"data": [{"index": 0, "embedding": [1, 2, 3]}]}'))
    (first,) = away.store("The plumber is in Oak Street.")
    (second,) = away.store("The baker is in Elm Street.")
    assert (first.embedded, second.embedded) == (False, True)


def test_facts_are_stored_and_embedded_later_though_the_embedder_is_away_at_the_first_start(
    memory: Memory, server: StandIn
) -> None:
    assert memory.rows("delete from embedders returning 1")
    server.always = failure(503)
    first = memory.having(embedder="openai", embedding_url=server.url, embedding_model="unknown", embedding_timeout=2.0)
    with closing(first.context):
        (stored,) = first.store("The dentist is in Mill Lane.")
        assert isinstance(stored, Stored)
        assert [one.text for one in first.ask("Mill Lane").results] == ["The dentist is in Mill Lane."]

        server.always = answering
        later(first)
        assert embed.embed_pending(first.context, embed.START, day(1)) is not None
        assert embed.waiting(first.context) == 0
        (other,) = first.store("The garage is in Park Road.")
        assert isinstance(other, Stored)
        assert other.embedded
        assert first.context.rules.widest_bucket == 1
