"""Recall: a question becomes the facts that fit it best, from two indexes, scored together."""

from workers.memory.recall.answer import Preferences, Question, Recalled, Result
from workers.memory.recall.lookups import Name, lookup
from workers.memory.recall.pipeline import recall

__all__ = ["Name", "Preferences", "Question", "Recalled", "Result", "lookup", "recall"]
