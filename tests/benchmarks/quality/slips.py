"""Questions with one misspelt word, as people type them in a hurry."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_lowercase

from tests.benchmarks.conversations import Asked
from workers.core.summary import ENGLISH_STOP_WORDS

SEED = 3
WORD = re.compile(r"(?<![^\W_])[a-z]{5,}(?![^\W_])")
"""A word that may be misspelt: a name is written with a capital."""


def with_slips(questions: Sequence[Asked]) -> list[tuple[Asked, Asked]]:
    """Return the questions that have a word to misspell, each as it is and with one slip."""
    rng, found = random.Random(SEED), []
    for asked in questions:
        words = [one for one in WORD.finditer(asked.text) if one[0] not in ENGLISH_STOP_WORDS]
        if words:
            word = rng.choice(words)
            text = asked.text[: word.start()] + _misspelt(rng, word[0]) + asked.text[word.end() :]
            found.append((asked, replace(asked, text=text)))
    return found


def _misspelt(rng: random.Random, word: str) -> str:
    """Return a word with a letter left out, added, replaced, or two exchanged, after the first one."""
    at, letter = rng.randrange(1, len(word)), rng.choice(ascii_lowercase)
    begin, end = word[:at], word[at + 1 :]
    slips = {begin + end, begin + letter + word[at:], begin + letter + end, begin + end[:1] + word[at] + end[1:]}
    return rng.choice(sorted(slips - {word}))
