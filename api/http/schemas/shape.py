"""What all schemas have in common: bodies that are asked with, answers, and pages of them."""

from typing import Any

from pydantic import BaseModel, ConfigDict

EXAMPLE_ID = "01a1fd54-5b58-7629-9b8d-dfaf36313cae"
EXAMPLE_OTHER_ID = "01a1fd55-0c3e-7d02-8a41-52b7e3f0c9d6"
MOST_FACTS = 10_000
MOST_RESULTS = 1_000


class Request(BaseModel):
    """A body: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid")

    def arguments(self) -> dict[str, Any]:
        """Return what was given, as plain JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class Answer(BaseModel):
    """A body that a worker answered."""

    model_config = ConfigDict(extra="allow")


class Page(Answer):
    """Part of a listing; `next` is what to give as `cursor` for the part after, null behind the last."""

    next: str | None = None
