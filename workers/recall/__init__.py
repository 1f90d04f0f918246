"""Recall: a question becomes the facts that fit it best, from two indexes, scored together."""

from workers.recall.answer import Recalled, Result
from workers.recall.question import Preferences, Question
from workers.recall.recalling import recall

__all__ = ["Preferences", "Question", "Recalled", "Result", "recall"]
