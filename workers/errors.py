"""What can go wrong, in the words of the domain. Each message says what is wrong, what was given, what to do."""

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
]


class SettingsError(EbbError):
    """An environment variable is unknown or has a value that is not allowed."""


class EmbeddingError(EbbError):
    """The embedder gave no usable vectors: away, over its limit, or answering something else."""


class EmbedderAwayError(EmbeddingError):
    """The embedder does not answer, or refuses every request, so another text would fail as well.

    `retry_after` is how many seconds the server asked to wait, if it did.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EmbedderPausedError(EmbeddingError):
    """The embedder failed a moment ago and is not asked again until the pause is over."""


class JudgementError(EbbError):
    """The LLM gave no judgement: away, too slow, over its limit, or refusing."""


class UnusableJudgementError(JudgementError):
    """The LLM answered, but with nothing that can be used."""


class EmbedderMismatchError(EbbError):
    """The database holds the vectors of another embedder than the one that is configured."""


class LanguageMismatchError(EbbError):
    """The database's words are stemmed in another language than the one that is configured."""


class SchemaError(EbbError):
    """The database cannot be brought to the schema that this version needs."""


class DamagedError(EbbError):
    """Rows of facts are missing, and what was asked for would silently lack these facts."""


class NoConnectionError(UnavailableError):
    """PostgreSQL, or the process's share of it, has no connection free; others hold all of them."""


class SystemStateError(EbbError):
    """`ebb up` or `ebb down` met a home in a state that it must not change."""
