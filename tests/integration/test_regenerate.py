"""Vectors of faded facts are computed again from their texts when they are used."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from memory import Memory
from pgvector import HalfVector

from workers.coordination import signals
from workers.core.fidelity import FINGERPRINT, FULL
from workers.errors import EmbeddingError
from workers.memory import embed
from workers.memory.embed import check_embedder
from workers.storage.connection import connect

TEXT = "The spare key lies under the blue flower pot."


@pytest.fixture
def faded(memory: Memory) -> Memory:
    memory.add(TEXT)
    memory.decay(365)
    return memory


def test_a_fingerprinted_fact_is_full_after_a_hit_and_its_regeneration(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    assert (faded.row(id_)["fidelity"], faded.row(id_)["dims"]) == (FINGERPRINT, 0)
    assert faded.touch(id_, at=365).faded == [id_]
    assert faded.regenerate(id_, at=365) == [id_]
    row = faded.row(id_)
    assert (row["fidelity"], row["dims"], row["full_dims"], row["live"]) == (FULL, 256, 256, True)
    assert faded.ask("spare keys", at=365).results[0].fidelity == "full"


def test_the_restored_vector_is_the_one_that_was_stored_first(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    faded.regenerate(id_, at=365)
    with connect(faded.context.database_url) as db:
        row = db.execute("select embedding from vectors").fetchone()
    assert row is not None
    restored = row[0].to_numpy() if isinstance(row[0], HalfVector) else np.array(row[0])
    np.testing.assert_allclose(restored, faded.context.embedder.embed([TEXT])[0], atol=1e-3)


def test_a_regeneration_leaves_the_signature_as_it_is(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    before = faded.rows("select xmin::text from signatures")
    assert faded.regenerate(id_, at=365) == [id_]
    assert faded.rows("select xmin::text from signatures") == before


def test_regenerating_again_changes_nothing(faded: Memory, caplog: pytest.LogCaptureFixture) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    with caplog.at_level(logging.INFO, "workers.memory.embed"):
        faded.regenerate(id_, at=365)
        before = faded.row(id_)
        assert faded.regenerate(id_, at=366) == []
    assert faded.row(id_) == before
    assert caplog.messages == [f"[decay-2.0] regenerated/reinforced memory mem_{id_.hex}"]


def test_a_redelivered_use_sends_the_regeneration_if_its_first_delivery_stopped_before_that(faded: Memory) -> None:
    (id_,), use, redis = faded.ids("spare keys", at=365), uuid4(), faded.context.redis
    wanted = faded.touch(id_, at=365, use=use).faded
    with pytest.raises(KeyboardInterrupt), signals.regenerating(redis, "default", wanted):
        raise KeyboardInterrupt
    wanted = faded.touch(id_, at=365, use=use).faded
    with signals.regenerating(redis, "default", wanted) as sent:
        assert sent == [id_]
    with signals.regenerating(redis, "default", wanted) as sent:
        assert sent == []


def test_of_two_regenerations_at_once_one_does_it(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: faded.regenerate(id_, at=365), range(2)))
    assert sorted(done) == [[], [id_]]


def test_a_regenerated_fact_without_a_touch_shrinks_again_at_the_next_pass(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    faded.regenerate(id_, at=365)
    faded.decay(365)
    assert faded.row(id_)["fidelity"] == FINGERPRINT


def test_a_pooled_fact_is_restored_to_all_its_dimensions(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.decay(10)
    assert memory.row(id_)["dims"] == 128
    assert memory.regenerate(id_, at=10) == [id_]
    assert memory.row(id_)["dims"] == 256


def test_long_texts_are_regenerated_few_at_a_time_until_the_time_is_over(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [memory.add(f"{number} " + "word " * 12_000) for number in range(12)]
    memory.decay(10)
    sizes, embedding = list[int](), memory.context.embedder.embed

    def embedded(texts: list[str], **options: Any) -> Any:
        sizes.append(sum(map(len, texts)))
        return embedding(texts, **options)

    now = time.monotonic()
    over = now + embed.EMBEDDING_SECONDS
    monkeypatch.setattr(embed, "time", SimpleNamespace(monotonic=lambda: now if len(sizes) < 2 else over))
    monkeypatch.setattr(memory.context.embedder, "embed", embedded)
    assert 0 < len(memory.regenerate(*ids, at=10)) < 12
    assert len(sizes) == 2
    assert max(sizes) <= 300_000, "an endpoint takes one request for each"


def test_no_further_texts_are_regenerated_after_the_time_if_the_embedder_refuses_the_first(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [memory.add(f"{number} " + "word " * 12_000) for number in range(12)]
    memory.decay(10)
    asked, embedding = list[str](), memory.context.embedder.embed

    def refused(texts: list[str], **options: Any) -> Any:
        asked.extend(texts)
        if any("word" in text for text in texts):
            raise EmbeddingError("too long")
        return embedding(texts, **options)

    monkeypatch.setattr(embed, "EMBEDDING_SECONDS", 0.0)
    monkeypatch.setattr(memory.context.embedder, "embed", refused)
    assert memory.regenerate(*ids, at=10) == []
    assert len(set(asked)) < 12


def test_a_fact_forgotten_meanwhile_is_not_brought_back(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="durable")
    memory.decay(89.9)
    assert memory.regenerate(id_, at=90) == []
    row = memory.row(id_)
    assert (row["live"], row["dims"], row["forgotten_reason"]) == (False, 0, "faded")


def test_who_is_not_there_is_not_regenerated(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    assert faded.regenerate(id_, at=365, namespace="unknown") == []
    faded.add("Tea at four.", namespace="theirs")
    assert faded.regenerate(id_, at=365, namespace="theirs") == []


def test_regeneration_can_be_switched_off(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    without = faded.having(regeneration_enabled=False)
    check_embedder(without.context)
    assert without.regenerate(id_, at=365) == []
    assert faded.row(id_)["fidelity"] == FINGERPRINT


def test_without_reinforcement_a_hit_keeps_what_it_restores_through_the_next_pass(faded: Memory) -> None:
    (id_,) = faded.ids("spare keys", at=365)
    quiet = faded.having(decay_reinforce_on_query=False)
    before = faded.row(id_)
    assert quiet.touch(id_, at=365).faded == [id_]
    quiet.regenerate(id_, at=365)
    quiet.decay(365)
    row = faded.row(id_)
    assert (row["fidelity"], row["coactivations"]) == (FULL, before["coactivations"])
    assert row["base"] < before["base"]
