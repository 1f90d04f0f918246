"""Recall in the order of a reranker, a real HTTP server that answers as its kinds do or fails in all their ways."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any
from uuid import UUID

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from memory import Memory, day
from stand_in import Handler, Reply, StandIn, broken_off, drip, endless, failure, raw, serving, silence

from workers.coordination import pause
from workers.coordination.pause import RERANKER
from workers.errors import RerankerAwayError, RerankerError
from workers.llm import make_reranker
from workers.memory import context, recall
from workers.memory.recall import Recalled, rerank
from workers.settings import Settings

KEY = "secret-0123456789"
QUERY = "Where is the harbour?"
TEXTS = [
    f"The harbour of {name} is {number} miles away." for number, name in enumerate(["Kiel", "Oban", "Bari", "Brest"])
]


def scoring(
    score: Callable[[str], Any], shape: Callable[[list[dict[str, Any]]], Any] = lambda ranks: {"results": ranks}
) -> Reply:
    """Return a reply with a score for each document, best first, in a certain shape."""

    def reply(handler: Handler) -> None:
        documents = handler.request_json["documents"]
        ranks = [{"index": place, "relevance_score": score(text)} for place, text in enumerate(documents)]
        ranks.sort(key=lambda rank: -rank["relevance_score"] if rank["relevance_score"] is not None else 0)
        handler.send(200, json.dumps(shape(ranks)).encode())

    return reply


def by_miles(text: str) -> float:
    """Prefer what is farther away."""
    return float(next((word for word in text.split() if word.isdecimal()), -1))


@pytest.fixture
def server() -> Iterator[StandIn]:
    with serving(StandIn(scoring(by_miles))) as server:
        yield server


@pytest.fixture
def own(memory: Memory) -> Memory:
    """Return a memory with facts, without a reranker."""
    memory.store(*TEXTS)
    return memory


Having = Callable[..., Memory]


@pytest.fixture
def having(memory: Memory, server: StandIn) -> Iterator[Having]:
    """Return a function that returns the memory with that reranker and other settings."""
    with ExitStack() as stack:

        def having(**changes: Any) -> Memory:
            settings = {"rerank_url": server.url, "rerank_key": KEY, "rerank_timeout": 5.0} | changes
            made = memory.having(**settings)
            stack.callback(made.context.close)
            return made

        yield having


@pytest.fixture
def ranked(own: Memory, having: Having) -> Memory:
    """Return the memory with facts and that reranker."""
    assert own
    return having()


def texts(found: Recalled) -> list[str]:
    return [one.text for one in found.results]


def test_results_stand_in_the_order_of_the_reranker_with_the_scores_and_relevances_of_recall(
    own: Memory, ranked: Memory
) -> None:
    usual, found = own.ask(QUERY), ranked.ask(QUERY)
    assert (usual.reranked, found.reranked) == (None, True)
    assert texts(found) == sorted(TEXTS, key=by_miles, reverse=True) != texts(usual)
    assert [one.score for one in found.results] == pytest.approx([one.score for one in usual.results], abs=1e-5)
    assert {one.text: one.relevance for one in found.results} == {one.text: one.relevance for one in usual.results}
    assert [one.score for one in found.results] == sorted({one.score for one in found.results}, reverse=True)


def test_the_server_gets_the_question_the_texts_the_model_and_the_key(
    ranked: Memory, having: Having, server: StandIn
) -> None:
    ranked.ask(QUERY)
    (asked,) = server.requests
    assert {*asked.pop("documents")} == {*TEXTS}
    assert asked == {"query": QUERY, "top_n": len(TEXTS)}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    having(rerank_model="bge", rerank_url=server.url.removesuffix("/v1"), rerank_key="").ask(QUERY)
    assert server.requests[1]["model"] == "bge"
    assert "authorization" not in server.headers[1]


def test_only_the_first_are_sent_and_the_others_stay_behind_them(own: Memory, having: Having, server: StandIn) -> None:
    usual = texts(own.ask(QUERY))
    found = texts(having(rerank_candidates=2).ask(QUERY))
    assert server.requests[0]["documents"] == usual[:2]
    assert found == [*sorted(usual[:2], key=by_miles, reverse=True), *usual[2:]]


def test_a_result_below_the_limit_may_come_to_the_first_place(own: Memory, ranked: Memory) -> None:
    (first,) = ranked.ask(QUERY, limit=1).results
    assert first.text == TEXTS[-1] != texts(own.ask(QUERY, limit=1))[0]


def test_what_is_not_relevant_enough_is_not_sent(ranked: Memory, server: StandIn) -> None:
    ranked.add("Her bicycle has a red saddle.")
    ranked.ask(QUERY)
    assert "Her bicycle has a red saddle." not in server.requests[0]["documents"]
    assert ranked.ask("Who won the chess tournament in Zagreb?").results == []
    assert ranked.ask("bicycle saddle", min_relevance=0.9).reranked is None
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        scoring(by_miles, lambda ranks: [{"index": one["index"], "score": one["relevance_score"]} for one in ranks]),
        scoring(by_miles, lambda ranks: {"results": sorted(ranks, key=lambda one: one["index"]), "meta": None}),
        scoring(lambda text: -11.0 + 1e-6 * by_miles(text)),
        scoring(lambda text: 1 - 2.0 ** -(20 + by_miles(text))),
    ],
    ids=["a list of scores", "unsorted", "logits", "nearly one"],
)
def test_the_shapes_and_scales_of_other_servers_give_the_same_order(
    ranked: Memory, server: StandIn, reply: Reply
) -> None:
    server.always = reply
    found = ranked.ask(QUERY)
    assert found.reranked
    assert texts(found) == sorted(TEXTS, key=by_miles, reverse=True)


def test_a_server_that_calls_the_documents_texts_is_asked_so_from_then_on(ranked: Memory, server: StandIn) -> None:
    def inference(handler: Handler) -> None:
        if "texts" not in handler.request_json:
            handler.send(
                422, b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1"
            )
            return
        ranks = [{"index": i, "score": by_miles(one)} for i, one in enumerate(handler.request_json["texts"])]
        handler.send(200, json.dumps(ranks).encode())

    server.always = inference
    assert [texts(ranked.ask(QUERY))[0] for _ in range(2)] == [TEXTS[-1]] * 2
    assert [{"texts", "documents"} & asked.keys() for asked in server.requests] == [{"documents"}, {"texts"}, {"texts"}]
    assert server.requests[1]["truncate"] is True


def test_a_refusal_that_mentions_texts_changes_no_later_request(ranked: Memory, server: StandIn) -> None:
    def refusing(handler: Handler) -> None:
        handler.send(400, b"These texts are too many" if "documents" in handler.request_json else b"Bad request")

    server.replies += [refusing, refusing]
    assert [ranked.ask(QUERY).reranked for _ in range(2)] == [False, True]
    assert [{"texts", "documents"} & asked.keys() for asked in server.requests] == [
        {"documents"}, {"texts"}, {"documents"},
    ]  # fmt: skip


def test_results_with_equal_scores_of_recall_are_ordered_too(own: Memory, having: Having) -> None:
    usual = own.having(ranking="documented").ask(QUERY)
    assert {one.score for one in usual.results} == {1.0}
    assert texts(having(ranking="documented").ask(QUERY)) == sorted(TEXTS, key=by_miles, reverse=True)


def test_equal_scores_keep_the_order_of_recall(own: Memory, ranked: Memory, server: StandIn) -> None:
    server.always = scoring(lambda _: 0.5)
    assert texts(ranked.ask(QUERY)) == texts(own.ask(QUERY))


AWAY: dict[str, Reply] = {
    "500": failure(500),
    "503": failure(503),
    "429": failure(429, retry_after="30"),
    "wrong key": failure(401, message=f"Wrong key {KEY}"),
    "404": failure(404),
    "silence": silence,
    "a dripping body": drip,
    "a broken connection": broken_off,
}
UNUSABLE: dict[str, Reply] = {
    "400": failure(400, message=f"Model of {KEY} is unknown"),
    "422": failure(422),
    "a page": raw(b"<html>It works!</html>", "text/html"),
    "nothing": raw(b""),
    "another object": raw(b'{"scores": [1, 2, 3, 4]}'),
    "too few": scoring(by_miles, lambda ranks: {"results": ranks[:-1]}),
    "too many": scoring(by_miles, lambda ranks: {"results": [*ranks, {"index": len(ranks), "relevance_score": 1}]}),
    "one twice": scoring(by_miles, lambda ranks: {"results": [*ranks[:-1], ranks[0]]}),
    "an index out of range": scoring(by_miles, lambda ranks: {"results": [*ranks[:-1], {**ranks[-1], "index": -1}]}),
    "not a number": scoring(lambda _: float("nan")),
    "infinite": scoring(lambda _: float("-inf")),
    "null": scoring(lambda _: None),
}


@pytest.mark.parametrize("fault", [*AWAY, *UNUSABLE])
def test_whatever_fails_leaves_the_order_of_recall_and_is_logged_without_the_key(
    own: Memory, having: Having, server: StandIn, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.always = (AWAY | UNUSABLE)[fault]
    seconds = 0.2 if fault in ("silence", "a dripping body") else 5.0
    found = [having(rerank_timeout=seconds).ask(QUERY) for _ in range(2)]
    assert [texts(one) for one in found] == [texts(own.ask(QUERY))] * 2
    assert [one.reranked for one in found] == [False, False]
    assert len(server.requests) == (1 if fault in AWAY else 2)
    assert "results stand in their own order" in caplog.text
    assert KEY not in caplog.text


def test_an_answer_without_end_is_not_read_to_the_timeout(
    ranked: Memory, server: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    server.always = endless
    assert ranked.ask(QUERY).reranked is False
    assert "answered with more than 1 MiB, too much for what it was asked. Check EBB_RERANK_URL" in caplog.text


def test_a_wrong_address_fails_no_recall(own: Memory, having: Having) -> None:
    for url in ("http://127.0.0.1:1", "nonsense"):
        found = having(rerank_url=url).ask(QUERY)
        assert (texts(found), found.reranked) == (texts(own.ask(QUERY)), False)


def test_after_a_pause_a_failure_begins_a_longer_one_and_an_answer_ends_it(ranked: Memory, server: StandIn) -> None:
    server.replies.append(failure(503))
    assert not ranked.ask(QUERY).reranked
    assert pause.state(ranked.context.redis, RERANKER).failures == 1
    ranked.context.redis.delete(RERANKER.keys[0])
    server.replies.append(failure(503))
    assert not ranked.ask(QUERY).reranked
    assert pause.state(ranked.context.redis, RERANKER).failures == 2
    ranked.context.redis.delete(RERANKER.keys[0])
    assert ranked.ask(QUERY).reranked
    assert pause.state(ranked.context.redis, RERANKER).failures == 0
    assert pause.state(ranked.context.redis).failures == 0


def test_a_request_that_is_broken_off_after_a_pause_is_no_answer(ranked: Memory) -> None:
    breaker = pause.Pause(ranked.context.redis, RERANKER)
    breaker.failed(RerankerAwayError("away"))
    ranked.context.redis.delete(RERANKER.keys[0])
    with pytest.raises(SoftTimeLimitExceeded), breaker.unless_paused(5):
        raise SoftTimeLimitExceeded
    assert pause.state(ranked.context.redis, RERANKER).failures == 1
    with pytest.raises(RerankerError), breaker.unless_paused(5):
        pytest.fail("another request is trying")
    ranked.context.redis.delete(RERANKER.keys[2])
    with suppress(RerankerError), breaker.unless_paused(5):
        raise RerankerError("an answer that cannot be used")
    assert pause.state(ranked.context.redis, RERANKER).failures == 0


def test_a_newer_statement_stays_above_one_that_it_makes_outdated(
    memory: Memory, having: Having, server: StandIn
) -> None:
    older = memory.add("Mira lives in Leipzig.", entity="Mira", key="home", value="Leipzig")
    newer = memory.add("Mira lives in Hamburg now.", at=9, key="residence", entity="Mira", value="Hamburg")
    memory.link(newer, older, "UPDATES", at=9)
    memory.add("Where Mira works there is a canteen.", at=2)
    server.always = scoring(lambda text: 2.0 if "Leipzig" in text else 1.0 if "canteen" in text else 0.0)
    found = having().ask("Where does Mira live?", at=10, explain=True)
    before = having().ask("Where did Mira live before?", at=10)
    assert [one.id for one in found.results][:2] == [newer, older]
    assert found.results[0].explain
    assert {*found.results[0].explain["updates"]} == {str(older)}
    assert before.results[0].id == older


def test_explanations_say_what_the_reranker_did_and_add_up(ranked: Memory) -> None:
    found = ranked.ask(QUERY, explain=True, limit=2)
    for one, miles in zip(found.results, (3.0, 2.0), strict=True):
        parts = one.explain
        assert parts is not None
        assert parts["rerank_score"] == miles
        within = (parts["fit"] + parts["contiguity"] + parts["graph"] + parts["named"]) * parts["role"]
        total = (within * (1 + parts["salience"]) + parts["prior"]) * parts["factor"]
        assert total + parts["outstanding"] + parts["newer"] + parts["reranked"] == pytest.approx(one.score, abs=1e-5)
    assert found.left_out is not None
    assert {one["rank"]: one["rule"] for one in found.left_out if one["rank"]} == {
        3: "below the limit",
        4: "below the limit",
    }
    last = found.left_out[-1]["id"]
    why = ranked.ask(QUERY, why=UUID(last), limit=2).why
    assert why is not None
    assert (why["recalled"], why["rank"], why["parts"]["rerank_score"]) == (False, 4, 0.0)


def test_several_namespaces_are_ordered_by_one_request(ranked: Memory, server: StandIn) -> None:
    ranked.store("The harbour of Cork is 9 miles away.", "The harbour of Nice is 1 miles away.", namespace="hers")
    found = ranked.ask(QUERY, namespaces=("default", "hers"))
    assert len(server.requests) == 1
    assert [by_miles(one.text) for one in found.results] == [9, 3, 2, 1, 1, 0]
    assert {one.namespace for one in found.results} == {"default", "hers"}


@pytest.mark.long
def test_namespaces_on_several_shards_are_ordered_together(sharded: Memory, server: StandIn) -> None:
    names = ("ann", "bob", "eve", "kim")
    for name, text in zip(names, TEXTS, strict=True):
        with sharded.context.at(name):
            sharded.store(text, namespace=name)
    ranked = sharded.having(rerank_url=server.url)
    with closing(ranked.context), ranked.context.at("ann"):
        found = ranked.ask(QUERY, namespace="ann", namespaces=names, explain=True, limit=3)
    assert [(one.namespace, by_miles(one.text)) for one in found.results] == [("kim", 3), ("eve", 2), ("bob", 1)]
    assert found.left_out is not None
    assert [one["namespace"] for one in found.left_out if one["rule"] == "below the limit"] == ["ann"]


def test_each_of_many_questions_is_one_request_until_time_is_over(
    ranked: Memory, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask() -> Sequence[Any]:
        every = [recall.Question(QUERY), recall.Question("harbour of Oban"), recall.Question("harbour")]
        return recall.recall_many(ranked.context, "default", every, day(0))

    assert [one.reranked for one in ask()] == [True] * 3
    assert [one["query"] for one in server.requests] == [QUERY, "harbour of Oban", "harbour"]
    monkeypatch.setattr(rerank, "MANY_SECONDS", 0.0)
    assert [(len(one.results), one.reranked) for one in ask()] == [(4, False)] * 3
    assert pause.state(ranked.context.redis, RERANKER).failures == 0


def test_the_context_of_a_prompt_is_in_that_order_too(ranked: Memory) -> None:
    shape = context.Shape("minimal")
    done = context.inject(ranked.context, "default", recall.Question(QUERY, limit=2), shape, day(0))
    assert [line.fact.text for line in done.lines] == [TEXTS[3], TEXTS[2]]


def test_of_a_long_text_the_passage_is_sent_and_of_a_long_word_its_beginning(
    memory: Memory, having: Having, server: StandIn
) -> None:
    filler = " ".join(f"word{number}" for number in range(300))
    memory.store(f"{filler} The harbour is in Kiel. {filler}", f"harbour {'x' * 5_000}")
    having().ask("harbour", min_relevance=0.0)
    sent = sorted(server.requests[0]["documents"], key=len)
    assert "The harbour is in Kiel." in sent[0]
    assert [len(one) <= rerank.CHARACTERS for one in sent] == [True, True]


def test_facts_of_which_only_the_signature_is_left_are_ordered_by_their_texts(ranked: Memory) -> None:
    ranked.decay(400)
    found = ranked.ask(QUERY, at=400)
    assert {one.fidelity for one in found.results} == {"fingerprint"}
    assert texts(found) == sorted(TEXTS, key=by_miles, reverse=True)


def test_a_fact_that_is_purged_meanwhile_is_not_in_the_answer(ranked: Memory, server: StandIn) -> None:
    gone = ranked.ask(QUERY).results[0]

    def purge(handler: Handler) -> None:
        ranked.forget(gone.id, at=0, purge=True)
        scoring(by_miles)(handler)

    server.always = purge
    assert texts(ranked.ask(QUERY)) == sorted(TEXTS[:-1], key=by_miles, reverse=True)


def test_counting_in_deep_memory_asks_no_reranker(memory: Memory, having: Having, server: StandIn) -> None:
    for colour in ("red", "blue"):
        memory.add(f"The {colour} bicycle stands in the cellar.", at=20, decay_class="session")
    memory.decay(22)
    assert having().ask("Where is the red bicycle?", at=22).deep
    assert server.requests == []


def test_without_a_reranker_none_is_loaded(own: Memory) -> None:
    own.ask(QUERY)
    assert "reranker" not in vars(own.context)


def test_a_reranker_is_shown_without_the_password_in_its_address() -> None:
    with closing(make_reranker(Settings(rerank_url="http://me:word@localhost:8080/v1/rerank"))) as made:
        assert str(made) == "http://localhost:8080/v1/rerank"
