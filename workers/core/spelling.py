"""Misspelt words of a question: unknown ones that one slip of a finger makes of a word that facts contain.

The slips are those of Damerau ("A technique for computer detection and correction of spelling errors", 1964): a letter
left out, added or replaced, or two neighbours exchanged. The first letter is seldom wrong (Pollock and Zamora, 1984).
"""

import re
from collections.abc import Collection, Mapping
from string import ascii_lowercase

from workers.core.names import capitalised, names_in_question

SHORTEST = 6
"""Letters of the shortest word that is corrected: shorter ones differ by a letter from many others."""

MOST_WORDS = 3
"""Words of a question that are corrected; each takes some 60 lookups a letter."""

WORD = re.compile(r"[a-z]+", re.IGNORECASE)


def doubtful(question: str, unknown: Collection[str], dictionary: Collection[str]) -> list[str]:
    """Return the words of a question, in lower case, that may be misspelt: no fact has them, and no dictionary.

    Names are not among them: that of another person may differ by one letter.
    """
    names = names_in_question(question) & capitalised(question, unknown)
    words = dict.fromkeys(word.lower() for word in WORD.findall(question) if len(word) >= SHORTEST)
    return [one for one in words if one in unknown and one not in names and one not in dictionary][:MOST_WORDS]


def slips(word: str) -> set[str]:
    """Return all words that become `word` by one slip after the first letter."""
    halves = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    without = {left + right[1:] for left, right in halves if right}
    exchanged = {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    replaced = {left + letter + right[1:] for left, right in halves if right for letter in ascii_lowercase}
    added = {left + letter + right for left, right in halves for letter in ascii_lowercase}
    return (without | exchanged | replaced | added) - {word}


def corrected(question: str, doubtful: Collection[str], known: Mapping[str, int]) -> str:
    """Return the question with each doubtful word replaced by the most frequent of the known words that it may mean.

    Args:
        question: its text.
        doubtful: the words, in lower case.
        known: the number of facts of each word that facts contain.
    """
    meant = {word: found for word in doubtful if (found := _meant(word, known))}
    return WORD.sub(lambda found: meant.get(found[0].lower(), found[0]), question)


def _meant(word: str, known: Mapping[str, int]) -> str | None:
    return max(slips(word) & known.keys(), key=lambda one: (known[one], one), default=None)
