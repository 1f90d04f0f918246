"""Schemas of what concerns no fact: tasks, problems, health."""

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.http.schemas.shape import EXAMPLE_ID


class Accepted(BaseModel):
    """A write that will be done: its task, and the fact's id where it makes one."""

    task: UUID
    id: UUID | None = None


class TaskState(BaseModel):
    """How a task stands. `ended` is one whose result was kept for five minutes, and is not any more.

    `late` is one that was not done in time: no worker begins it any more, but one that was at it may end it.
    """

    task: UUID
    state: Literal["waiting", "done", "failed", "ended", "late"]
    result: Any = None
    error: str | None = None


class Problem(BaseModel):
    """What went wrong, as RFC 9457 says it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:ebb:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(
        examples=[f"id: no live fact {EXAMPLE_ID} is in namespace 'default'; look for it with `recall`."]
    )
    instance: str | None = Field(None, examples=[f"/memory/facts/{EXAMPLE_ID}"])


class Live(BaseModel):
    """That this process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """Whether memory can be used, and what is down: `ready`, `degraded` (not all of it) or `down`."""

    status: Literal["ready", "degraded", "down"]
    checks: dict[str, str]
