"""What can go wrong, in the words of the domain. Each message says what is wrong, what was given, what to do."""


class EbbError(Exception):
    """Anything that Ebb refuses or fails at, with a message for the person who asked."""


class InvalidInputError(EbbError):
    """What was given cannot be used; nothing of it was stored."""


class NotFoundError(InvalidInputError):
    """What was asked for is not in the namespace: it never was, is another's, or is gone."""


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


class UnavailableError(EbbError):
    """A server or worker that is needed does not answer."""


class NoConnectionError(UnavailableError):
    """PostgreSQL, or the process's share of it, has no connection free; others hold all of them."""


class LateError(UnavailableError):
    """No worker answered in time; `task` may still be done, or was taken back if it only reads."""

    def __init__(self, message: str, task: str = "") -> None:
        super().__init__(message)
        self.task = task


class OlderWorkersError(UnavailableError):
    """The workers are of an older version than the door, and do not know what was asked of them."""


class BusyError(UnavailableError):
    """More of this namespace waits for the workers than an operator allows; ask again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float = 10.0) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0])


class SystemStateError(EbbError):
    """`ebb up` or `ebb down` met a home in a state that it must not change."""


class TaskFailedError(EbbError):
    """A worker took the task on and failed at it, for a reason that is not in the input."""
