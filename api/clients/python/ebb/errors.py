"""What a caller may meet: each error says what is wrong, what was given and what to do, and has its HTTP status."""


class EbbError(Exception):
    """Anything that Ebb refuses or fails at, with a message for the person who asked."""

    status = 500


class InvalidInputError(EbbError):
    """What was given cannot be used; nothing of it was stored. Change what the message names."""

    status = 422


class NotFoundError(InvalidInputError):
    """What was asked for is not in the namespace: it never was, is another's, or is gone."""

    status = 404


class ConflictError(InvalidInputError):
    """What was asked for cannot be done any more, such as restoring what was purged."""

    status = 409


class NotAllowedError(EbbError):
    """The key is missing, was revoked, opens another namespace or lacks a scope. Give another; see `ebb keys`."""

    status = 403


class UnavailableError(EbbError):
    """A server or worker that is needed does not answer; try again later.

    `retry_after` is how many seconds the server asked to wait, if it did.
    """

    status = 503
    retry_after: float | None = None


class LateError(UnavailableError):
    """No answer came in time. A read was dropped; a write, of which `task` is the id, may still be done."""

    status = 504

    def __init__(self, message: str, task: str = "") -> None:
        super().__init__(message)
        self.task = task


class OlderWorkersError(UnavailableError):
    """The workers are of an older version than the door, and do not know what was asked. Upgrade the workers."""


class BusyError(UnavailableError):
    """More of this namespace waits for the workers than an operator allows; ask again after `retry_after` seconds."""

    status = 429
    retry_after: float

    def __init__(self, message: str, retry_after: float = 10.0) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0])


class TaskFailedError(EbbError):
    """A worker failed, for a reason that is not in the input; its log says more."""


KINDS: tuple[type[EbbError], ...] = (
    InvalidInputError, NotFoundError, ConflictError, NotAllowedError, UnavailableError, LateError, BusyError,
    TaskFailedError,
)  # fmt: skip
LIKE = {400: 422, 401: 403, 413: 422, 502: 503}
"""Statuses that say the same to a caller as one that a class has."""


def kind_of(status: int) -> type[EbbError]:
    """Return the class of errors for an HTTP status."""
    wanted = LIKE.get(status, status)
    return next((kind for kind in KINDS if kind.status == wanted), InvalidInputError if status < 500 else EbbError)  # noqa: PLR2004
