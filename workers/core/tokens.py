"""How many tokens a text has for a language model: estimated by its characters, or counted by a tokenizer."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from workers.errors import SettingsError

CHARACTERS = "characters"
CHARACTERS_A_TOKEN = 4
"""What English prose has on average."""

Count = Callable[[str], int]
"""A function from a text to its number of tokens."""


def counter(tokenizer: str) -> Count:
    """Return how tokens are counted: `characters`, or the name of a tokenizer such as `o200k_base`.

    Raises:
        SettingsError: the tokenizer is unknown, or the extra that brings tokenizers is not installed.
    """
    return estimate if tokenizer == CHARACTERS else _counting(tokenizer)


def estimate(text: str) -> int:
    """Return a quarter of the characters, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


@lru_cache(maxsize=2)
def _counting(tokenizer: str) -> Count:
    # What looks like a special token in a fact's text is text, and counted as such.
    encode: Callable[[str], list[int]] = _load(tokenizer).encode_ordinary
    return lambda text: len(encode(text))


def _load(tokenizer: str) -> Any:
    # The wheel carries its vocabularies: nothing is downloaded, neither here nor later.
    try:
        from splintr import Tokenizer  # noqa: PLC0415 - an extra, and large
    except ImportError:
        raise SettingsError(
            f"EBB_TOKENIZER={tokenizer!r} needs tokenizers that are not installed: "
            "pip install 'ebb-server[tokens]', or leave it at 'characters'."
        ) from None
    try:
        return Tokenizer.from_pretrained(tokenizer)
    except ValueError as error:
        raise SettingsError(f"EBB_TOKENIZER={tokenizer!r} is not allowed: {error}.") from None
