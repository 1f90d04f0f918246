"""Shares: the priority of a namespace's messages, and when its requests are refused."""

import math
import time
from collections.abc import Iterator

import pytest
from redis import Redis

from api.client import Client
from workers.coordination import bulk, outbox, shares
from workers.coordination.redis import own_keys
from workers.errors import BusyError

NOW = 1_800_000_000.0


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with own_keys(redis_url) as redis:
        yield redis


def enter(redis: Redis, namespace: str, task: str, *, at: float = 0, interactive: bool = True) -> int:
    return shares.enter(redis, namespace, task, NOW + at, 15, interactive=interactive)


def test_a_namespace_with_many_requests_waits_behind_one_with_few(redis: Redis) -> None:
    ahead = [shares.priority(enter(redis, "mira", str(i))) for i in range(70)]
    assert ahead == [0] * 4 + [3] * 12 + [6] * 48 + [9] * 6
    assert shares.priority(enter(redis, "ines", "x")) == 0


def test_a_namespace_with_too_many_requests_is_refused_and_others_go_on(redis: Redis) -> None:
    outbox.publish_bounds(redis, outbox.Bounds(requests=2))
    for task in "ab":
        enter(redis, "mira", task)
    with pytest.raises(BusyError, match=r"2 requests .*'mira'.*EBB_MAX_REQUESTS=2 .*ask again in 1 s") as refused:
        enter(redis, "mira", "c")
    assert refused.value.retry_after == shares.RETRY_SECONDS
    assert enter(redis, "ines", "d") == 0
    shares.leave(redis, "mira", "a")
    assert enter(redis, "mira", "c") == 1


def test_a_refused_request_leaves_nothing_in_redis(redis: Redis, redis_url: str) -> None:
    outbox.publish_bounds(redis, outbox.Bounds(requests=1, writes=0))
    enter(redis, "mira", "a", at=time.time() - NOW)
    before = redis.keys()
    with Client(redis_url, "mira") as client:
        for wait in (True, False):
            with pytest.raises(BusyError):
                client.store_many(["The spare key hangs behind the clock"], wait=wait)
    assert sorted(redis.keys()) == sorted(before)


def test_a_request_without_a_deadline_counts_for_a_day_at_most(
    redis: Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "leave", lambda *_: None)
    with Client(redis_url, "mira", deadline=math.inf) as client:
        monkeypatch.setattr(client, "send", lambda *_, **__: pytest.fail("sent"))
        with pytest.raises(pytest.fail.Exception, match="sent"):
            client.recall("Where is the key?")
    assert enter(redis, "mira", "b", at=time.time() - NOW) == 1
    assert enter(redis, "mira", "c", at=time.time() - NOW + 86_401) == 0


def test_a_request_whose_client_died_counts_until_its_deadline(redis: Redis) -> None:
    enter(redis, "mira", "a")
    assert enter(redis, "mira", "b", at=14) == 1
    assert enter(redis, "mira", "c", at=16) == 1


def test_a_request_that_waits_long_counts_as_long_when_a_short_one_comes(redis: Redis) -> None:
    now = time.time()
    for task, seconds in (("long", 300), ("short", 10)):
        shares.enter(redis, "mira", task, now, seconds, interactive=True)
    assert redis.ttl(shares.UNDER_WAY + "mira") >= 300


def test_only_interactive_requests_keep_children_from_the_bulk_lane(redis: Redis) -> None:
    enter(redis, "mira", "a", interactive=False)
    assert not redis.exists(bulk.ASKED)
    enter(redis, "mira", "b")
    assert redis.exists(bulk.ASKED)
