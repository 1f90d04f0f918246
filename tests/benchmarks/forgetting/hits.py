"""The questions of an agent in a year: few topics often (Zipf), most hardly ever, recent ones more often."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

import numpy as np

from tests.benchmarks.conversations import Conversation

ZIPF = 1.0
"""How much more the first of all topics is asked for than the n-th: n to this power."""

RECENCY = 0.5
"""How a topic loses as it grows old: the days since it came up, to minus this power (Anderson and Schooler 1991)."""

FEWEST_WORDS, MOST_WORDS = 3, 8
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that can be asked for from an instant on: by a question, or by words of a fact."""

    since: datetime
    text: str
    whole: bool


Recall: TypeAlias = tuple[datetime, str]


def of_facts(conversation: Conversation) -> list[Topic]:
    """Return facts as topics, which are independent of the questions."""
    return [Topic(turn.at, turn.fact.text, whole=False) for turn in conversation.turns]


def of_questions(conversation: Conversation, fold: int | None) -> list[Topic]:
    """Return the questions as topics, each from when it can be answered: all of them, or every second one."""
    asked = conversation.asked if fold is None else conversation.asked[fold::2]
    return [Topic(one.answerable_since, one.text, whole=True) for one in asked]


def recalls(topics: Sequence[Topic], a_day: float, begin: datetime, days: float, seed: Sequence[int]) -> list[Recall]:
    """Return (time, topic) of the requests in order: a number per day on average, at random instants.

    The popular topics are chosen at random, independent of their content.
    """
    rng = np.random.default_rng(list(seed))
    popularity = 1.0 / (1.0 + rng.permutation(len(topics))) ** ZIPF
    since = np.array([topic.since.timestamp() for topic in topics])
    moments = np.sort(rng.uniform(0.0, days, rng.poisson(a_day * days)))
    made = []
    for at in (begin + moment * DAY for moment in moments.tolist()):
        age_days = (at.timestamp() - since) / DAY.total_seconds()
        weights = np.where(age_days >= 0, popularity * (1.0 + np.maximum(age_days, 0.0)) ** -RECENCY, 0.0)
        if weights.any():
            topic = topics[rng.choice(len(topics), p=weights / weights.sum())]
            made.append((at, topic.text if topic.whole else _some_words(rng, topic.text)))
    return made


def _some_words(rng: np.random.Generator, text: str) -> str:
    words = re.findall(r"\w[\w'-]*", text)
    count = min(int(rng.integers(FEWEST_WORDS, MOST_WORDS + 1)), len(words))
    return " ".join(rng.choice(words, count, replace=False)) if words else text
