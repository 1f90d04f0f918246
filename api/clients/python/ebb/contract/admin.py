"""Operations for operators: doctor, branches, settings of a namespace, shards, import, and series of the system."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field

from ebb.contract.facts import Lives
from ebb.contract.operation import (
    BATCH_SECONDS,
    STORE_SECONDS,
    Answer,
    Operation,
    Params,
    Reaching,
    Rejected,
    Scoped,
    Timed,
    administers,
    examples,
    reads,
    writes,
)
from ebb.contract.values import MOST_DAYS, Count, Flag, Instant, Shallow, Whole, whole_days

Days = Annotated[int, Field(ge=1, le=366), Whole]
Older = Annotated[int, Field(ge=1, le=MOST_DAYS), BeforeValidator(whole_days)]


class Examine(Reaching):
    """Examine facts, and with `mend` repair them; return the faults and the condition of Redis."""

    model_config = examples({"mend": False})

    mend: Flag = Field(default=False, description="put right what is wrong with facts")


class MakeBranch(Scoped):
    """Copy a namespace with every instant shifted into the past, to try out decay; the original does not change.

    Repeating it copies nothing twice.
    """

    model_config = examples({"days": 365})

    older: Older = Field(description="by how many days its instants are older, as 365 or `365d`")


class ListBranches(Reaching):
    """Return the branches of a namespace by name; making an incomplete branch again completes it."""


class DropBranches(Scoped):
    """Erase all branches of a namespace, the one of an age, or the given branch."""

    older: Older | None = Field(default=None, description="only the branch that is this many days older")


class ChangeSettings(Timed):
    """Set and unset settings of a namespace by their paths; they apply from the next pass on.

    The answer has the effective settings and the namespace's own.
    """

    model_config = examples(
        {"set": {"hygiene.confidenceDecay.halfLife": 60, "hygiene.episodicTTL": False}},
        {"unset": ["hygiene.confidenceDecay"]},
    )

    set: Annotated[dict[str, Any], Shallow] | None = Field(default=None, description="values by their paths, or nested")
    unset: list[str] | None = Field(default=None, description="paths to remove, so that the server's values count")


class ListShards(Params):
    """Return the shards, the schemas that namespaces are spread over, with the sizes of all that is in them."""


class MoveNamespace(Scoped):
    """Move the namespace to another shard while it is in use; nothing is lost if it is interrupted.

    Large namespaces take minutes: do not wait, and ask for the state of the task. Moving to its own shard does nothing.
    """

    model_config = examples({"shard": 0})

    shard: Count = Field(description="the number of the shard to move to, below `EBB_SHARDS`")


class ShowSystemTimeSeries(Params):
    """Return the time series of queue lengths and of the latency of writes."""

    days: Days = Field(default=14, description="how many days to look back")
    now: Instant | None = None


RELATION: dict[str, Any] = {
    "relation": {
        "source": "Mira", "target": "Anselm", "type": "knows", "initial_weight": 0.5,
        "last_observed": "2025-01-31T08:00:00Z", "created_at": "2025-01-31T08:00:00Z",
    }
}  # fmt: skip
"""Example of a record of an archive."""


class ImportRecords(Timed):
    """Import records of an archive: facts with their past, links and relations."""

    model_config = examples({"records": [RELATION]})

    records: list[Any] = Field(min_length=1, description="lines of an export, as JSON objects")


class FactFault(Answer):
    """The number of facts with a fault, its meaning, and the first of them."""

    fault: str
    facts: int
    meaning: str
    first: list[UUID]


class RedisCondition(Answer):
    """The condition of the Redis server; memory is in bytes, a limit of 0 is none."""

    server: str
    memory_used: int
    memory_limit: int
    eviction: str = Field(description="its `maxmemory-policy`")
    append_only_file: bool
    fsync: str | None = Field(description="its `appendfsync`; null: unknown")
    last_save: str = Field(description="`ok`, or the state of the last write of its file")
    power_failure_loses: str = Field(description="which accepted writes a power failure may lose")
    warnings: list[str] = Field(description="what may lose messages or writes, each with what to do")


class Examined(Answer):
    """The number of examined facts, the faults, whether they were repaired, and at the end the condition of Redis."""

    examined: int
    faults: list[FactFault]
    mended: bool
    redis: RedisCondition | None = None


class Branched(Answer):
    """A branch: its name, whether it was made just now, and its number of live facts."""

    branch: str
    action: str
    facts: int


class Branch(Answer):
    """A branch of a namespace."""

    branch: str = Field(description="its name, which is that of a namespace")
    of: str = Field(description="the namespace that it is a copy of")
    days: int | None = Field(description="by how many days its instants are older")
    complete: bool = Field(description="false: its making was interrupted; make it again to complete it")
    facts: int = Field(description="its number of live facts")
    forgotten: int = Field(default=0, description="its number of forgotten facts, which a drop erases too")


class Branches(Answer):
    """The branches of the namespace, and their number."""

    branches: list[Branch]
    total: int


class BranchesDropped(Answer):
    """The names of the branches that were erased."""

    dropped: list[str]


class Shard(Answer):
    """A shard: its number and schema, and the namespaces, live facts and bytes in it."""

    number: int
    schema_name: str = Field(alias="schema")
    namespaces: int
    facts: int
    bytes: int


class Shards(Answer):
    """The shards by their numbers."""

    shards: list[Shard]


class NamespaceMoved(Answer):
    """The shards of a namespace before and after its move, the copied rows, and for how long writes waited."""

    namespace: str
    old: int
    new: int
    rows: int
    held_ms: float = Field(description="for how long writes waited, in milliseconds")


class NamespaceSettings(Answer):
    """The effective settings of a namespace, its own ones, and whether these changed just now."""

    settings: dict[str, Any]
    own: dict[str, Any]
    changed: bool
    limits: dict[str, int] | None = Field(
        default=None, description="what the operator allows each namespace, by setting"
    )


class SystemTimeSeries(Answer):
    """Time series by instant in epoch seconds: waiting tasks of each queue, and the latency of writes.

    `half` and `most` are the median and the 95th percentile in seconds until a write could be read.
    """

    at: list[float]
    waiting: dict[str, list[int]] = Field(description="of each queue, the maximum of five minutes")
    half: list[float | None]
    most: list[float | None]


class ImportedRecord(Lives):
    """The outcome of a record; of a fact also its id, and its lifetime if it was added."""

    action: str = Field(
        description="added, kept, duplicate, unchanged, restored, forgotten …, or linked, related, settled …"
    )
    id: UUID | None = None
    embedded: bool | None = Field(default=None, description="whether a fact has its vector")


class Imported(Answer):
    """The outcome or error of each record, in order."""

    results: list[ImportedRecord | Rejected]


DAYS = {"older": "days"}
DOCTOR = administers("memory.doctor", Examine, Examined, "POST /memory/doctor")
BRANCH = administers("memory.branch", MakeBranch, Branched, "POST /memory/branches", accepted=True, spelled=DAYS)
BRANCHES = reads("memory.branches", ListBranches, Branches, "GET /memory/branches")
DROP_BRANCH = administers(
    "memory.drop_branch", DropBranches, BranchesDropped, "DELETE /memory/branches", accepted=True, spelled=DAYS
)
SETTINGS = Operation(
    "memory.settings", ChangeSettings, NamespaceSettings, "recall", "admin", "PATCH /memory/settings", STORE_SECONDS,
    accepted=True,
)  # fmt: skip
SHARDS = reads("memory.shards", ListShards, Shards, "GET /system/shards", scope="system")
MOVE = administers("memory.move_namespace", MoveNamespace, NamespaceMoved, "POST /memory/move", accepted=True)
SYSTEM_TIME_SERIES = reads(
    "memory.system_course", ShowSystemTimeSeries, SystemTimeSeries, "GET /system/time-series", scope="system"
)
IMPORT = writes("memory.bring_back", ImportRecords, Imported, "POST /memory/import", BATCH_SECONDS, accepted=False)
