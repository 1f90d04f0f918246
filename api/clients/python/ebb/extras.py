"""Frameworks that the adapters need, and the extras that install them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import a framework in this block.

    Raises:
        ModuleNotFoundError: it is not installed; the message names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; pip install 'ebb-memory[{name}]' installs it.", name=error.name) from None
