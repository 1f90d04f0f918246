"""Recall: a question becomes the facts that fit it best, from two indexes, scored together."""

from workers.recall.answer import Recalled, Result
from workers.recall.recalling import Question, recall

__all__ = ["Question", "Recalled", "Result", "recall"]
