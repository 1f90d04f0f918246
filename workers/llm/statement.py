"""A fact as an LLM sees it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Statement:
    """What a fact says and when it was told; a new one has no id."""

    id: UUID | None
    text: str
    entity: str | None
    key: str | None
    value: str | None
    told_at: datetime

    def shown(self) -> dict[str, Any]:
        """Return it as JSON, without what it does not say."""
        named = {"entity": self.entity, "key": self.key, "value": self.value}
        return (
            ({} if self.id is None else {"id": str(self.id)})
            | {"text": self.text, "told": self.told_at.date().isoformat()}
            | {name: said for name, said in named.items() if said is not None}
        )
