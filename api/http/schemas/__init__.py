"""Requests and answers of the HTTP API as pydantic models, from which the OpenAPI document is made.

What workers answer passes through as it is: a field that is new there needs no change here.
"""

from api.http.schemas.maintenance import (
    Branched,
    Branches,
    BranchesDropped,
    BranchRequest,
    Consolidated,
    ConsolidateRequest,
    Decayed,
    DecayRequest,
    Janitor,
    JanitorRequest,
    NamespaceSettings,
    Runs,
    SettingsRequest,
)
from api.http.schemas.reports import (
    Decided,
    DecideRequest,
    HeldFacts,
)
from api.http.schemas.shape import EXAMPLE_ID, MOST_FACTS, MOST_RESULTS, Answer, Page, Request
from api.http.schemas.system import Accepted, Live, Problem, Ready, TaskState

__all__ = [
    "EXAMPLE_ID",
    "MOST_FACTS",
    "MOST_RESULTS",
    "Accepted",
    "Answer",
    "BranchRequest",
    "Branched",
    "Branches",
    "BranchesDropped",
    "ConsolidateRequest",
    "Consolidated",
    "DecayRequest",
    "Decayed",
    "DecideRequest",
    "Decided",
    "HeldFacts",
    "Janitor",
    "JanitorRequest",
    "Live",
    "NamespaceSettings",
    "Page",
    "Problem",
    "Ready",
    "Request",
    "Runs",
    "SettingsRequest",
    "TaskState",
]
