"""Token counts of texts: estimated from characters, or counted by a tokenizer."""

from collections.abc import Callable
from functools import lru_cache

from workers.errors import SettingsError

CHARACTERS = "characters"
CHARACTERS_A_TOKEN = 4
"""Average of English prose."""

Count = Callable[[str], int]


def counter(tokenizer: str) -> Count:
    """Return the function that counts tokens: `characters`, or the name of a tokenizer such as `o200k_base`.

    Raises:
        SettingsError: the tokenizer is unknown, or its extra is not installed.
    """
    return estimate if tokenizer == CHARACTERS else _counting(tokenizer)


def estimate(text: str) -> int:
    """Return a quarter of the number of characters, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


@lru_cache(maxsize=2)
def _counting(tokenizer: str) -> Count:
    # The wheel contains the vocabularies: nothing is downloaded.
    try:
        from splintr import Tokenizer  # noqa: PLC0415 - an extra, and large
    except ImportError:
        raise SettingsError(
            f"EBB_TOKENIZER={tokenizer!r} needs tokenizers that are not installed: "
            "pip install 'ebb-server[tokens]', or leave it at 'characters'."
        ) from None
    try:
        # In the text of a fact, a special token is ordinary text.
        encode: Callable[[str], list[int]] = Tokenizer.from_pretrained(tokenizer).encode_ordinary
    except ValueError as error:
        raise SettingsError(f"EBB_TOKENIZER={tokenizer!r} is not allowed: {error}.") from None
    return lambda text: len(encode(text))
