"""The embedder of OpenAI-compatible endpoints against a real HTTP server that fails in all their ways."""

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from memory import wait_for
from stand_in import Handler, Reply, StandIn, broken_off, drip, drip_headers, endless, failure, raw, serving, silence

from api.up import servers
from workers.core.arrays import Floats
from workers.embedding.openai import OpenAIEmbedder
from workers.errors import EmbeddingError, SettingsError
from workers.settings import Settings

KEY = "sk-secret-012345/6789"


class Api(StandIn):
    """Answers as the API does, after the replies that a test has queued."""

    def __init__(self) -> None:
        super().__init__(answer())
        self.dims = {"text-embedding-3-small": 1536, "text-embedding-ada-002": 1536, "small": 8}


def vector_of(text: str, dims: int) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
    vector: list[float] = np.random.default_rng(seed).normal(size=dims).tolist()
    return vector


def answer(change: Callable[[list[dict[str, Any]]], object] = lambda _: None) -> Reply:
    """Return a reply with the requested embeddings, modified by `change`."""

    def reply(handler: Handler) -> None:
        asked = handler.request_json
        assert isinstance(handler.server, Api)
        dims = asked.get("dimensions", handler.server.dims[asked["model"]])
        items = [
            {"object": "embedding", "index": index, "embedding": vector_of(text, dims)}
            for index, text in enumerate(asked["input"])
        ]
        change(items)
        usage = {"prompt_tokens": 8, "total_tokens": 8}
        body = {"object": "list", "data": items, "model": asked["model"], "usage": usage}
        handler.send(200, json.dumps(body).encode())

    return reply


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    with serving(server):
        yield server


@pytest.fixture
def pauses() -> list[float]:
    """Return the pauses between attempts in seconds, without waiting."""
    return []


@pytest.fixture
def make(api: Api, pauses: list[float]) -> Iterator[Callable[..., OpenAIEmbedder]]:
    made = []

    def make_embedder(**settings: Any) -> OpenAIEmbedder:
        defaults = {"embedder": "openai", "embedding_url": api.url, "embedding_key": KEY}
        embedder = OpenAIEmbedder(Settings.model_validate(defaults | settings), sleep=pauses.append)
        made.append(embedder)
        return embedder

    yield make_embedder
    for embedder in made:
        embedder.close()


@pytest.fixture
def embedder(make: Callable[..., OpenAIEmbedder]) -> OpenAIEmbedder:
    return make()


def expected(text: str, dims: int = 1536) -> Floats:
    vector = np.array(vector_of(text, dims))
    unit: Floats = vector / np.linalg.norm(vector)
    return unit


def test_texts_become_unit_vectors(api: Api, embedder: OpenAIEmbedder) -> None:
    vectors = embedder.embed(["one", "two"])

    np.testing.assert_allclose(vectors, [expected("one"), expected("two")], atol=1e-6)
    assert vectors.dtype == np.float32
    assert api.requests == [{"model": "text-embedding-3-small", "input": ["one", "two"]}]
    assert api.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_known_model_says_its_name_and_dims_without_a_call(api: Api, embedder: OpenAIEmbedder) -> None:
    assert (embedder.name, embedder.dims) == ("openai:text-embedding-3-small:1536", 1536)
    assert embedder.embed([]).shape == (0, 1536)
    assert api.requests == []


