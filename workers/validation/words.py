"""The words of a text that a caller gives, without what Ebb itself put before it."""

from workers.core.text import strip_injected
from workers.errors import InvalidInputError


def own_words(text: str, name: str, max_text: int) -> str:
    """Return a text without recalled context, which may leave nothing.

    Raises:
        InvalidInputError: it has more than `max_text` bytes; `name` says whose value it was.
    """
    text = strip_injected(text)
    size = len(text.encode())
    if size > max_text:
        raise InvalidInputError(
            f"{name}: has {size} bytes, more than the limit of {max_text} (EBB_MAX_TEXT); split it."
        )
    return text
