"""Locks in Redis: one holder at a time, and only it renews and releases the lock."""

import time

from redis import Redis

from workers.coordination import signals
from workers.coordination.redis import own_keys

KEY = f"{signals.WORKING}:work"


class Slow(Redis):
    """Connections on which the lock expires and is taken by another holder right after it was read."""

    taken = False

    def get(self, name: object) -> object:
        found = super().get(name)  # type: ignore[arg-type]
        self.taken = super().set(KEY, b"another's") is True
        return found


def test_one_caller_at_a_time_has_the_lock(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        with signals.try_lock(redis, "work", 30) as first, signals.try_lock(redis, "work", 30) as second:
            assert (first, second) == (True, False)
        with signals.try_lock(redis, "work", 30) as again:
            assert again
        assert not redis.exists(KEY)


def test_a_caller_that_took_too_long_does_not_release_the_lock_of_the_next_one(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        with signals.try_lock(redis, "work", 30):
            redis.set(KEY, b"another's")
        assert redis.get(KEY) == b"another's"


def test_a_lock_is_renewed_as_long_as_it_is_the_callers(redis_url: str) -> None:
    with own_keys(redis_url) as redis, signals.try_lock(redis, "work", 6, renew=True):
        assert redis.persist(KEY)
        while redis.ttl(KEY) < 0:  # until it is renewed
            time.sleep(0.01)
        redis.set(KEY, b"another's")
        with redis.monitor() as commands:
            next(one for one in commands.listen() if one["command"].startswith("EVALSHA") and KEY in one["command"])
        assert (redis.get(KEY), redis.ttl(KEY)) == (b"another's", -1)
        redis.delete(KEY)


def test_a_redelivered_task_gets_the_lock_of_its_killed_delivery_for_the_whole_time(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        redis.set(KEY, b"task", px=5_000)
        with signals.try_lock(redis, "work", 30, task_id="another") as other:
            assert not other
        with signals.try_lock(redis, "work", 30, task_id="task") as again:
            assert again
            assert redis.pttl(KEY) > 20_000
        assert not redis.exists(KEY)


def test_a_lock_that_changes_hands_during_the_release_stays_with_its_new_owner(redis_url: str) -> None:
    with Slow.from_url(redis_url) as redis:
        with signals.try_lock(redis, "work", 30):
            pass
        assert bool(redis.exists(KEY)) == redis.taken
