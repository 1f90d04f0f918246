"""Salience of content: how likely a statement is to answer later questions, from its text alone.

A logistic regression over features of a turn: amount of information, rarity and novelty of its words, figures, speaker,
topic, and whether it answers a question. It was trained on conversations of four kinds, with and without the role of
the speaker, and weighs features differently where facts are long (`python -m tests.benchmarks.learning salience`). In
unseen conversations, the half of the turns with the highest salience holds 0.83 (chats of real people) to 1.0 of the
evidence; a random half holds 0.5.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workers.core.arrays import Floats
from workers.core.names import folded
from workers.core.passages import in_pairs
from workers.core.ranking import by_length
from workers.core.summary import ENGLISH_STOP_WORDS
from workers.core.text import words as words_in

USER, ASSISTANTS = "user", frozenset({"assistant", "system", "tool"})

WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
QUESTION_MARKS = ("?", "\uff1f")
FIGURE = re.compile(r"\d+")
TIME = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|yesterday|tomorrow|week|month|year"
    r"|weekend|morning|tonight)\b"
)
"""In lower case: ignoring case takes three times as long."""

MARKDOWN = re.compile(r"^[^\S\n]*(?:[-*\u2022]|\d+\.|#+)\s|```|\*\*", re.MULTILINE)
OPENING = re.compile(
    r"^\W*(?:certainly|sure|of course|absolutely|great|here(?:'s| is| are)|that's|you're welcome|thanks?|wow|yes|yeah"
    r"|hi|hello|hey)\b",
    re.IGNORECASE,
)
"""Usual beginnings of answers and greetings."""

CODE = re.compile(r"```|[{};]\s*$|\bdef \w+\(|\b\w+\(\w*\)|</?\w+>", re.MULTILINE)
SIGN_OF_CODE = re.compile("[`{};(<]")
"""What every match of `CODE` contains; most texts have none, which is found in a tenth of the time."""

FIRST_PERSON_WORDS = (
    "i i'm i've i'll i'd my me mine myself we our us we're we've we'll i\u2019m i\u2019ve i\u2019ll i\u2019d"
)
PREFERENCE_WORDS = """
    like love prefer enjoy hate dislike favorite favourite want wish hope always never fan interested loved liked
    enjoyed preferred avoid allergic need hated loves likes prefers wants
"""
CHANGE_WORDS = """
    started start stopped quit bought got moved joined changed finished decided switched updated became sold adopted
    married planning plan learned went visited completed signed made began met took won lost built received found
    added increased reduced moving starting joining used
"""
PEOPLE_WORDS = """
    mom mum mother dad father parents sister brother son daughter kid kids child children wife husband girlfriend
    boyfriend partner friend friends family uncle aunt cousin grandma grandpa grandmother grandfather baby boss coworker
    colleague roommate neighbor neighbour teacher doctor professor
"""
RECENT_WORDS = "recently recent yesterday ago last earlier lately just today tonight this"
FIRST_PERSON, PREFERENCE, CHANGE, PEOPLE, RECENT = (
    frozenset(said.split()) for said in (FIRST_PERSON_WORDS, PREFERENCE_WORDS, CHANGE_WORDS, PEOPLE_WORDS, RECENT_WORDS)
)
SECOND_PERSON = frozenset(["you", "your", "you're", "you\u2019re"])

USUAL_INFORMATION = 0.55
"""Mean information of a word, used where a namespace is too small to estimate rarity."""

FEW_FACTS = 50
"""Number of facts at which the namespace's estimate counts as much as the usual value."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A text, the role of its speaker if known, and the preceding text of its session.

    `before` is empty for the first text of a session, and None outside sessions. `words` are those that `words` returns
    for the text, where they are known.
    """

    text: str
    role: str | None = None
    before: str | None = None
    words: Sequence[str] | None = None


WEIGHTS = {
    "start": (-1.015, 2.785),
    "words_squared": (-0.071, -0.059),
    "information": (1.062, -6.690),
    "figure": (0.552, -0.160),
    "figures": (-0.105, -0.013),
    "first_person": (0.483, 0.095),
    "second_person": (0.488, 0.785),
    "second_person_share": (-14.514, -25.096),
    "preference": (0.367, 0.355),
    "change": (0.310, 0.254),
    "people": (1.740, 4.529),
    "recent": (1.832, 1.356),
    "time": (0.539, 0.201),
    "markdown": (-0.806, -0.112),
    "opening": (-0.627, -0.551),
    "code": (0.354, -0.159),
    "new_words": (0.478, 0.439),
    "different_words": (0.194, 1.337),
    "asks": (-0.212, -0.082),
    "answers": (0.663, 0.331),
    "opens": (0.563, 0.698),
    "user": (0.736, 0.111),
    "assistant": (-0.719, -0.111),
}
"""Weight of each feature in the log odds, where facts are short and where they are long; `start` is the intercept.

