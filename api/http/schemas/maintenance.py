"""Schemas of how a namespace is kept: passes, near-duplicates, the janitor, and its settings."""

from datetime import datetime
from typing import Annotated, Any

from ebb.contract.values import Instant, Shallow
from pydantic import ConfigDict, Field

from api.http.schemas.shape import MOST_RESULTS, Answer, Request
from workers.validation import MOST_DAYS


class DecayRequest(Request):
    """A pass over what is due, as of now or of another instant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}, {}]})

    dry_run: bool = Field(default=False, description="only count what would happen")
    now: Instant | None = Field(None, description="the instant of the pass; only with `dry_run` one in the future")
    force: bool = Field(default=False, description="forget past EBB_FORGET_LIMIT")


class JanitorRequest(Request):
    """A run of the janitor, as of now or of an earlier instant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    now: Instant | None = Field(None, description="the instant of the run, which is not ahead of the database's clock")


class BranchRequest(Request):
    """By how many days the copy of this namespace is older."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"days": 365}]})

    days: int = Field(ge=1, le=MOST_DAYS)


class ConsolidateRequest(Request):
    """Whether near-duplicates are merged, even past the forget limit, and how many groups are listed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"apply": True}]})

    apply: bool = False
    force: bool = False
    limit: int = Field(100, ge=1, le=MOST_RESULTS)


class SettingsRequest(Request):
    """Settings of the namespace by their paths: which shall hold, and which shall be as elsewhere again."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"set": {"hygiene.confidenceDecay.halfLife": 60, "hygiene.episodicTTL": False}},
                {"unset": ["hygiene.confidenceDecay"]},
            ]
        }
    )

    set: Annotated[dict[str, Any], Shallow] = Field(default_factory=dict)
    unset: list[str] = Field(default_factory=list)


class Decayed(Answer):
    """What a pass did."""

    processed: int
    changed: int
    forgotten: int


class Runs(Answer):
    """Passes, the newest first; `next` is what to give as `before` for those that came earlier."""

    runs: list[dict[str, Any]]
    next: datetime | None


class Branched(Answer):
    """A branch: its name, whether it was made just now, and how many live facts it holds."""

    branch: str
    action: str
    facts: int


class Branches(Answer):
    """The branches of the namespace, and how many there are."""

    branches: list[dict[str, Any]]
    total: int


class BranchesDropped(Answer):
    """The names of the branches that were erased."""

    dropped: list[str]


class Consolidated(Answer):
    """Facts that say nearly the same: the groups that were merged, or would be, and how many are left."""

    applied: bool
    merged: int
    total: int
    facts: int
    groups: list[dict[str, Any]]


class Janitor(Answer):
    """The report of the janitor's last run, in its documented field names."""

    totalRuns: int  # noqa: N815  the document's own name
    lastRunAt: datetime | None = None  # noqa: N815


class NamespaceSettings(Answer):
    """How a namespace is kept: all settings that hold there, and those of them that it has set itself."""

    settings: dict[str, Any]
    own: dict[str, Any]
    changed: bool
