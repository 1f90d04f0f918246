"""Recall: find the facts that best match a question, from a text and a vector index, scored together."""

from workers.memory.recall.answer import Recalled, Result
from workers.memory.recall.deep import recall, recall_many
from workers.memory.recall.lookups import lookup
from workers.memory.recall.question import Preferences, Question

__all__ = ["Preferences", "Question", "Recalled", "Result", "lookup", "recall", "recall_many"]
