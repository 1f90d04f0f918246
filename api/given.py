"""What may be given to the client, as types: the fields of a fact, and the options of its questions."""

from collections.abc import Mapping
from typing import Any, TypedDict

from workers.core.lifetime import DecayClass
from workers.validation.values import ClassSource, Durability, Kind


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


class RecallOptions(TypedDict, total=False):
    """How to recall: at most `limit` facts (10), of those with a tag, category or kind.

    `as_of` asks what was true at an instant, `known_as_of` what had been told by then; both only read. `explain` takes
    scores apart and says what was left out by which rule; `why` asks that of the fact with this id, and strengthens
    nothing. `touch=False` reads without strengthening.
    """

    limit: int
    tag: str
    category: str
    kind: Kind
    as_of: str | float
    known_as_of: str | float
    explain: bool
    why: str
    touch: bool


class LookupOptions(TypedDict, total=False):
    """What to look up: only facts with a tag; what was true as of an instant, or had been told by then, only to read.

    `limit` facts at a time, the ones behind `cursor`. `touch=False` reads without strengthening.
    """

    tag: str
    as_of: str | float
    known_as_of: str | float
    limit: int
    cursor: str
    touch: bool


class ContextOptions(TypedDict, total=False):
    """How to fill a context; what is left out is as the settings have it.

    At most `limit` facts within `max_tokens`; `format` is full, short or minimal, `order` rank or stable. Facts above
    `summary_threshold` characters stand there by their summaries; `min_similarity` in (0, 1] is asked of what shares no
    word with the prompt. `entity_lookup` brings facts of entities that the prompt names: of `entities`, or of all that
    facts are about. `documents` lets chunks of files in, too.
    """

    limit: int
    max_tokens: int
    format: str
    order: str
    summary_threshold: int
    prefer_long_term: bool
    use_importance_recency: bool
    min_similarity: float
    entity_lookup: bool
    entities: list[str]
    documents: bool
    tag: str
    category: str
    kind: Kind
    explain: bool
    touch: bool
