"""Circuit breaker for an embedder that does not answer, shared by all workers in Redis.

While `ebb:embedder:paused` exists, the embedder is not called. After it expires, `ebb:embedder:failures` remains: one
request at a time, the holder of `ebb:embedder:trying`, may try. If it succeeds, the pause ends; if it fails, the next
pause is twice as long. `ebb:embedder:suspects` has the facts whose texts may have been the reason, and until when each
is left out.
"""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from workers.errors import EmbedderAwayError, EmbedderPausedError

PAUSED = "ebb:embedder:paused"
FAILURES = "ebb:embedder:failures"
TRYING = "ebb:embedder:trying"
SUSPECTS = "ebb:embedder:suspects"

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 60.0
REMEMBERED_SECONDS = 600
"""Time after a pause during which another failure still lengthens the next one."""

SUSPECTED_SECONDS = 3_600
"""Time after the last one was noted for which suspects are remembered."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class State:
    """Consecutive failures, seconds left of the pause, and the last error."""

    failures: int = 0
    seconds: float = 0.0
    error: str = ""


class EmbedderPause:
    """The pause shared by all processes with this Redis; without Redis there is none."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def enter(self, seconds: float) -> bool:
        """Return whether this request is the one that tries the embedder again, within `seconds`.

        Raises:
            EmbedderPausedError: the embedder must not be called now.
        """
        try:
            paused, failures = self._redis.mget(PAUSED, FAILURES)
            trying = not paused and bool(failures)
            if paused or (trying and not self._redis.set(TRYING, 1, nx=True, px=int(seconds * 1000))):
                raise EmbedderPausedError(describe(state(self._redis)))
        except RedisError:
            return False
        return trying

    def failed(self, error: EmbedderAwayError) -> None:
        """Start a pause, longer than the last one and than the server asked for; concurrent failures count once."""
        with suppress(RedisError):
            failures = int(self._redis.get(FAILURES) or 0) + 1
            seconds = min(max(FIRST_SECONDS * 2 ** min(failures - 1, 16), error.retry_after or 0.0), LONGEST_SECONDS)
            if self._redis.set(PAUSED, json.dumps({"error": str(error)}), nx=True, px=int(seconds * 1000)):
                self._redis.set(FAILURES, failures, ex=int(seconds) + REMEMBERED_SECONDS)
                log.warning("the embedder is not asked for %g s after %d failures: %s", seconds, failures, error)
            self._redis.delete(TRYING)

    def answered(self) -> None:
        """End the pause and reset the failures."""
        with suppress(RedisError):
            self._redis.delete(PAUSED, FAILURES, TRYING)


def state(redis: Redis) -> State:
    """Return the state of the embedder; without failures it answers."""
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.get(FAILURES)
        pipeline.get(PAUSED)
        pipeline.pttl(PAUSED)
        failures, paused, left = pipeline.execute()
    error = str(json.loads(paused)["error"]) if isinstance(paused, bytes) else ""
    return State(int(failures or 0), max(left, 0) / 1000, error)


def suspect(redis: Redis, members: Sequence[str], until: float) -> None:
    """Note suspects, and until when they are left out, in epoch seconds."""
    with suppress(RedisError), redis.pipeline() as pipeline:
        pipeline.zadd(SUSPECTS, dict.fromkeys(members, until))
        pipeline.expire(SUSPECTS, SUSPECTED_SECONDS)
        pipeline.execute()


def suspects(redis: Redis, members: Sequence[str]) -> list[float | None]:
    """Return until when each is left out, in epoch seconds; None of one that is no suspect."""
    try:
        return list(redis.zmscore(SUSPECTS, list(members)))
    except RedisError:
        return [None] * len(members)


def describe(found: State) -> str:
    """Return a pause in one sentence, without the server's own words, which may quote a text."""
    if found.seconds:
        return f"The embedder is not asked for another {found.seconds:.0f} s, after {found.failures} failures in a row."
    return f"The embedder failed {found.failures} times in a row; another request is trying whether it answers again."
