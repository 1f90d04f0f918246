"""Storing on a real database: each text once, also under concurrent writes, and nothing lost."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.context import Context
from workers.embedding.openai import OpenAIEmbedder
from workers.errors import InvalidInputError
from workers.memory import embed
from workers.memory.add import Stored
from workers.settings import Settings
from workers.storage.connection import close_pools, connect

MANY = 3_000
TEXTS = [f"Guest number {number} prefers room {number * 7}." for number in range(MANY)]
COUNTS = """
    select count(*), count(activity.fact), count(vectors.fact), count(signatures.fact)
    from facts
    left join activity on activity.fact = id
    left join vectors on vectors.fact = id
    left join signatures on signatures.fact = id and live
    where forgotten_at is null
"""


def actions(answers: list[Stored | InvalidInputError]) -> list[str]:
    return ["refused" if isinstance(one, InvalidInputError) else one.action for one in answers]


def store_shuffled(database_url: str, seed: int) -> list[tuple[str, UUID]]:
    """Store all texts in a random order and in batches; return the outcomes in the order of `TEXTS`."""
    memory = Memory(Context(Settings(database_url=database_url)))
    order = random.Random(seed).sample(range(len(TEXTS)), len(TEXTS))
    became: dict[int, tuple[str, UUID]] = {}
    for start in range(0, len(order), 100):
        places = order[start : start + 100]
        answers = memory.store(*[TEXTS[place] for place in places])
        became |= {p: (a.action, a.id) for p, a in zip(places, answers, strict=True) if isinstance(a, Stored)}
    return [became[place] for place in range(len(TEXTS))]


def test_two_threads_storing_the_same_facts_leave_each_once(memory: Memory) -> None:
    url = memory.context.database_url
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(store_shuffled, [url, url], [1, 2])
    assert memory.rows(COUNTS) == [(MANY, MANY, MANY, MANY)]
    for (our_action, our_id), (their_action, their_id) in zip(ours, theirs, strict=True):
        assert our_id == their_id
        assert {our_action, their_action} == {"added", "duplicate"}


def test_two_threads_with_one_large_batch_each_in_opposite_order_do_not_deadlock(memory: Memory) -> None:
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(lambda texts: memory.store(*texts), [TEXTS, TEXTS[::-1]])
    assert memory.rows(COUNTS) == [(MANY, MANY, MANY, MANY)]
    assert Counter(actions(ours) + actions(theirs)) == {"added": MANY, "duplicate": MANY}


def test_a_repeat_with_the_same_id_is_unchanged_and_touches_nothing(memory: Memory) -> None:
    fact = {"id": str(uuid4()), "text": "The safe opens at nine."}
    memory.store(fact)
    before = memory.row(UUID(fact["id"]))
    assert actions(memory.store(fact, at=3)) == ["unchanged"]
    assert memory.row(UUID(fact["id"])) == before


def test_a_repeat_is_unchanged_even_when_the_fact_was_forgotten(memory: Memory) -> None:
    fact = {"id": str(uuid4()), "text": "The safe opens at nine.", "decay_class": "session"}
    memory.store(fact)
    memory.decay(2)
    assert actions(memory.store(fact, at=3)) == ["unchanged"]
    assert memory.ids("When does the safe open?", at=3) == []


def test_a_repeat_is_no_use_of_an_equal_fact_that_was_stored_since(memory: Memory) -> None:
    fact = {"id": str(uuid4()), "text": "The safe opens at nine.", "decay_class": "session", "session": "bank"}
    memory.store(fact)
    memory.decay(2)
    again = memory.add(fact["text"], at=3)
    for sunk in (False, True):
        assert not sunk or memory.demote(at=4) == 1
        before = memory.row(again), memory.rows("select * from occurrences")
        assert actions(memory.store(fact, at=5)) == ["duplicate"]
        assert (memory.row(again), memory.rows("select * from occurrences")) == before


def test_a_duplicate_answers_with_the_first_id_and_touches_it_once(memory: Memory) -> None:
    first = memory.add("The safe opens at nine.", strength=0.35)
    answers = memory.store("The safe opens at nine.", "the SAFE  opens at nine. ", at=0.001)
    row = memory.row(first)
    assert [one.id for one in answers if isinstance(one, Stored)] == [first, first]
    assert actions(answers) == ["duplicate", "duplicate"]
    assert (row["recall_count"], row["coactivations"], row["last_seen"]) == (1, 1, 0.001)


def test_a_duplicate_stored_without_touch_leaves_the_fact_as_it_was(memory: Memory) -> None:
    first = memory.add("The safe opens at nine.")
    before = memory.row(first)
    assert actions(memory.store("The safe opens at nine.", at=1, touch=False)) == ["duplicate"]
    assert memory.row(first) == before


@pytest.mark.parametrize("touch", [True, False])
def test_a_duplicate_that_is_touched_says_whether_its_vector_has_faded(memory: Memory, touch: bool) -> None:
    memory.add("The safe opens at nine.", strength=0.4)
    memory.add("Tea at four.", at=99)
    memory.decay(100)
    answers = memory.store("The safe opens at nine.", "Tea at four.", "Cake on Sunday.", at=100, touch=touch)
    assert [one.faded for one in answers if isinstance(one, Stored)] == [touch, False, False]


def test_of_two_texts_with_one_id_one_is_stored_and_the_other_refused(memory: Memory) -> None:
    id_ = str(uuid4())
    answers = memory.store({"id": id_, "text": "Tea at four."}, {"id": id_, "text": "Tea at five."})
    assert sorted(actions(answers)) == ["added", "refused"]
    (refused,) = [one for one in answers if isinstance(one, InvalidInputError)]
    assert "belongs to another fact already" in str(refused)
    assert memory.value("select count(*) from facts") == 1


def test_the_same_text_twice_in_one_batch_is_one_fact_and_a_duplicate(memory: Memory) -> None:
    first, second = memory.store("Tea at four.", "tea at FOUR.")
    assert isinstance(first, Stored)
    assert isinstance(second, Stored)
    assert (first.action, second.action) == ("added", "duplicate")
    assert first.id == second.id
    assert memory.rows(COUNTS) == [(1, 1, 1, 1)]


@pytest.mark.parametrize("known", [0, 1])
def test_a_batch_states_what_its_facts_would_state_one_by_one(memory: Memory, known: int) -> None:
    given = [{"text": "Likes tea."}, *({"text": "Likes tea.", "entity": name} for name in ("Mira", "Bo"))]
    memory.store(*given[:known])
    assert actions(memory.store(*given[known:])) == ["added", "updated", "added"][known:]
    assert memory.rows("select entity from facts order by entity") == [("Bo",), ("Mira",)]


def test_a_refused_fact_gives_none_of_its_details_to_another_of_its_batch(memory: Memory) -> None:
    bad = {"text": "Likes tea.", "entity": "Mira", "supersedes": str(uuid4())}
    assert actions(memory.store(bad, "Likes tea.")) == ["refused", "added"]
    assert actions(memory.store({"text": "Likes tea.", "entity": "Bo"})) == ["updated"]


def test_a_statement_stored_again_in_a_batch_is_there_with_less_detail_too(memory: Memory) -> None:
    memory.forget(memory.add("Likes tea.", entity="Mira"), at=1)
    again = {"text": "Likes tea.", "entity": "Mira", "again": True}
    assert actions(memory.store(again, "Likes tea.", at=2)) == ["added", "duplicate"]


def test_the_same_fact_twice_in_one_batch_is_added_and_unchanged(memory: Memory) -> None:
    fact = {"id": str(uuid4()), "text": "Tea at four."}
    assert actions(memory.store(fact, fact)) == ["added", "unchanged"]
    assert memory.row(UUID(fact["id"]))["recall_count"] == 0


def test_a_text_whose_id_is_taken_is_stored_by_its_next_mention_in_the_batch(memory: Memory) -> None:
    taken = str(memory.add("Coffee at ten."))
    answers = memory.store({"id": taken, "text": "Tea at four."}, "Tea at four.", "Cake on Sunday.")
    assert actions(answers) == ["duplicate", "added", "added"]


def test_of_one_id_given_twice_the_first_text_has_it_and_the_second_is_stored_without(memory: Memory) -> None:
    id_ = str(uuid4())
    answers = memory.store(
        {"id": id_, "text": "Tea at four."}, {"id": id_, "text": "Cake on Sunday."}, "Cake on Sunday."
    )
    assert actions(answers) == ["added", "duplicate", "added"]
    assert memory.row(UUID(id_))["text"] == "Tea at four."


def test_what_was_forgotten_can_be_stored_again(memory: Memory) -> None:
    first = memory.add("The code is 4711.", decay_class="checkpoint")
    memory.decay(2)
    second = memory.add("The code is 4711.", at=3)
    assert memory.row(first)["forgotten_reason"] == "expired"
    assert memory.ids("What is the code?", at=3) == [second]


@pytest.mark.parametrize(
    ("fields", "ended", "reason"), [({"decay_class": "session"}, 1, "faded"), ({"confidence": 0.2}, 180.01, "culled")]
)
def test_what_has_ended_can_be_stored_again_before_any_pass(
    memory: Memory, fields: dict[str, Any], ended: float, reason: str
) -> None:
    first = memory.add("The code is 4711.", **fields)
    assert actions(memory.store("The code is 4711.", at=ended - 0.5, touch=False)) == ["duplicate"]
    second = memory.add("The code is 4711.", at=ended)
    assert memory.row(first)["forgotten_reason"] == reason
    assert memory.ids("What is the code?", at=ended) == [second]


def test_namespaces_store_the_same_text_each_for_itself(memory: Memory) -> None:
    ours = memory.add("Tea at four.", namespace="ours")
    theirs = memory.add("Tea at four.", namespace="theirs")
    assert ours != theirs
    assert memory.ids("tea", namespace="ours") == [ours]


def test_two_threads_adding_one_new_namespace_share_it(memory: Memory) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda text: memory.store(text, namespace="new"), ["Tea at four.", "Coffee at ten."]))
    assert memory.rows("select name from namespaces") == [("new",)]
    assert len(memory.ids("tea coffee", namespace="new")) == 2


def test_recalled_context_is_not_learnt_again(memory: Memory) -> None:
    id_ = memory.add("Noted.\n<memory-context>\nTea at four.\n</memory-context>\nMilk is out.")
    assert memory.row(id_)["text"] == "Noted.\n\nMilk is out."
    assert memory.rows("select id from facts where search @@ 'tea'") == []


@pytest.mark.parametrize("session", [7, "7", "evening", -(2**62)])
def test_a_session_comes_back_as_it_was_given(memory: Memory, session: int | str) -> None:
    memory.add("Tea at four.", session=session, turn=0)
    (found,) = memory.ask("tea").results
    assert (found.session, type(found.session), found.turn) == (session, type(session), 0)


def test_every_field_comes_back_as_it_was_given(memory: Memory) -> None:
    given: dict[str, Any] = {
        "category": "habit", "entity": "Ana", "key": "tea", "value": "green, 'hot' & \\strong", "source": "diary",
        "tags": ["drinks", "after noon"], "importance": 0.8, "kind": "episodic", "decay_class": "stable",
        "role": "assistant",
    }  # fmt: skip
    memory.add("Ana takes green tea.", **given)
    (found,) = memory.ask("tea").results
    assert {name: getattr(found, name) for name in given} == given


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match=r"role: .*'user', 'assistant', 'system' or 'tool'.*'narrator'"):
        memory.store({"text": "Coffee at ten.", "role": "narrator"})


def test_the_longest_session_fits_its_index_and_a_longer_one_is_refused(memory: Memory) -> None:
    letters = random.Random(3)
    session = "".join(chr(letters.randrange(0x4E00, 0x9FFF)) for _ in range(341))
    assert memory.row(memory.add("Tea at four.", session=session, turn=1))["session"] == session
    with pytest.raises(InvalidInputError, match="at most 1024 bytes"):
        memory.store({"text": "Coffee at ten.", "session": session + "語"})


class Failing(BaseHTTPRequestHandler):
    """An embedding endpoint that answers every request with an error."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_error(500)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


