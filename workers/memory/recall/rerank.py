"""Reranking: the best results of a recall in the order of a reranker, if the settings name one.

The reranker scores texts against the question and knows nothing else. So it only orders results that Ebb has found
relevant enough, and a newer statement still ranks above one that it makes outdated. Only the order of its scores
counts, because their scale differs by server and model.
"""

import logging
import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from workers.context import Context
from workers.coordination.pause import RERANKER, Pause
from workers.coordination.timings import timed
from workers.core import passages, ranking
from workers.core.arrays import Floats
from workers.errors import EbbError, RerankerError
from workers.memory.recall.explain import ScoredRecall, shared_out
from workers.storage import candidates

log = logging.getLogger(__name__)

ONE_SECONDS, MANY_SECONDS = 2.5, 25.0
"""Time from the start of a recall of one question, or of many, after which no request to the reranker begins.

With the longest EBB_RERANK_TIMEOUT, the last one ends within the time limits of tasks.
"""

CHARACTERS = 1_000
"""Maximum length of a text that is sent: rerankers read some 500 tokens, and long facts are sent by their passage."""

Sent: TypeAlias = tuple[Sequence[ScoredRecall], list[str]]
"""The recalls of one question, of which the chosen candidates are sent, and their texts."""


def first_texts(context: Context, every: Sequence[ScoredRecall]) -> Sent | None:
    """Return the first EBB_RERANK_CANDIDATES results of a question with their texts; None if fewer than two."""
    every = shared_out(every, context.settings.rerank_candidates)
    texts = [text for one in every for text in _texts(one)]
    return (every, texts) if len(texts) > 1 else None


def _texts(asked: ScoredRecall) -> list[str]:
    """Return the texts of the chosen candidates, of long ones the best passage."""
    ids, begins = asked.result_ids, asked.found.text.passages
    with asked.on_its_shard():
        read = candidates.texts_of(asked.db, asked.tenant.id, ids)
    return [_shortened(read.get(id_, ""), begins.get(id_, 0)) for id_ in ids]


def _shortened(text: str, begin: int) -> str:
    passage = passages.passage_at(text, begin)
    return (passage.text if passage else text)[:CHARACTERS]


def deadline(questions: int) -> float:
    """Return until when requests about so many questions may begin, on the monotonic clock."""
    return time.monotonic() + (MANY_SECONDS if questions > 1 else ONE_SECONDS)


def reranked(context: Context, query: str, sent: Sent, until: float) -> tuple[Sequence[ScoredRecall], bool]:
    """Return the recalls in the order of the reranker, or unchanged if it fails, and whether it answered."""
    every, texts = sent
    try:
        if time.monotonic() >= until:
            raise RerankerError("there is no time left to ask the reranker.")
        with timed("recall rerank"):
            scores = ask(context, query[:CHARACTERS], texts)
    except EbbError as error:
        log.warning("results stand in their own order: %s", error)
        return every, False
    totals = ranking.in_order_of(scores, np.concatenate([one.scored.scores.total[one.chosen] for one in every]))
    ends = np.cumsum([len(one.chosen) for one in every])[:-1]
    shares = zip(every, np.split(totals, ends), np.split(scores, ends), strict=True)
    return [one.reranked(total, score) for one, total, score in shares], True


def ask(context: Context, query: str, texts: Sequence[str]) -> Floats:
    """Return the reranker's scores of n texts, (n,), within EBB_RERANK_TIMEOUT.

    Raises:
        EbbError: it does not answer, is paused after failures, or its answer or settings are unusable.
    """
    with Pause(context.redis, RERANKER).unless_paused(context.settings.rerank_timeout):
        return context.reranker.scores(query, texts)
