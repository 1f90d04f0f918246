"""Ebb: long-term memory for AI agents that fades unless it is used."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebb.contract.operation import Rejected
    from ebb.errors import (
        BusyError,
        ConflictError,
        EbbError,
        InvalidInputError,
        LateError,
        NotAllowedError,
        NotFoundError,
        OlderWorkersError,
        TaskFailedError,
        UnavailableError,
    )
    from ebb.memory import AsyncMemory, Memory

    __version__: str

__all__ = [
    "AsyncMemory",
    "BusyError",
    "ConflictError",
    "EbbError",
    "InvalidInputError",
    "LateError",
    "Memory",
    "NotAllowedError",
    "NotFoundError",
    "OlderWorkersError",
    "Rejected",
    "TaskFailedError",
    "UnavailableError",
]


def __getattr__(name: str) -> Any:
    """Import a name at its first use, as workers need only the contract."""
    if name == "__version__":
        return version("ebb-memory")
    if name not in __all__:
        raise AttributeError(f"module 'ebb' has no attribute {name!r}")
    answers = "ebb.contract.operation" if name == "Rejected" else "ebb.memory"
    return getattr(import_module("ebb.errors" if name.endswith("Error") else answers), name)


def __dir__() -> list[str]:
    """Return all names, also those that were not used yet, for completion and `help`."""
    return sorted({*globals(), *__all__})
