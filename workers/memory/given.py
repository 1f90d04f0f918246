"""Given: what a new statement of a known fact says beside its text, and what of it is left out."""

import unicodedata
from typing import Any

from workers.storage.edits import Editable
from workers.validation import NewFact
from workers.validation.edits import EDITABLE

COMPARED = ("kind", "session", "turn", "source_date", "created_at")
STARTING = ("salience", "strength", "coactivations", "last_seen_at")
"""What says how a fact begins, which is no matter for one that is there."""


def explicit(fact: NewFact) -> dict[str, Any]:
    """Return what was given of a fact, by name, as far as it may be changed; a class by its words was not given."""
    given = {name: getattr(fact, name) for name in EDITABLE if name in fact.model_fields_set}
    if fact.decay_class_source == "auto":
        given.pop("decay_class", None)
    return {name: value for name, value in given.items() if value not in (None, [])}


def ignored(fact: NewFact, known: Editable) -> list[str]:
    """Return what of a statement is left out where a fact that makes it is there: `case`, `spacing`, or fields.

    Of a repeat under the fact's own id, how it begins was not left out.
    """
    starting = () if fact.id == known.id else STARTING
    given = [name for name in (*COMPARED, *starting) if name in fact.model_fields_set]
    given = [name for name in given if getattr(fact, name) is not None]
    other = [name for name in given if name in STARTING or getattr(fact, name) != getattr(known, name)]
    return [*_differences(fact.text, known.text), *other]


def _differences(one: str, other: str) -> list[str]:
    """Return by what two texts differ that make one statement."""
    if one == other:
        return []
    words, others = (unicodedata.normalize("NFC", text).split() for text in (one, other))
    found = ["case"] if words != others else []
    return found if " ".join(words) == one and " ".join(others) == other and found else [*found, "spacing"]
