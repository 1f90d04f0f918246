"""Validation of facts to be stored."""

import re
from datetime import datetime
from typing import Any

from ebb.contract.documents import Json, Minutes
from ebb.contract.facts import NewFact
from ebb.contract.faults import faults, few_unknown, show
from ebb.contract.values import Flag, is_visible
from pydantic import BaseModel, ValidationError

from workers.core.text import identity, strip_injected
from workers.errors import InvalidInputError

DERIVED = (
    "tier", "fidelity", "dims", "retention", "effective_confidence", "decay_summary", "expires_at", "due_at",
    "ends_at", "ends_for", "forgotten_at", "forgotten_reason", "forgotten_by", "tombstone_at", "pinned",
    "pinned_until", "valid_from", "valid_until", "superseded_at", "superseded_by", "supersedes_id", "normalized_hash",
    "recall_count", "access_count", "last_accessed", "last_accessed_at", "last_confirmed_at", "stale", "occurred",
    "content_salience", "salience_given", "said_again", "over",
)  # fmt: skip
"""Fields of an exported fact that cannot be stored: they follow from the others."""

PAST = ("created_at", "last_seen_at")
"""Instants at which something was done to a fact by the time that it is stored."""

EMPTY = "text: cannot store empty fact text; give at least one visible character."
PERMANENT = "permanent"

PATH_OF_ITEM = re.compile(r'(?:"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})+"/)+')
"""Labels as an item has them: each as JSON, followed by a slash."""


class OfItem(BaseModel):
    """Metadata that every item has."""

    document: Json
    created_at: str
    indexed: Flag
    minutes: Minutes | None = None


def digest(fact: NewFact) -> bytes:
    """Return a fact's identity: its text and what it is about, or for documents its place."""
    return identity(fact.kind, fact.text, (fact.entity, fact.key, fact.value), fact.source)


def own_words(text: str, name: str, max_text: int) -> str:
    """Return a text without injected memory blocks; it may become empty.

    Raises:
        InvalidInputError: it has more than `max_text` bytes; `name` is the field for the message.
    """
    text = strip_injected(text)
    size = len(text.encode())
    if size > max_text:
        raise InvalidInputError(
            f"{name}: has {size} bytes, more than the limit of {max_text} (EBB_MAX_TEXT); split it."
        )
    return text


def new_fact(given: Any, max_text: int, at: datetime | None = None) -> NewFact:
    """Return the fact that a JSON object describes, or a validated fact; `at` is when it is stored, if that is known.

    A fact that was created or last used after that, by another clock, counts as created or used then. Otherwise it
    would not fade until the later instant.

    Raises:
        InvalidInputError: it is not an object, or fields are unknown or have invalid values; all are listed.
            Or it is an item without a place, which no list of items could show. Or it was true at no known time.
    """
    fact = stored_fact(given, max_text)
    if not is_visible(fact.text):
        raise InvalidInputError(EMPTY)
    if at is not None:
        past = {name: min(one, at) for name in PAST if (one := getattr(fact, name)) is not None}
        fact = fact.model_copy(update=past)
        _check_beginning(fact, at)
    if fact.kind == "item" and _of_item(fact.entity, fact.key, fact.metadata) is None:
        raise InvalidInputError(
            "kind: an item has a path, a key and a document; put it with `PUT /memory/items`, in Python with "
            "`put_item`, or leave `kind` out."
        )
    return fact


def _of_item(entity: str | None, key: str | None, metadata: dict[str, Any] | None) -> OfItem | None:
    """Return the metadata of a fact that has the path, the key and the document of an item."""
    try:
        found = OfItem.model_validate(metadata)
    except ValidationError:
        return None
    return found if PATH_OF_ITEM.fullmatch(entity or "") is not None and key else None


def ttl(kind: str, entity: str | None, key: str | None, metadata: dict[str, Any] | None) -> float | None:
    """Return how many seconds an item lives after its last use; None for other facts, and for items without a `ttl`."""
    has_one = kind == "item" and (metadata or {}).get("minutes") is not None
    found = _of_item(entity, key, metadata) if has_one else None
    return None if found is None or found.minutes is None else 60 * found.minutes


def stored_fact(given: Any, max_text: int) -> NewFact:
    """Return a fact as `new_fact` does, also an item without a place that an earlier version stored."""
    fact = given if isinstance(given, NewFact) else _read(given)
    text = own_words(fact.text, "text", max_text)
    if not text:
        raise InvalidInputError(EMPTY)
    if fact.supersedes is not None and fact.supersedes == fact.id:
        raise InvalidInputError(f"supersedes: {fact.id} is the fact's own id; give the id of the one that it replaces.")
    check_validity(fact.valid_from, fact.valid_until)
    return fact.model_copy(update={"text": text, **_lasting(fact)})


def _check_beginning(fact: NewFact, at: datetime) -> None:
    """Refuse a fact that was no longer true when it was said, without a beginning: no question would find it."""
    said_at = min(filter(None, (fact.created_at or at, fact.source_date)))
    if fact.valid_from is None and fact.valid_until is not None and fact.valid_until <= said_at:
        raise InvalidInputError(
            f"valid_until: {fact.valid_until.isoformat()} does not lie after {said_at.isoformat()}, when it was said; "
            "give valid_from too, since when it was true."
        )


def check_validity(begins: datetime | None, ends: datetime | None) -> None:
    """Reject a validity that ends before it starts.

    Raises:
        InvalidInputError: it does.
    """
    if begins is not None and ends is not None and ends <= begins:
        raise InvalidInputError(f"valid_until: {ends.isoformat()} does not lie after valid_from, {begins.isoformat()}.")


def _read(given: Any) -> NewFact:
    if not isinstance(given, dict):
        raise InvalidInputError(f"A fact is a JSON object with at least a `text`; given {show(given)}.")
    given, more = few_unknown(given, NewFact.model_fields)
    try:
        return NewFact.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError(faults(error, known=NewFact.model_fields, more=more)) from None


def _lasting(fact: NewFact) -> dict[str, Any]:
    """Return durability and decay class of an episode; either both are permanent or neither.

    A permanent episode is never deleted, so its lifetime is permanent too, and vice versa.
    """
    if fact.kind != "episodic":
        if fact.durability is not None:
            raise InvalidInputError(
                f"durability: only episodes have one, not a {fact.kind} fact; given {show(fact.durability)}. "
                "Give the kind `episodic`, or leave it out."
            )
        return {}
    if PERMANENT not in (fact.durability, fact.decay_class):
        return {"durability": "persistent"}
    if {fact.durability, fact.decay_class} - {PERMANENT, None}:
        raise InvalidInputError(
            f"durability: {show(fact.durability)} contradicts the decay_class {show(fact.decay_class)}; "
            "leave one of them out."
        )
    return {"durability": PERMANENT, "decay_class": PERMANENT}
