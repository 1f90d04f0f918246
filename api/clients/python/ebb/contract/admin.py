"""Operations for operators: doctor, branches, settings of a namespace, import, and time series of the system."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field

from ebb.contract.operation import (
    BATCH_SECONDS,
    LONG_SECONDS,
    STORE_SECONDS,
    Answer,
    Operation,
    Params,
    Reaching,
    Scoped,
    Timed,
)
from ebb.contract.values import MOST_DAYS, Flag, Instant, Shallow, Whole, whole_days

Days = Annotated[int, Field(ge=1, le=366), Whole]
Older = Annotated[int, BeforeValidator(whole_days), Field(ge=1, le=MOST_DAYS)]


class Examine(Reaching):
    """Examine facts, and with `mend` put right what is wrong with them; return the faults, and how Redis is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"mend": False}]})

    mend: Annotated[Flag, Field(description="put right what is wrong with facts")] = False


class MakeBranch(Scoped):
    """Copy a namespace with every instant this many days earlier, to see what time does; the original does not change.

    Repeating it copies nothing twice.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"days": 365}]})

    older: Annotated[Older, Field(description="by how many days its instants are older, as 365 or `365d`")]


class ListBranches(Reaching):
    """Return the branches of a namespace, by their names; one that is incomplete is completed by making it again."""


class DropBranches(Scoped):
    """Erase the branches of a namespace for good, or the one of this age, or a branch itself."""

    older: Annotated[Older | None, Field(description="only the branch that is this many days older")] = None


class ChangeSettings(Timed):
    """Set some settings of a namespace and unset others, by their paths; they apply from the next pass on.

    The answer has the effective settings and those that are its own.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"set": {"hygiene.confidenceDecay.halfLife": 60, "hygiene.episodicTTL": False}},
                {"unset": ["hygiene.confidenceDecay"]},
            ]
        }
    )

    set: Annotated[Annotated[dict[str, Any], Shallow] | None, Field(description="values by their paths, or nested")] = (
        None
    )
    unset: Annotated[list[str] | None, Field(description="paths that shall be as elsewhere again")] = None


class ShowSystemTimeSeries(Params):
    """Return how many tasks waited, and how quickly writes could be read, over so many days."""

    days: Annotated[Days, Field(description="how many days to look back")] = 14
    now: Instant | None = None


RELATION: dict[str, Any] = {
    "relation": {
        "source": "Mira", "target": "Anselm", "type": "knows", "initial_weight": 0.5,
        "last_observed": "2025-01-31T08:00:00Z", "created_at": "2025-01-31T08:00:00Z",
    }
}  # fmt: skip
"""Example of a record of an archive."""


class ImportRecords(Timed):
    """Import lines of an archive: facts become what they were, with their past, links and relations."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"records": [RELATION]}]})

    records: Annotated[list[Any], Field(min_length=1, description="lines of an export, as JSON objects")]


class FactFault(Answer):
    """How many facts have a fault, what that means, and the first of them."""

    fault: str
    facts: int
    meaning: str
    first: list[UUID]


class Examined(Answer):
    """How many facts were examined, what is wrong, and whether that was put right; of the whole also how Redis is."""

    examined: int
    faults: list[FactFault]
    mended: bool


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


class NamespaceSettings(Answer):
    """The effective settings of a namespace, which of them are its own, and whether these changed just now."""

    settings: dict[str, Any]
    own: dict[str, Any]
    changed: bool
    limits: dict[str, int] | None = Field(None, description="what the operator allows each namespace, by setting")


class SystemTimeSeries(Answer):
    """Instants in epoch seconds; for each, how many tasks waited in each queue, and how quickly writes could be read.

    `half` and `most` are within how many seconds half and 19 of 20 of the writes before could be read.
    """

    at: list[float]


class Imported(Answer):
    """What became of each line, in order, or the error that kept it out."""

    results: list[dict[str, Any]]


DAYS = {"older": "days"}
DOCTOR = Operation("memory.doctor", Examine, Examined, "maintenance", "admin", "POST /memory/doctor", LONG_SECONDS)
BRANCH = Operation(
    "memory.branch", MakeBranch, Branched, "maintenance", "admin", "POST /memory/branches", LONG_SECONDS, accepted=True,
    spelled=DAYS,
)  # fmt: skip
BRANCHES = Operation("memory.branches", ListBranches, Branches, "recall", route="GET /memory/branches")
DROP_BRANCH = Operation(
    "memory.drop_branch", DropBranches, BranchesDropped, "maintenance", "admin", "DELETE /memory/branches",
    LONG_SECONDS, accepted=True, spelled=DAYS,
)  # fmt: skip
SETTINGS = Operation(
    "memory.settings", ChangeSettings, NamespaceSettings, "recall", "admin", "PATCH /memory/settings", STORE_SECONDS,
    accepted=True,
)  # fmt: skip
SYSTEM_TIME_SERIES = Operation(
    "memory.system_course", ShowSystemTimeSeries, SystemTimeSeries, "recall", "system", "GET /system/time-series"
)
IMPORT = Operation("memory.bring_back", ImportRecords, Imported, "store", "write", "POST /memory/import", BATCH_SECONDS)
