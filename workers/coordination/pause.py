"""Circuit breaker for a model that does not answer: embedder, reranker or LLM, shared by all workers in Redis.

While `ebb:embedder:paused` exists, the embedder is not called. After it expires, `ebb:embedder:failures` remains: one
request at a time, the holder of `ebb:embedder:trying`, may try. If it succeeds, the pause ends; if it fails, the next
pause is twice as long. `ebb:embedder:suspects` has the facts whose texts may have been the reason, and until when each
is left out. The keys of the others begin with `ebb:reranker` and `ebb:llm`, and they have no suspects.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from workers.errors import AwayError, EbbError, EmbedderPausedError, JudgementError, RerankerError

SUSPECTS = "ebb:embedder:suspects"

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 60.0
REMEMBERED_SECONDS = 600
"""Time after a pause during which another failure still lengthens the next one."""

SUSPECTED_SECONDS = 3_600
"""Time after the last one was noted for which suspects are remembered."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be paused: its name, and the error of a request during a pause."""

    name: str
    error: type[EbbError]

    @property
    def key(self) -> str:
        """Return its name in keys and metrics."""
        return self.name.lower()

    @property
    def keys(self) -> tuple[str, str, str]:
        """Return the keys of its pause, of its failures, and of the request that tries again."""
        paused, failures, trying = (f"ebb:{self.key}:{key}" for key in ("paused", "failures", "trying"))
        return paused, failures, trying


EMBEDDER = Model("embedder", EmbedderPausedError)
RERANKER = Model("reranker", RerankerError)
LLM = Model("LLM", JudgementError)
MODELS = {model.name: model for model in (EMBEDDER, RERANKER, LLM)}


@dataclass(frozen=True, slots=True)
class State:
    """A model's consecutive failures, seconds left of its pause, and its last error."""

    model: Model = EMBEDDER
    failures: int = 0
    seconds: float = 0.0
    error: str = ""


class Pause:
    """The pause of a model, shared by all processes with this Redis; without Redis there is none."""

    def __init__(self, redis: Redis, model: Model) -> None:
        self._redis = redis
        self._model = model
        self._paused, self._failures, self._trying = model.keys

    def enter(self, seconds: float) -> bool:
        """Return whether this request is the one that tries the model again, within `seconds`.

        Raises:
            EbbError: the model's own error; it must not be called now.
        """
        try:
            paused, failures = self._redis.mget(self._paused, self._failures)
            trying = not paused and bool(failures)
            if paused or (trying and not self._redis.set(self._trying, 1, nx=True, px=int(seconds * 1000))):
                raise self._model.error(describe(state(self._redis, self._model)))
        except RedisError:
            return False
        return trying

    @contextmanager
    def unless_paused(self, seconds: float) -> Iterator[None]:
        """Run one request of at most `seconds`; a failure begins a pause, and any answer ends it.

        A request that is broken off, by the time limit of its task, does neither.

        Raises:
            EbbError: the model's own error; it must not be called now.
        """
        trying = self.enter(seconds)
        try:
            yield
        except AwayError as error:
            self.failed(error)
            raise
        except EbbError:
            if trying:
                self.answered()
            raise
        if trying:
            self.answered()

    def failed(self, error: AwayError) -> None:
        """Start a pause, longer than the last one and than the server asked for; concurrent failures count once."""
        with suppress(RedisError):
            failures = int(self._redis.get(self._failures) or 0) + 1
            seconds = min(max(FIRST_SECONDS * 2 ** min(failures - 1, 16), error.retry_after or 0.0), LONGEST_SECONDS)
            if self._redis.set(self._paused, json.dumps({"error": str(error)}), nx=True, px=int(seconds * 1000)):
                self._redis.set(self._failures, failures, ex=int(seconds) + REMEMBERED_SECONDS)
                said = "the %s is not asked for %g s; failures in a row: %d, the last: %s"
                log.warning(said, self._model.name, seconds, failures, error)
            self._redis.delete(self._trying)

    def answered(self) -> None:
        """End the pause and reset the failures."""
        with suppress(RedisError):
            self._redis.delete(*self._model.keys)


def state(redis: Redis, model: Model = EMBEDDER) -> State:
    """Return the state of a model; without failures it answers."""
    pause, count, _ = model.keys
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.get(count)
        pipeline.get(pause)
        pipeline.pttl(pause)
        failures, paused, left = pipeline.execute()
    error = str(json.loads(paused)["error"]) if isinstance(paused, bytes) else ""
    return State(model, int(failures or 0), max(left, 0) / 1000, error)


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
    name = found.model.name
    if found.seconds:
        return f"The {name} is not asked for another {found.seconds:.0f} s. Failures in a row: {found.failures}."
    return f"Another request is trying whether the {name} answers again. Failures in a row: {found.failures}."