Those for short facts are trained on LoCoMo 1-5, BEAM-100K 1-10, REALTALK 1-5 and five personas of Memora, those for
long ones on BEAM-100K alone; both are shifted so that an ordinary turn has 0.5. In chats with an assistant, plain words
say more about their user than rare ones. In unseen chats of that kind, the fifth of the turns with the highest salience
holds 0.58 of the evidence with these weights, and 0.47 with those for short facts; the half holds 0.93 with both.
"""


def salience(
    statements: Sequence[Statement],
    facts_by_word: Mapping[str, int],
    facts: int,
    seen: set[str],
    mean_words: float | None = None,
) -> Floats:
    """Return n saliences in [0, 1]; an ordinary conversation turn has 0.5.

    Args:
        statements: the statements, oldest first.
        facts_by_word: number of the namespace's facts that contain each word, in lower case.
        facts: number of facts in the namespace.
        seen: words of older facts; the words of these statements are added.
        mean_words: average number of words of the namespace's facts; by default, of the statements and what precedes
            them.
    """
    length = _mean_words(statements) if mean_words is None else mean_words
    weights = np.array([by_length(pair, length) for pair in WEIGHTS.values()])
    odds = features(statements, facts_by_word, facts, seen) @ weights
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)


def _mean_words(statements: Sequence[Statement]) -> float:
    said = [text for one in statements for text in (one.text, one.before) if text]
    return sum(len([*in_pairs(text.split(), 2)]) for text in said) / max(len(said), 1)


def words(text: str) -> list[str]:
    """Return the distinct words of a text without stop words, in the form of `names.folded`, as words are counted."""
    found = dict.fromkeys(in_pairs(words_in(folded(text).replace("_", " "))))
    return [word for word in found if len(word) > 1 and word not in ENGLISH_STOP_WORDS]


def features(statements: Sequence[Statement], facts_by_word: Mapping[str, int], facts: int, seen: set[str]) -> Floats:
    """Return (n, 23) features, in the order of `WEIGHTS`; the statements' words are added to `seen`."""
    rows: list[tuple[float, ...]] = []
    for one in statements:
        said = words(one.text) if one.words is None else one.words
        new = len(said) - len(seen.intersection(said))
        seen.update(said)
        rows.append(_features(one, _information(said, facts_by_word, facts), new))
    return np.array(rows, np.float64).reshape(len(rows), len(WEIGHTS))


def _information(said: Sequence[str], facts_by_word: Mapping[str, int], facts: int) -> float:
    """Return the mean information of a text's words, 1 for a word that no other fact contains."""
    if not said or not facts:
        return USUAL_INFORMATION
    every = facts + 1
    held = [min(facts_by_word.get(word, 0), facts) + 1 for word in said]
    total = sum([math.log1p((every - one + 0.5) / (one + 0.5)) for one in held])
    mean = total / len(said) / math.log1p((every - 0.5) / 1.5)
    return (facts * mean + FEW_FACTS * USUAL_INFORMATION) / (facts + FEW_FACTS)


def _features(statement: Statement, information: float, new_words: int) -> tuple[float, ...]:
    text = unicodedata.normalize("NFC", statement.text)
    # Letters outside ASCII may get another number of characters, or depend on what follows the word.
    spoken = WORD.findall(text.lower() if text.isascii() else text)
    if not text.isascii():
        spoken = [word.lower() for word in in_pairs(spoken, 2)]
    said = frozenset(spoken)
    second_person, first_person, people, recent = (
        len([word for word in spoken if word in those]) for those in (SECOND_PERSON, FIRST_PERSON, PEOPLE, RECENT)
    )
    # Requests of any kind to an assistant have such words; there the role says more.
    between_people = float(not statement.role) / math.sqrt(max(len(spoken), 1))
    figures = len(FIGURE.findall(text))
    return (
        1.0,
        math.log1p(len(spoken)) ** 2,
        information,
        float(figures > 0),
        math.log1p(figures),
        math.log1p(first_person),
        float(second_person > 0),
        second_person / max(len(spoken), 1),
        float(not said.isdisjoint(PREFERENCE)),
        float(not said.isdisjoint(CHANGE)),
        people * between_people,
        recent * between_people,
        float(TIME.search(text.lower()) is not None),
        float(len(MARKDOWN.findall(text)) > 1),
        float(OPENING.search(text) is not None),
        float(SIGN_OF_CODE.search(text) is not None and CODE.search(text) is not None),
        math.log1p(new_words),
        len(said) / max(len(spoken), 1),
        float(text.rstrip().endswith(QUESTION_MARKS)),
        float(any(mark in (statement.before or "") for mark in QUESTION_MARKS)),
        float(statement.before == ""),
        float(statement.role == USER),
        float(statement.role in ASSISTANTS),
    )
