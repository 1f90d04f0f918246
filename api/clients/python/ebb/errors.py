"""Errors: each message says what is wrong, what was given and what to do; each class has an HTTP status."""


class EbbError(Exception):
    """Base class of all errors of Ebb."""

    status = 500


class InvalidInputError(EbbError):
    """The input is invalid; nothing was stored."""

    status = 422


class NotFoundError(InvalidInputError):
    """The object does not exist in the namespace."""

    status = 404


class ConflictError(InvalidInputError):
    """The operation is not possible, such as restoring one fact while another says the same."""

    status = 409


class NotAllowedError(EbbError):
    """The key is missing, revoked, for another namespace, or lacks a scope; see `ebb keys`."""

    status = 403


class UnavailableError(EbbError):
    """A server or worker does not answer; try again later, after `retry_after` seconds if it is given."""

    status = 503
    retry_after: float | None = None


class LateError(UnavailableError):
    """No answer came in time; a write, with the id `task`, may still be done."""

    status = 504

    def __init__(self, message: str, task: str = "") -> None:
        super().__init__(message)
        self.task = task


OLDER_WORKERS = "urn:ebb:problem:older-workers"
"""The type of the problem by which an `OlderWorkersError` is known over HTTP, as others have the same status."""


class OlderWorkersError(UnavailableError):
    """The workers are older than the server or client and do not know the operation; upgrade them."""


class BusyError(UnavailableError):
    """The namespace has reached a limit of waiting work; try again after `retry_after` seconds."""

    status = 429
    retry_after: float

    def __init__(self, message: str, retry_after: float = 10.0) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0])


class TaskFailedError(EbbError):
    """A worker failed for a reason other than the input; see its log."""


KINDS: tuple[type[EbbError], ...] = (
    InvalidInputError, NotFoundError, ConflictError, NotAllowedError, UnavailableError, LateError, BusyError,
    TaskFailedError,
)  # fmt: skip
LIKE = {400: 422, 401: 403, 413: 422, 502: 503}
"""Statuses that are treated as another one."""


def kind_of(status: int) -> type[EbbError]:
    """Return the error class for an HTTP status."""
    wanted = LIKE.get(status, status)
    return next((kind for kind in KINDS if kind.status == wanted), InvalidInputError if status < 500 else EbbError)  # noqa: PLR2004 - client errors
