"""One embedder for a database: another one is refused or replaces all vectors."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from memory import LOCK_WAITS, Memory, day, wait_for
from psycopg.errors import SerializationFailure

from workers.admin import branches as branching
from workers.errors import EmbedderMismatchError, EmbeddingError
from workers.memory import embed, restore
from workers.memory.add import Stored
from workers.memory.embed import check_embedder
from workers.storage import activity, due, vectors
from workers.storage.connection import connect

TEXTS = [f"Guest number {number} prefers room {number * 7}." for number in range(30)]
DIMS = "select distinct full_dims, vector_dims(embedding) from vectors"


@pytest.fixture
def other(memory: Memory) -> Memory:
    """Return the same database with another configured embedder."""
    return memory.having(max_vector_dim=128, embedding_batch=7)


def embed_all(memory: Memory) -> int:
    """Embed pending facts; return the number of batches."""
    batches, place = 0, embed.embed_pending(memory.context, embed.START, day(1))
    while place is not None:
        batches, place = batches + 1, embed.embed_pending(memory.context, place, day(1))
    return batches


def test_another_embedder_is_refused_with_what_to_do(memory: Memory, other: Memory) -> None:
    with pytest.raises(EmbedderMismatchError) as refusal:
        check_embedder(other.context)
    said = str(refusal.value)
    assert "holds vectors of static:minilm-distilled:256 (256 dims)" in said
    assert "configured is static:minilm-distilled:128 (128 dims)" in said
    assert "`ebb reembed`" in said
    check_embedder(memory.context)


def test_a_database_with_the_default_of_earlier_versions_keeps_it_until_it_is_reembedded(memory: Memory) -> None:
    embed.reset(memory.having(embedder="hashing").context)
    assert memory.having().context.embedder.name == "hashing:char3-5-log-centred:256"
    check_embedder(memory.having().context)
    moving = memory.having(embedder="static")
    with pytest.raises(EmbedderMismatchError, match=r"holds vectors of hashing.*configured is static.*`ebb reembed`"):
        check_embedder(moving.context)
    embed.reset(moving.context)
    check_embedder(memory.having().context)
    assert memory.having().context.embedder.name == "static:minilm-distilled:256"


def test_facts_are_found_by_meaning_without_a_common_word(memory: Memory) -> None:
    memory.store("The engine of my Honda broke down.", "A cat is a small feline.", "Tea is served at four.")
    assert memory.ask("car trouble").results[0].text == "The engine of my Honda broke down."


def test_signatures_of_another_version_are_refused_until_they_are_computed_again(memory: Memory) -> None:
    memory.store(*TEXTS)
    memory.rows("update embedders set signature_seed = 1")
    with pytest.raises(EmbedderMismatchError, match=r"signatures of another version of Ebb.*`ebb up --reembed`"):
        check_embedder(memory.context)
    assert embed.reset(memory.context) == len(TEXTS)
    check_embedder(memory.context)


def test_a_reset_lets_the_other_embedder_in_and_keeps_the_first_out(memory: Memory, other: Memory) -> None:
    embed.reset(other.context)
    check_embedder(other.context)
    with pytest.raises(EmbedderMismatchError):
        check_embedder(memory.context)


def test_reembedding_leaves_every_live_fact_with_the_new_dims(memory: Memory, other: Memory) -> None:
    memory.store(*TEXTS, {"text": "It rains.", "decay_class": "checkpoint"})
    memory.decay(1)
    assert embed.reset(other.context) == len(TEXTS) == embed.waiting(other.context)
    assert embed_all(other) == 5
    assert other.rows(DIMS) == [(128, 128)]
    assert other.stats(1).fidelity["full"] == len(TEXTS)
    assert other.value("select count(*) from signatures where live") == len(TEXTS)
    assert other.ids("guests number 3 preferred", at=1) != []


def test_what_ends_while_the_embedder_is_away_sinks_with_its_signature_or_a_week_later_without(memory: Memory) -> None:
    def ended(text: str, at: float) -> UUID:
        id_ = memory.add(text, decay_class="session", at=at)
        memory.decay(at + 2)
        memory.rows("update activity set fidelity = 0")
        memory.rows("delete from signatures")
        return id_

    first = ended("A violin has four strings.", 0)
    assert (memory.demote(at=8), memory.demote(at=9.5)) == (0, 1)
    second = ended("The dentist is in Mill Lane.", 10)
    assert (memory.demote(at=14), memory.having(deep_days=1.5).demote(at=14)) == (0, 1)
    third = ended("A cat is a small feline.", 20)
    assert memory.demote(at=24) == 0
    embed_all(memory)
    assert memory.demote(at=24) == 1
    assert dict(memory.rows("select id, signature is not null from deep")) == {first: False, second: False, third: True}
    assert memory.ids("Have I got a kitten, a small pet?", at=24, deep=True) == [third]


def test_texts_are_found_by_their_words_while_vectors_are_computed_again(memory: Memory, other: Memory) -> None:
    memory.store(*TEXTS, "The dentist is in Mill Lane.")
    embed.reset(other.context)
    found = other.ask("dentist")
    assert found.results[0].text == "The dentist is in Mill Lane."
    assert found.results[0].fidelity == "pending"


def test_what_was_superseded_or_has_ended_is_found_by_meaning_after_a_reembedding_too(
    memory: Memory, other: Memory
) -> None:
    old, ended = (
        memory.add("The engine of my Honda broke down."),
        memory.add("A cat is a small feline.", decay_class="session"),
    )
    memory.store({"text": "It was repaired.", "supersedes": str(old)}, at=10)
    asked = memory.add("Tea is served at four.", at=10)
    memory.forget(asked, at=11)
    memory.decay(20)
    embed.reset(other.context)
    embed_all(other)
    assert other.ids("car trouble", at=20, as_of=day(5), known_as_of=day(5)) == [old]
    assert other.ids("Have I got a kitten, a small pet?", at=20, deep=True) == [ended]
    assert other.demote(at=22) == 1
    assert other.ids("Have I got a kitten, a small pet?", at=22, deep=True) == [ended]
    assert set(other.rows("select fact from signatures where not live")) == {(old,), (ended,)}
    assert other.rows("select id from facts join activity on id = fact where fidelity = 0") == [(asked,)]
    assert other.examine(22) == {}
    assert embed.embed_pending(other.context, embed.START, day(22)) is None
    other.restore(asked, old, at=23)
    embed_all(other)
    assert {other.row(id_)["dims"] for id_ in (asked, old)} == {128}


def test_reembedded_facts_shrink_by_the_new_embedders_rules(memory: Memory, other: Memory) -> None:
    id_ = memory.add("Tea at four.")
    other.decay(1)
    embed.reset(other.context)
    embed_all(other)
    other.decay(15)
    assert (other.row(id_)["dims"], other.row(id_)["full_dims"]) == (64, 128)


def test_facts_that_had_faded_fade_again_after_the_reembedding(memory: Memory, other: Memory) -> None:
    id_ = memory.add("Tea at four.")
    memory.decay(100)
    embed.reset(other.context)
    embed_all(other)
    assert other.row(id_)["dims"] == 128
    other.decay(100)
    assert other.row(id_)["fidelity"] == 32_767


def test_a_process_with_the_old_embedder_stores_without_vector_instead_of_mixing(memory: Memory, other: Memory) -> None:
    embed.reset(other.context)
    (stored,) = memory.store("Tea at four.")
    assert isinstance(stored, Stored)
    assert (stored.action, stored.embedded) == ("added", False)
    assert embed.embed_pending(memory.context, embed.START, day(1)) is None
    assert memory.rows(DIMS) == []
    embed_all(other)
    assert memory.rows(DIMS) == [(128, 128)]


def test_a_process_with_the_old_embedder_recalls_by_words_and_regenerates_nothing(
    memory: Memory, other: Memory
) -> None:
    id_ = memory.add("Tea at four.")
    embed.reset(other.context)
    found = memory.ask("tea")
    assert ([one.id for one in found.results], found.by_meaning) == ([id_], False)
    assert memory.regenerate(id_) == []


@pytest.mark.parametrize("pending", [True, False])
def test_a_process_with_the_old_embedder_asks_it_for_nothing(
    memory: Memory, other: Memory, monkeypatch: pytest.MonkeyPatch, pending: bool
) -> None:
    id_ = memory.add("Tea at four.")
    embed.reset(other.context)
    if not pending:
        embed_all(other)
        memory.decay(100)
    asked: list[str] = []
    monkeypatch.setattr(memory.context.embedder, "embed", lambda texts, **_: asked.extend(texts))
    assert memory.regenerate(id_) == []
    assert embed.embed_pending(memory.context, embed.START, day(1)) is None
    assert asked == []


@pytest.mark.parametrize("pending", [True, False])
def test_long_texts_are_embedded_few_at_a_time(
    memory: Memory, other: Memory, monkeypatch: pytest.MonkeyPatch, pending: bool
) -> None:
    texts, embedding = [f"{number} " + "word " * 12_000 for number in range(12)], memory.context.embedder.embed
    sizes: list[int] = []

    def embedded(texts: list[str], **options: Any) -> Any:
        sizes.append(sum(map(len, texts)))
        return embedding(texts, **options)

    if pending:
        embed.reset(other.context)
        other.store(*texts)
        embed.reset(memory.context)
    monkeypatch.setattr(memory.context.embedder, "embed", embedded)
    monkeypatch.setattr(memory.context.embedder, "quick", False)
    if pending:
        embed_all(memory)
    else:
        memory.store(*texts)
    assert memory.stats().pending_embeddings == 0
    assert max(sizes) <= 300_000, "an endpoint takes one request for each"


def test_an_embedder_that_fails_resets_nothing(memory: Memory) -> None:
    memory.store(*TEXTS)
    away = memory.having(
        embedder="openai", embedding_url="http://127.0.0.1:1/v1", embedding_model="x", embedding_timeout=0.05
    )
    from workers.embedding.openai import OpenAIEmbedder  # the extra is needed here alone

    away.context.embedder = OpenAIEmbedder(away.context.settings, sleep=lambda _: None)
    with pytest.raises(EmbeddingError):
        embed.reset(away.context)
    away.context.embedder.close()
    assert memory.value("select count(*) from vectors") == len(TEXTS)


def test_a_reset_waits_for_a_pass_instead_of_deadlocking_with_it(memory: Memory, other: Memory) -> None:
    memory.add("Tea at four.")
    with ThreadPoolExecutor(1) as pool:
        with connect(memory.context.database_url) as db:
            claimed = due.claim(db, [memory.value("select segment from activity")], day(100), 10)
            reset = pool.submit(embed.reset, other.context)
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            vectors.drop(db, claimed.namespaces.tolist(), claimed.ids)
        assert reset.result() == 1


def test_a_reset_that_deadlocks_with_a_writer_is_done_again(memory: Memory, other: Memory) -> None:
    first, second = memory.add("Tea at four."), memory.add("The boat is red.")
    with ThreadPoolExecutor(1) as pool:
        with connect(memory.context.database_url) as db:
            activity.lock(db, 1, [second])
            reset = pool.submit(embed.reset, other.context)
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            activity.lock(db, 1, [first])
        assert reset.result() == 2


def test_a_reset_finds_what_leaves_deep_memory_while_it_waits_and_recalls_are_answered(
    memory: Memory, other: Memory
) -> None:
    first, ended = memory.add("Tea at four."), memory.add("Ana rows.", decay_class="session")
    memory.decay(2)
    assert memory.demote(at=9) == 1
    url = memory.context.database_url
    with ThreadPoolExecutor(1) as pool:
        with connect(url) as later:
            with connect(url) as db:
                activity.lock(db, 1, [first])
                reset = pool.submit(embed.reset, other.context)
                wait_for(lambda: memory.value(LOCK_WAITS) > 0)
                restore.restore(memory.context, "default", [ended], day(9))
                activity.lock(later, 1, [ended])
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            assert [one.text for one in memory.ask("tea", at=9).results] == ["Tea at four."]
        assert reset.result() == 2
    assert memory.value("select count(*) from activity where fidelity <> 0") == 0


@pytest.mark.parametrize("step", ["copy", "conclude"])
def test_a_reset_waits_for_a_step_of_a_branch_that_sees_the_facts_of_before(
    memory: Memory, other: Memory, step: str
) -> None:
    memory.add("Tea at four.")
    branch = branching.begin(memory.context, "default", 7)
    with ThreadPoolExecutor(2) as pool:
        with connect(memory.context.database_url) as db:
            db.execute("lock table facts")  # after the step's snapshot
            if step == "copy":
                copied = pool.submit(branching.copy, memory.context, branch, branching.START)
            else:
                copied = pool.submit(branching.conclude, memory.context, branch, day(9))
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            reset = pool.submit(embed.reset, other.context)
            wait_for(lambda: reset.done() or memory.value(LOCK_WAITS) > 1)
        copied.result()
        assert reset.result() == 2
    assert memory.value("select count(*) from activity where fidelity <> 0") == 0


def test_a_step_of_a_branch_that_waits_for_a_reset_is_done_again(memory: Memory, other: Memory) -> None:
    first = memory.add("Tea at four.")
    branch = branching.begin(memory.context, "default", 7)
    with ThreadPoolExecutor(2) as pool:
        with connect(memory.context.database_url) as db:
            activity.lock(db, 1, [first])
            reset = pool.submit(embed.reset, other.context)
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            copied = pool.submit(branching.copy, memory.context, branch, branching.START)
            wait_for(lambda: copied.done() or memory.value(LOCK_WAITS) > 1)
        assert reset.result() == 1
        with pytest.raises(SerializationFailure):
            copied.result()
    branching.copy(memory.context, branch, branching.START)
    assert memory.value("select count(*) from activity where fidelity <> 0") == 0


def test_recalls_are_answered_while_a_reset_clears_deep_memory(memory: Memory, other: Memory) -> None:
    memory.add("Tea at four.")
    memory.add("Ana rows.", decay_class="session")
    memory.decay(2)
    memory.demote(at=9)
    with ThreadPoolExecutor(1) as pool:
        with connect(memory.context.database_url) as db:
            db.execute("select from deep for update")
            reset = pool.submit(embed.reset, other.context)
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            assert [one.text for one in memory.ask("tea", at=9).results] == ["Tea at four."]
        assert reset.result() == 1
    assert memory.value("select count(*) from deep where signature is not null") == 0


def test_only_what_is_pending_is_embedded(memory: Memory) -> None:
    memory.store(*TEXTS)
    before = memory.rows("select xmin from vectors")
    assert embed.waiting(memory.context) == 0
    assert embed.embed_pending(memory.context, embed.START, day(1)) is None
    assert memory.rows("select xmin from vectors") == before


def test_pending_facts_of_several_namespaces_are_embedded_in_one_walk(memory: Memory, other: Memory) -> None:
    for name in ("ours", "theirs"):
        memory.store(*TEXTS[:10], namespace=name)
    embed.reset(other.context)
    assert embed_all(other) == 3
    assert {other.stats(namespace=name).fidelity["full"] for name in ("ours", "theirs")} == {10}


def test_two_processes_that_start_at_once_agree_on_the_embedder(memory: Memory, other: Memory) -> None:
    memory.rows("delete from embedders")
    with ThreadPoolExecutor(2) as pool:
        starts = [pool.submit(check_embedder, one.context) for one in (memory, other)]
    refused = [start.exception() for start in starts]
    assert sorted(isinstance(error, EmbedderMismatchError) for error in refused) == [False, True]
    assert memory.value("select count(*) from embedders") == 1