class Tiring(BaseHTTPRequestHandler):
    """An embedding endpoint that refuses requests after the second one."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        self.server.answered = getattr(self.server, "answered", 0) + 1  # type: ignore[attr-defined]
        if self.server.answered > 2:  # type: ignore[attr-defined]
            self.send_error(400)
            return
        data = [{"index": i, "embedding": [1.0, float(len(text)), 0.5, 0.25]} for i, text in enumerate(asked)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


@contextmanager
def endpoint(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture
def failing_url() -> Iterator[str]:
    with endpoint(Failing) as url:
        yield url


@pytest.fixture
def broken(memory: Memory, failing_url: str) -> Iterator[Memory]:
    """Return the same memory with a failing embedding endpoint, without pauses between attempts."""
    broken = memory.having(embedder="openai", embedding_url=failing_url, embedding_model="never-asked-before")
    with closing(OpenAIEmbedder(broken.context.settings, sleep=lambda _: None)) as embedder:
        broken.context.embedder = embedder
        yield broken


def test_a_failing_embedder_leaves_the_fact_pending_and_found_by_its_words(memory: Memory, broken: Memory) -> None:
    (stored,) = broken.store("The dentist is in Mill Lane.")
    assert isinstance(stored, Stored)
    assert (stored.action, stored.embedded) == ("added", False)
    assert memory.ids("dentist") == [stored.id]
    assert memory.ask("dentist").results[0].fidelity == "pending"
    assert memory.stats().pending_embeddings == 1


def test_vectors_that_came_before_the_embedder_failed_are_kept(memory: Memory) -> None:
    with endpoint(Tiring) as url:
        tiring = memory.having(embedder="openai", embedding_url=url, embedding_model="m", embedding_batch=2)
        with closing(OpenAIEmbedder(tiring.context.settings)) as embedder:
            tiring.context.embedder = embedder
            embed.reset(tiring.context)
            stored = tiring.store("One.", "Two.", "Three.", "Four.")

    assert [one.embedded for one in stored if isinstance(one, Stored)] == [True, True, False, False]
    assert memory.stats().pending_embeddings == 2


def test_a_pending_fact_gets_its_vector_once_an_embedder_answers(memory: Memory, broken: Memory) -> None:
    broken.store("The dentist is in Mill Lane.")
    assert embed.embed_pending(memory.context, embed.START, day(1)) is not None
    assert memory.rows(COUNTS) == [(1, 1, 1, 1)]
    assert memory.stats().fidelity == {"full": 1, "pooled": 0, "fingerprint": 0}
    assert memory.ids("dentists") != []


def test_a_duplicate_of_a_pending_fact_says_that_it_has_no_vector(broken: Memory) -> None:
    broken.store("The dentist is in Mill Lane.")
    (again,) = broken.store("The dentist is in Mill Lane.", at=1)
    assert isinstance(again, Stored)
    assert (again.action, again.embedded) == ("duplicate", False)


def test_a_recall_with_a_failing_embedder_goes_by_words(memory: Memory, broken: Memory) -> None:
    id_ = memory.add("The dentist is in Mill Lane.")
    found = broken.ask("dentist")
    assert [one.id for one in found.results] == [id_]
    assert not found.by_meaning


def test_an_endpoint_that_is_away_leaves_the_fact_pending(memory: Memory) -> None:
    away = memory.having(embedder="openai", embedding_url="http://127.0.0.1:1/v1", embedding_timeout=0.05)
    with closing(OpenAIEmbedder(away.context.settings, sleep=lambda _: None)) as embedder:
        away.context.embedder = embedder
        (stored,) = away.store("The dentist is in Mill Lane.")
    close_pools()
    assert isinstance(stored, Stored)
    assert not stored.embedded


def test_a_fact_without_tags_gets_those_of_the_topics_it_names(memory: Memory) -> None:
    memory.store(
        {"text": "OAuth token for the API endpoint", "entity": "Home Assistant"},
        {"text": "NIBE F1245 uses Modbus", "tags": "nibe, Modbus,HVAC"},
        {"text": "Docker, but untagged", "tags": []},
        {"text": "Docker of a file", "kind": "chunk", "source": "a.md"},
        classify=True,
    )
    tags = dict(memory.rows("select text, array_to_string(tags, ',') from facts"))
    assert tags == {
        "OAuth token for the API endpoint": "auth,api,homeassistant",
        "NIBE F1245 uses Modbus": "nibe,modbus,hvac",
        "Docker, but untagged": "",
        "Docker of a file": "",
    }
    assert [one.text for one in memory.ask("token", tag="auth").results] == ["OAuth token for the API endpoint"]


def test_an_archive_is_not_tagged_unless_it_is_classified(memory: Memory) -> None:
    memory.store("Docker on the shelf", classify=False)
    assert memory.value("select tags from facts") == []


def test_a_batch_waits_for_no_fact_while_it_holds_one_that_it_forgot(memory: Memory) -> None:
    known, ended = memory.add("Mira likes tea."), memory.add("Mira is on a train.", decay_class="session")
    lock = "select fact from activity where fact = %s for no key update nowait"
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        db.execute(lock, [known])
        storing = pool.submit(memory.store, "Mira is on a train.", "Mira likes tea.", at=2)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.execute(lock, [ended])  # as another batch may, in the order of ids
        db.commit()
        assert [one.action for one in storing.result()] == ["added", "duplicate"]


def test_a_batch_that_says_a_thing_twice_adds_nothing_when_it_comes_again_after_that_has_ended(memory: Memory) -> None:
    one, other, newer = (str(uuid4()) for _ in range(3))
    twice = [{"id": one, "text": "The ferry leaves at nine."}, {"id": other, "text": "The ferry leaves at nine."}]
    batch = [*twice, {"id": newer, "text": "The ferry leaves at ten.", "supersedes": one}]
    assert [done.action for done in memory.store(*batch)] == ["added", "duplicate", "updated"]
    again = memory.store(*batch, at=1)
    assert [done.action for done in again] == ["unchanged", "duplicate", "updated"]
    assert [str(done.id) for done in again] == [one, one, newer]
    assert memory.value("select count(*) from facts") == 2
    assert memory.store({"id": other, "text": "The ferry leaves at nine."}, at=2)[0].action == "added"
