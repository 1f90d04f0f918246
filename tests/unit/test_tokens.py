"""Counting tokens: by characters, or by a tokenizer with a bundled vocabulary."""

import sys

import pytest

from workers.core import tokens
from workers.errors import SettingsError
from workers.settings import Settings


@pytest.mark.parametrize(("text", "expected"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é" * 8, 2)])
def test_four_characters_are_a_token(text: str, expected: int) -> None:
    assert tokens.counter("characters")(text) == expected


def test_a_tokenizer_counts_as_the_model_does() -> None:
    count = tokens.counter("o200k_base")
    assert count("") == 0
    assert count("hello world") == 2
    assert count("<|endoftext|>") > 1


def test_an_unknown_tokenizer_stops_the_start() -> None:
    with pytest.raises(SettingsError, match=r"EBB_TOKENIZER='words' is not allowed: .*o200k_base"):
        Settings.from_environment({"EBB_TOKENIZER": "words"})


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "splintr", None)
    with pytest.raises(SettingsError, match=r"pip install 'ebb-server\[tokens\]'"):
        tokens.counter("r50k_base")
