"""What may be changed of a fact that is there."""

from typing import Any

from ebb.contract.faults import fault
from ebb.contract.values import DecayClass, Metadata, Name, Share, Tags, Value
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workers.errors import InvalidInputError

NEEDED = ("importance", "confidence")
"""What every fact has, so that it can be changed but not removed."""


class FactEdit(BaseModel):
    """What to change of a fact; what is left out stays, and null removes: without class the words decide again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    category: Name | None = None
    entity: Name | None = None
    key: Name | None = None
    value: Value | None = None
    summary: Value | None = None
    source: Name | None = None
    metadata: Metadata | None = None
    tags: Tags | None = Field(None, description="all tags that it shall have")
    importance: Share | None = None
    confidence: Share | None = None
    decay_class: DecayClass | None = None


EDITABLE = tuple(FactEdit.model_fields)


def fact_edit(given: Any) -> dict[str, Any]:
    """Return what to change of a fact, by name.

    Raises:
        InvalidInputError: a field is unknown or has a value that cannot be, or nothing is to be changed.
    """
    try:
        edit = FactEdit.model_validate(given)
    except ValidationError as error:
        known = FactEdit.model_fields
        raise InvalidInputError("; ".join(fault(detail, known=known) for detail in error.errors()) + ".") from None
    wanted = {name: getattr(edit, name) for name in EDITABLE if name in edit.model_fields_set}
    if not wanted:
        raise InvalidInputError(f"nothing is to be changed; give any of {', '.join(EDITABLE)}.")
    if lacking := [name for name in NEEDED if wanted.get(name, 0) is None]:
        raise InvalidInputError(f"{lacking[0]}: cannot be removed; give a number from 0 to 1, or leave it out.")
    if "tags" in wanted:
        wanted["tags"] = list(dict.fromkeys(wanted["tags"] or []))
    return wanted
