"""An optional LLM and an optional reranker; their answers are validated, and Ebb works without them."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from workers.settings import Settings, require_extra

if TYPE_CHECKING:
    from workers.llm.chat import Chat
    from workers.llm.rerank import Reranker


def make_chat(settings: Settings) -> "Chat":
    """Return the LLM of the settings; create one per process, since it owns connections.

    Raises:
        SettingsError: the extra is not installed, or the settings are invalid.
    """
    require_extra("openai", "An LLM", "unset EBB_CLASSIFY_BEFORE_WRITE, EBB_EXTRACT and EBB_PRUNE_BY_LLM")
    from workers.llm.chat import Chat  # imported only where an LLM is used

    return Chat(settings)


def make_reranker(settings: Settings) -> "Reranker":
    """Return the reranker of the settings; create one per process, since it owns connections.

    Raises:
        SettingsError: the extra is not installed, or the settings are invalid.
    """
    require_extra("openai", "A reranker", "unset EBB_RERANK_URL")
    from workers.llm.rerank import Reranker  # imported only where a reranker is used

    return Reranker(settings)


class StrictAnswer(BaseModel):
    """An answer whose fields are all required and no others allowed: servers enforce such schemas only."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as shown to an LLM; a new one has no id."""

    id: UUID | None
    text: str
    entity: str | None
    key: str | None
    value: str | None
    said_at: datetime
    role: str | None = None

    def shown(self) -> dict[str, Any]:
        """Return it as JSON without empty fields."""
        named = {"role": self.role, "entity": self.entity, "key": self.key, "value": self.value}
        return (
            ({} if self.id is None else {"id": str(self.id)})
            | {"text": self.text, "said_at": self.said_at.isoformat(timespec="seconds")}
            | {name: said for name, said in named.items() if said is not None}
        )
