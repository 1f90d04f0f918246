"""Errors of the domain. Each message says what is wrong, what was given, and what to do."""

from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar
from uuid import UUID

from ebb.errors import (
    BusyError,
    EbbError,
    InvalidInputError,
    LateError,
    NotFoundError,
    OlderWorkersError,
    TaskFailedError,
    UnavailableError,
)

__all__ = [
    "BusyError",
    "EbbError",
    "InvalidInputError",
    "LateError",
    "NotFoundError",
    "OlderWorkersError",
    "TaskFailedError",
    "UnavailableError",
    "apply_to_valid",
    "no_fact",
    "or_error",
    "require_all",
]

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")


def require_all(outcomes: Iterable[T | InvalidInputError]) -> list[T]:
    """Return outcomes without an error among them; raise the first error."""
    good: list[T] = []
    for one in outcomes:
        if isinstance(one, InvalidInputError):
            raise one
        good.append(one)
    return good


def or_error(check: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | InvalidInputError:
    """Return what a check returns, or the error that it raises."""
    try:
        return check(*args, **named)
    except InvalidInputError as error:
        return error


def apply_to_valid(
    checked: Sequence[T | InvalidInputError], act: Callable[[list[T]], Iterable[U]]
) -> list[U | InvalidInputError]:
    """Return what `act` makes of the valid ones, in order, with the error of each other one in its place."""
    done = iter(act([one for one in checked if not isinstance(one, InvalidInputError)]))
    return [one if isinstance(one, InvalidInputError) else next(done) for one in checked]


def no_fact(id_: UUID, namespace: str) -> NotFoundError:
    """Return the error that a namespace has no such fact."""
    return NotFoundError(f"id: no fact {id_} is in namespace {namespace!r}: it never was, or it was purged.")


class SettingsError(EbbError):
    """An environment variable is unknown or has a value that is not allowed."""


class EmbeddingError(EbbError):
    """The embedder returned no usable vectors."""


class AwayError(EbbError):
    """A model does not answer or refuses every request, so other texts would fail as well.

    `retry_after` is the number of seconds that the server asked to wait, if any; `doubtful` if the text may be the
    cause, as the server took the request.
    """

    def __init__(self, message: str, retry_after: float | None = None, *, doubtful: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.doubtful = doubtful


class EmbedderAwayError(AwayError, EmbeddingError):
    """The embedder is away."""


class EmbedderPausedError(EmbeddingError):
    """The embedder failed recently and is not called until the pause is over."""


class UnusableAnswerError(EbbError):
    """A model's answer cannot be used; `quoted` is what the message quotes of it, which may repeat a fact."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class RerankerError(EbbError):
    """The reranker returned no usable scores."""


class RerankerAwayError(AwayError, RerankerError):
    """The reranker is away."""


class UnusableScoresError(UnusableAnswerError, RerankerError):
    """The reranker's answer cannot be used."""


class JudgementError(EbbError):
    """The LLM gave no answer: not reachable, too slow, over its limit, or refusing."""


class JudgementAwayError(AwayError, JudgementError):
    """The LLM is away."""


class UnusableJudgementError(UnusableAnswerError, JudgementError):
    """The LLM's answer cannot be used."""


class EmbedderMismatchError(EbbError):
    """The database holds vectors of another embedder than the configured one."""


class LanguageMismatchError(EbbError):
    """The database's words are stemmed in another language than the configured one."""


class SchemaError(EbbError):
    """The database cannot be migrated to the schema of this version."""


class DamagedError(EbbError):
    """Rows of facts are missing, so the answer would lack these facts."""


class NoConnectionError(UnavailableError):
    """PostgreSQL, or the process's pool, has no free connection."""


class OvertakenError(UnavailableError):
    """An equal fact was stored at the same time, or one that is referred to was erased; nothing was changed."""


class SystemStateError(EbbError):
    """`ebb up` or `ebb down` found a home in a state that it must not change."""
