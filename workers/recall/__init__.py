"""Recall: a question becomes the facts that fit it best, from two indexes, scored together."""

from workers.recall.answer import Recalled, Result
from workers.recall.looking_up import Name, lookup
from workers.recall.question import Preferences, Question
from workers.recall.recalling import recall

__all__ = ["Name", "Preferences", "Question", "Recalled", "Result", "lookup", "recall"]