def test_an_unknown_model_is_asked_for_its_dims_once(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(embedding_model="small")

    assert (embedder.name, embedder.dims) == ("openai:small:8", 8)
    assert embedder.embed(["one", "two"]).shape == (2, 8)
    assert [len(request["input"]) for request in api.requests] == [1, 2]


def test_a_model_that_can_shorten_is_asked_to(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(max_vector_dim=256)

    np.testing.assert_allclose(embedder.embed(["one"]), [expected("one", 256)], atol=1e-6)
    assert embedder.name == "openai:text-embedding-3-small:256"
    assert api.requests[0]["dimensions"] == 256


@pytest.mark.parametrize(("model", "dims"), [("text-embedding-ada-002", 1536), ("small", 8)])
def test_another_model_is_cut_here(api: Api, make: Callable[..., OpenAIEmbedder], model: str, dims: int) -> None:
    embedder = make(embedding_model=model, max_vector_dim=4, min_vector_dim=2)

    cut = expected("one", dims)[:4]
    np.testing.assert_allclose(embedder.embed(["one"]), [cut / np.linalg.norm(cut)], atol=1e-6)
    assert embedder.name == f"openai:{model}:4"
    assert all("dimensions" not in request for request in api.requests)


def test_without_a_key_none_is_sent(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    make(embedding_key="").embed(["one"])

    assert "authorization" not in api.headers[0]


def test_the_whole_address_is_taken_for_its_base(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    vectors = make(embedding_url=f"{api.url}/embeddings/").embed(["one"])

    assert vectors.shape == (1, 1536)


def test_batches_keep_the_order(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    texts = [f"text {number}" for number in range(5)]

    vectors = make(embedding_model="small", embedding_batch=2).embed(texts)

    np.testing.assert_allclose(vectors, [expected(text, 8) for text in texts], atol=1e-6)
    assert [len(request["input"]) for request in api.requests] == [2, 2, 1]


def test_an_answer_out_of_order_is_put_in_order(api: Api, embedder: OpenAIEmbedder) -> None:
    api.replies.append(answer(lambda items: items.reverse()))

    vectors = embedder.embed(["one", "two", "three"])

    np.testing.assert_allclose(vectors, [expected(text) for text in ("one", "two", "three")], atol=1e-6)


def test_an_answer_without_indexes_is_in_order(api: Api, embedder: OpenAIEmbedder) -> None:
    api.replies.append(answer(lambda items: [item.pop("index") for item in items]))

    np.testing.assert_allclose(embedder.embed(["one", "two"]), [expected("one"), expected("two")], atol=1e-6)


def test_a_text_too_long_for_the_model_is_the_mean_of_its_pieces(api: Api, embedder: OpenAIEmbedder) -> None:
    text = "x" * 8000 + "y" * 4000

    vectors = embedder.embed(["short", text])

    mean = expected("x" * 8000) * 8 + expected("y" * 4000) * 4
    np.testing.assert_allclose(vectors, [expected("short"), mean / np.linalg.norm(mean)], atol=1e-5)
    assert [len(piece) for piece in api.requests[0]["input"]] == [5, 8000, 4000]


def test_one_request_is_never_too_long(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    make(embedding_batch=2048).embed(["x" * 60_000 + str(number) for number in range(8)])

    sizes = [sum(len(piece) for piece in request["input"]) for request in api.requests]
    assert len(sizes) == 2
    assert max(sizes) <= 300_000


def test_a_pause_is_as_long_as_the_server_asks(api: Api, embedder: OpenAIEmbedder, pauses: list[float]) -> None:
    api.replies.append(failure(429, retry_after="7"))

    assert embedder.embed(["one"]).shape == (1, 1536)
    assert pauses == [7]


def test_the_server_may_ask_with_a_date(api: Api, embedder: OpenAIEmbedder, pauses: list[float]) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)
    api.replies.append(failure(503, retry_after=date))

    embedder.embed(["one"])

    assert 5 < pauses[0] <= 9


@pytest.mark.parametrize("header", ["soon", "-3", "nan", "Fri, 31 Dec 9999 23:59:59 -1200"])
def test_an_invalid_retry_after_is_ignored(
    api: Api, embedder: OpenAIEmbedder, pauses: list[float], header: str
) -> None:
    api.replies.append(failure(429, retry_after=header))

    assert embedder.embed(["one"]).shape == (1, 1536)
    assert 0 <= pauses[0] <= 1


def test_a_pause_beyond_the_budget_is_not_begun(api: Api, embedder: OpenAIEmbedder, pauses: list[float]) -> None:
    api.always = failure(429, retry_after="60")

    with pytest.raises(EmbeddingError, match=r"429 .* Attempts: 1\."):
        embedder.embed(["one"])
    assert pauses == []


def test_three_failures_are_survived_with_growing_pauses(
    api: Api, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    api.replies.extend([failure(500)] * 3)

    assert embedder.embed(["one"]).shape == (1, 1536)
    assert len(api.requests) == 4
    for pause, least in zip(pauses, [0.5, 1, 2], strict=True):
        assert least <= pause <= least + 0.5


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_failure_that_stays_is_reported_after_five_attempts(
    api: Api, embedder: OpenAIEmbedder, pauses: list[float], status: int
) -> None:
    api.always = failure(status, "Overloaded just now.")

    said = rf"/v1/embeddings answered {status} .*Overloaded just now\. [A-Z].*Attempts: 5\."
    with pytest.raises(EmbeddingError, match=said):
        embedder.embed(["one"])
    assert (len(api.requests), len(pauses)) == (5, 4)
    assert sum(pauses) < 20


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (301, "EBB_EMBEDDING_URL"),
        (400, "EBB_EMBEDDING_MODEL"),
        (401, "EBB_EMBEDDING_KEY"),
        (403, "EBB_EMBEDDING_KEY"),
        (404, "EBB_EMBEDDING_URL"),
        (413, "EBB_EMBEDDING_BATCH"),
        (418, "EBB_EMBEDDING_MODEL"),
    ],
)
def test_a_refusal_fails_at_once_and_says_what_to_check(
    api: Api, embedder: OpenAIEmbedder, status: int, advice: str
) -> None:
    api.always = failure(status)

    with pytest.raises(EmbeddingError, match=rf"answered {status} .*{advice}"):
        embedder.embed(["one"])
    assert len(api.requests) == 1


def test_an_account_without_credit_is_not_asked_again(api: Api, embedder: OpenAIEmbedder) -> None:
    api.always = failure(429, "You exceeded your current quota.", code="insufficient_quota")

    with pytest.raises(EmbeddingError, match=r"429 .*exceeded your current quota.*limit"):
        embedder.embed(["one"])
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        failure(400, f"Bad request with {KEY} in it"),
        failure(401, f"Incorrect API key provided: {KEY[:8]}****{KEY[-4:]}"),
        failure(500, f"Crashed on {KEY}"),
        raw(f"<html>{KEY}</html>".encode()),
        raw(json.dumps({"key": KEY}).replace("/", "\\/").encode(), status=400),
    ],
)
def test_the_key_is_in_no_message(api: Api, make: Callable[..., OpenAIEmbedder], reply: Reply) -> None:
    api.always = reply
    url = api.url.replace("http://", "http://user:password@")

    with pytest.raises(EmbeddingError) as caught:
        make(embedding_url=url).embed(["one"])
    assert "127.0.0.1" in str(caught.value)
    for secret in (KEY, KEY[:8], "password"):
        assert secret not in str(caught.value)


def test_silence_ends_at_the_timeout(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    api.always = silence

    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.1 s.*EBB_EMBEDDING_TIMEOUT.*Attempts: 5"):
        make(embedding_timeout=0.1).embed(["one"])
    wait_for(lambda: len(api.requests) == 5)


def test_one_slow_answer_is_survived(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    api.replies.append(silence)

    assert make(embedding_timeout=1.0).embed(["one"]).shape == (1, 1536)
    assert len(api.requests) == 2


@pytest.mark.parametrize("reply", [drip, drip_headers])
def test_an_answer_that_drips_in_ends_at_the_timeout(
    api: Api, make: Callable[..., OpenAIEmbedder], reply: Reply
) -> None:
    api.always = reply

    with pytest.raises(EmbeddingError, match="did not answer within"):
        make(embedding_timeout=0.2).embed(["one"])


def test_an_answer_without_end_is_not_read_to_the_timeout(
    api: Api, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    api.replies.append(endless)

    with pytest.raises(EmbeddingError, match=r"more than 1 MiB, too much .* asked\. Check EBB_EMBEDDING_URL"):
        embedder.embed(["one"])
    assert (len(api.requests), pauses) == (1, [])


def test_an_answer_may_be_as_long_as_what_was_asked_for(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    def indented(items: list[dict[str, Any]]) -> None:
        for item in items:
            item["spaces"] = " " * 20 * len(item["embedding"])

    api.always = answer(indented)

    assert make(embedding_batch=200).embed(list(map(str, range(200)))).shape == (200, 1536)


def test_a_refusal_without_end_is_quoted_from_its_beginning(api: Api, embedder: OpenAIEmbedder) -> None:
    def refusing(handler: Handler) -> None:
        handler.send(400, b"no such model", {"content-length": str(1 << 50)})
        while not handler.server.over.is_set():
            handler.wfile.write(b" " * 0x10000)

    api.replies.append(refusing)

    with pytest.raises(EmbeddingError, match=r"answered 400 .*: no such model\. .*EBB_EMBEDDING_MODEL"):
        embedder.embed(["one"])


def test_a_refusal_that_is_nested_too_deeply_is_quoted(api: Api, embedder: OpenAIEmbedder) -> None:
    api.always = raw(b'{"error":' * 100_000, status=400)

    with pytest.raises(EmbeddingError, match=r'answered 400 .*"error":.*EBB_EMBEDDING_MODEL'):
        embedder.embed(["one"])


def test_a_refusal_with_half_a_character_can_be_written_to_a_log(api: Api, embedder: OpenAIEmbedder) -> None:
    api.always = failure(400, "too long: 😀"[:-1] + "\ud83d")

    with pytest.raises(EmbeddingError, match=r"answered 400 .*: too long: \?\. Check") as caught:
        embedder.embed(["one"])
    assert str(caught.value).encode()


def test_a_cookie_that_no_request_could_have_spoils_no_later_one(api: Api, embedder: OpenAIEmbedder) -> None:
    def setting_a_cookie(handler: Handler) -> None:
        handler.send(503, b"", {"Set-Cookie": "node=\xe9"})

    api.replies.append(setting_a_cookie)

    assert embedder.embed(["one"]).shape == (1, 1536)
    assert len(api.requests) == 2


def test_an_answer_broken_off_is_asked_for_again(api: Api, embedder: OpenAIEmbedder) -> None:
    api.replies.append(broken_off)

    assert embedder.embed(["one"]).shape == (1, 1536)
    assert len(api.requests) == 2


def test_a_server_that_is_away_is_named(make: Callable[..., OpenAIEmbedder], pauses: list[float]) -> None:
    url = f"http://127.0.0.1:{servers.free_port()}/v1"

    with pytest.raises(EmbeddingError, match=rf"No answer from {url}/embeddings: .*refused.*is up.*Attempts: 5"):
        make(embedding_url=url).embed(["one"])
    assert len(pauses) == 4


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (answer(lambda items: items.pop()), "1 embeddings, numbered 0, for 2 texts"),
        (answer(lambda items: items.clear()), "0 embeddings, numbered none, for 2 texts"),
        (answer(lambda items: items.append(items[0])), "3 embeddings"),
        (answer(lambda items: items[1].update(index=0)), "numbered 0, 0"),
        (answer(lambda items: items[1].update(index=7)), "numbered 0, 7"),
        (answer(lambda items: items[1]["embedding"].pop()), "1535, 1536 dimensions where 1536"),
        (
            answer(lambda items: [item.update(embedding=[1.0] * 4) for item in items]),
            "4 dimensions where 1536",
        ),
        (answer(lambda items: items[0]["embedding"].__setitem__(3, float("nan"))), "not finite"),
        (answer(lambda items: items[0]["embedding"].__setitem__(3, float("inf"))), "not finite"),
        (answer(lambda items: items[1].update(embedding=[0] * 1536)), "vector of zeros"),
        (answer(lambda items: items[1].update(embedding="AACAPw==")), "no list of embeddings"),
        (raw(b'{"object": "list", "data": [{"index": 0, "embedding": [0.1, 0.'), "no list of embeddings"),
        (raw(b"<html><h1>Welcome to the gateway</h1></html>", "text/html"), "Welcome to the gateway"),
        (raw(b'{"error": {"message": "no such model"}}'), "no such model"),
        (raw(b"\xff\xfe"), "no list of embeddings"),
        (raw(b""), "no list of embeddings"),
    ],
)
def test_an_unusable_answer_is_reported_and_nothing_of_it_used(
    api: Api, embedder: OpenAIEmbedder, reply: Reply, message: str
) -> None:
    api.always = reply

    with pytest.raises(EmbeddingError, match=rf"(?s)answered .*{message}.*Check EBB_EMBEDDING_URL"):
        embedder.embed(["one", "two"])
    assert len(api.requests) == 1


def test_numbers_of_any_size_keep_their_direction(api: Api, embedder: OpenAIEmbedder) -> None:
    api.replies.append(answer(lambda items: items[0].update(embedding=[3e200, 4e200] + [0.0] * 1534)))
    api.replies.append(answer(lambda items: items[0].update(embedding=[3e-200, 4e-200] + [0.0] * 1534)))

    for _ in range(2):
        np.testing.assert_allclose(embedder.embed(["one"])[0, :2], [0.6, 0.8], atol=1e-6)


def test_a_cut_vector_of_zeros_is_refused(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(embedding_model="small", max_vector_dim=4, min_vector_dim=2)
    assert embedder.dims == 4
    api.replies.append(answer(lambda items: items[0].update(embedding=[0.0] * 4 + [1.0] * 4)))

    with pytest.raises(EmbeddingError, match="vector of zeros"):
        embedder.embed(["one"])


def test_a_model_that_changes_its_dims_is_refused(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(embedding_model="small")
    assert embedder.dims == 8
    api.dims["small"] = 16

    with pytest.raises(EmbeddingError, match="16 dimensions where 8 are due"):
        embedder.embed(["one"])


def test_dims_are_asked_for_again_after_a_failure(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    embedder = make(embedding_model="small")
    api.replies.append(failure(404))

    with pytest.raises(EmbeddingError):
        _ = embedder.dims
    assert embedder.dims == 8


@pytest.mark.parametrize("url", ["localhost:11434/v1", "ftp://127.0.0.1/v1", "http://", "http://[::1/v1"])
def test_a_wrong_url_is_refused_before_any_call(make: Callable[..., OpenAIEmbedder], url: str) -> None:
    with pytest.raises(SettingsError, match="EBB_EMBEDDING_URL="):
        make(embedding_url=url)


def test_a_wrong_url_with_a_password_is_not_shown(make: Callable[..., OpenAIEmbedder]) -> None:
    for wrong in ("http//mira:secret@127.0.0.1/v1", "127.0.0.1/v1?key=secret"):
        with pytest.raises(SettingsError, match=r"^EBB_EMBEDDING_URL.* is no URL of a server") as caught:
            make(embedding_url=wrong)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-sécret", "two words", "line\nbreak"])
def test_a_damaged_key_is_refused_and_not_shown(make: Callable[..., OpenAIEmbedder], key: str) -> None:
    with pytest.raises(SettingsError, match="EBB_EMBEDDING_KEY") as caught:
        make(embedding_key=key)
    assert key not in str(caught.value)


def test_a_key_may_end_its_line(api: Api, make: Callable[..., OpenAIEmbedder]) -> None:
    make(embedding_key=f"{KEY}\n").embed(["one"])

    assert api.headers[0]["authorization"] == f"Bearer {KEY}"


def test_neither_key_nor_url_is_refused(make: Callable[..., OpenAIEmbedder]) -> None:
    with pytest.raises(SettingsError, match=r"EBB_EMBEDDING_KEY.*EBB_EMBEDDING_URL"):
        make(embedding_key="", embedding_url="")
