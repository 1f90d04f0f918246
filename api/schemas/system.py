"""Schemas of what concerns no fact: tasks, problems, health."""

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.shape import EXAMPLE_ID


class Accepted(BaseModel):
    """A write that will be done: its task, and the fact's id where it makes one."""

    task: UUID
    id: UUID | None = None


class TaskState(BaseModel):
    """How a task stands. `ended` is one whose result was kept for five minutes, and is not any more."""

    task: UUID
    state: Literal["waiting", "done", "failed", "ended"]
    result: Any = None
    error: str | None = None


class Problem(BaseModel):
    """What went wrong, as RFC 9457 says it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:ebb:problem:not-found"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["id: no live fact is in namespace 'default'; look for it with `recall`."])
    instance: str | None = Field(None, examples=[f"/memory/facts/{EXAMPLE_ID}"])


class Live(BaseModel):
    """That this process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """Whether memory can be used, and what is down: `ready`, `degraded` (not all of it) or `down`."""

    status: Literal["ready", "degraded", "down"]
    checks: dict[str, str]
