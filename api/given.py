"""What may be given to the client, as types: the fields of a fact, and the options of its questions."""

from collections.abc import Mapping
from typing import Any, TypedDict

from ebb.contract.values import ClassSource, DecayClass, Durability, Kind


class FactFields(TypedDict, total=False):
    """Whatever a fact may say beside its text; what is left out gets its default when it is stored.

    Instants are ISO 8601 with time zone, a date (its midnight in UTC), or epoch seconds. `importance`, `salience`,
    `strength` and `confidence` are shares in [0, 1]; `id` is a UUID of the caller's own, which makes repeating safe.
    `metadata` is an object that comes back as it is, or its JSON.
    """

    id: str
    kind: Kind
    durability: Durability
    session: str | int
    turn: int
    source_date: str | float
    created_at: str | float
    last_seen_at: str | float
    category: str
    entity: str
    key: str
    value: str
    summary: str
    source: str
    metadata: Mapping[str, Any] | str
    tags: list[str] | str
    importance: float
    salience: float
    strength: float
    coactivations: int
    confidence: float
    decay_class: DecayClass
    decay_class_source: ClassSource
    supersedes: str
    again: bool


class EditFields(TypedDict, total=False):
    """What to change of a fact; null removes it, and gives the class back to the words.

    `tags` replace those that the fact has. With another `decay_class` or `confidence` its lifetime starts again.
    """

    category: str | None
    entity: str | None
    key: str | None
    value: str | None
    summary: str | None
    source: str | None
    metadata: Mapping[str, Any] | str | None
    tags: list[str] | str | None
    importance: float
    confidence: float
    decay_class: DecayClass | None


class Fact(FactFields):
    """A fact to store with others."""

    text: str
