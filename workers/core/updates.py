"""Updates: whether one statement makes an older one outdated, judged from question and texts without an LLM.

An update and the statement that it replaces share little but the words of a later question: on long chats their vectors
are no closer than those of other turns. So pairs are searched among the best results of a question, and only where it
asks for a single value.
"""

import re
from collections.abc import Sequence
from itertools import islice

import numpy as np

from workers.core.arrays import Bools, Floats

ASKS_FOR_A_VALUE = re.compile(
    r"\W*(?:what(?:'s| is| are| was| time| date| deadline| percentage| number| version)"
    r"|how (?:many|much|long|old|far|often|fast|big|large|tall)|when|which|where|at what|by when|by what)\b",
    re.IGNORECASE,
)
ASKS_FOR_THE_PAST = re.compile(
    r"\b(?:used to|previous\w*|before|first|initial\w*|original\w*|earlier|formerly|history|over time|changed?"
    r"|progress\w*|evolv\w*|back then|at first|at the beginning|both|difference|compare\w*|order)\b",
    re.IGNORECASE,
)
SAYS_A_CHANGE = re.compile(
    r"\b(?:now|recently|lately|just (?:found|got|switched|changed|moved|renewed|finished)|no longer|any ?more|used to"
    r"|instead|updat\w+|chang\w+|reschedul\w+|postpon\w+|mov(?:ed|ing) (?:it|the|to)|extend\w*|adjust\w+|increas\w+"
    r"|decreas\w+|reduc\w+|improv\w+|grown|reached|switch\w+|revert\w*|remove\w*|delet\w+|cancel\w*|replac\w+"
    r"|correct(?:ed|ion)|finished|completed|done with|new|additional|actually|went up|went down|from now)\b",
    re.IGNORECASE,
)
WITHDRAWS = re.compile(
    r"\b(?:(?:i|we|he|she|they|it|you) (?:actually |really |also )?used to|no longer"
    r"|(?:n['\u2019]t|not|never)\b[^.!?]{0,60}\bany ?more|revert\w*|please (?:also )?(?:remove|delete)"
    r"|(?:have|ha[sd]|['\u2019]ve|['\u2019]s|just|actually|already|i|we) (?:just |already |actually |now )?"
    r"(?:finished|completed|cancell?ed|quit|gave up|given up|moved on from|stopped)"
    r"|instead of|rather than|chang(?:e|ed|ing) from|switched from)\b",
    re.IGNORECASE,
)
SAID_OF_WITHDRAWALS = (
    "used to", "no longer", "more", "revert", "remove", "delete", "finished", "completed", "cancel", "quit", "gave up",
    "given up", "moved on from", "stopped", "instead of", "rather than", "chang", "switched from",
)  # fmt: skip
"""Each match of `WITHDRAWS` contains at least one of these, which rule out most texts ten times as fast."""
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
FIGURE = re.compile(r"\d[\d,.:]*")

SHARED = 0.3
"""Least share of the question's information that both statements must hold to be about the same subject."""

MAX_SENTENCE, MAX_SENTENCES = 500, 3
"""Characters of a sentence, and sentences of a text, in which a withdrawal is looked for: each costs two queries."""

SHARED_OF_SENTENCE = 0.25
"""Least share of the information of a sentence that withdraws something which a text must hold to be withdrawn."""

DISTINCTIVE = 0.6
"""Least information of a word that both hold and the question does not, as a share of a word's that one fact holds.

With both bounds the newer one of two statements of Memora's first five personas ranks above the older one in .59
instead of .44; on LoCoMo 1-5 and BEAM-100K 1-10 recall@10 and mean reciprocal rank stay within 0.2 points.
"""

NEARLY_AS_GOOD = 0.7
"""Least score of the newer statement, as a share of the older one's."""

ABOVE = 2e-6
"""Distance by which the newer statement is ranked above the older one."""


def asks_for_the_past(question: str) -> bool:
    """Return whether a question asks for an earlier state or for a change."""
    return ASKS_FOR_THE_PAST.search(question) is not None


def asks_for_a_value(question: str) -> bool:
    """Return whether a question asks for a single current value: a number, a date, a name, a place."""
    return ASKS_FOR_A_VALUE.match(question) is not None and not asks_for_the_past(question)


def outdates(newer: str, older: str) -> bool:
    """Return whether a text reports a change and states other figures than an older one."""
    figures = set(FIGURE.findall(newer)), set(FIGURE.findall(older))
    return all(figures) and figures[0] != figures[1] and SAYS_A_CHANGE.search(newer) is not None


def withdrawing(text: str) -> list[str]:
    """Return the first short sentences that say that something has ended, was finished, or is to be removed."""
    # Outside ASCII, ignoring case is more than lower case.
    if text.isascii() and not any(map(text.lower().__contains__, SAID_OF_WITHDRAWALS)):
        return []
    sentences = (sentence for sentence in SENTENCE_END.split(text) if len(sentence) <= MAX_SENTENCE)
    return list(islice(filter(WITHDRAWS.search, sentences), MAX_SENTENCES))


def withdrawn(held: Bools, information: Floats, asked: Bools, most: float) -> Bools:
    """Return which of n texts a withdrawing sentence is about.

    Args:
        held: which of the sentence's k words each text contains, (n, k).
        information: the k words' weights.
        asked: which of them the question contains.
        most: the weight of a word that one text holds.
    """
    enough: Bools = held @ information >= SHARED_OF_SENTENCE * information.sum()
    enough &= (held & ~asked & (information >= DISTINCTIVE * most)).any(axis=1)
    return enough


def with_newer_above(scores: Floats, stated_at: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return n scores where the newer statement of each (newer, older) pair of indexes ranks above the older one.

    If several make the same one outdated, the newest ranks highest. `stated_at` are n instants in seconds.
    """
    above, reached = scores.copy(), dict[int, float]()
    for newer, older in _oldest_first(pairs, stated_at):
        above[newer] = max(above[newer], reached.get(older, above[older]) + ABOVE)
        reached[older] = above[newer]
    return np.asarray(above, np.float64)


def with_newer_of(those: Bools, stated_at: Floats, pairs: Sequence[tuple[int, int]]) -> Bools:
    """Return `those` of n statements and all that make one of them outdated, also in several steps."""
    chosen = those.copy()
    for newer, older in _oldest_first(pairs, stated_at):
        chosen[newer] |= chosen[older]
    return chosen


def _oldest_first(pairs: Sequence[tuple[int, int]], stated_at: Floats) -> list[tuple[int, int]]:
    return sorted(pairs, key=lambda pair: stated_at[pair[0]])
