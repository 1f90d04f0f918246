"""The condition of a Redis: its memory, how it saves what it accepts, and what it would evict."""

from dataclasses import asdict, dataclass
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from workers.coordination.outbox import FULL_SHARE

MIB = 1024**2
KEEPS = "noeviction"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a server says of itself; memory in bytes, a limit of 0 is none; `fsync` is None where it does not say."""

    server: str
    memory_used: int
    memory_limit: int
    eviction: str
    append_only_file: bool
    fsync: str | None
    last_save: str

    def warnings(self) -> list[str]:
        """Return what may lose messages or accepted writes, and what to do about it."""
        found = {
            f"`maxmemory-policy` is {self.eviction}: a full Redis would evict messages and accepted writes; "
            f"set it to {KEEPS}": self.eviction != KEEPS,
            "the append-only file is off: what was accepted without waiting is lost when Redis ends; "
            "set `appendonly yes`": not self.append_only_file,
            f"`appendfsync` is {self.fsync}: a failure of power may lose many seconds of accepted writes; "
            "set it to everysec or always": self.append_only_file and self.fsync == "no",
            f"the last write of its file failed ({self.last_save}): make room on its disk": self.last_save != "ok",
            "more than nine tenths of its memory are used, so nothing is accepted without waiting; "
            "raise `maxmemory` or start more workers": self.is_nearly_full(),
        }
        return [said for said, holds in found.items() if holds]

    def is_nearly_full(self) -> bool:
        """Return whether writes are not accepted without waiting any more."""
        return 0 < self.memory_limit * FULL_SHARE < self.memory_used

    def loses(self) -> str:
        """Return what a failure of power may lose of the writes that were accepted without waiting."""
        if not self.append_only_file:
            return "all that are not stored"
        known = {"always": "nothing", "everysec": "about the last second"}
        return known.get(self.fsync or "", "an unknown number of seconds")

    def answer(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self) | {"power_failure_loses": self.loses(), "warnings": self.warnings()}

    def __str__(self) -> str:
        """Return it as people read it."""
        limit = f" of {self.memory_limit / MIB:.0f}" if self.memory_limit else ""
        file = f"append-only file on (fsync {self.fsync or 'unknown'})" if self.append_only_file else "no file"
        return (
            f"{self.server}, {self.memory_used / MIB:.0f}{limit} MiB of memory used, {self.eviction}, {file}; "
            f"a failure of power loses {self.loses()} of what was accepted without waiting"
        )


def read(redis: Redis) -> Condition:
    """Ask a server for its condition."""
    server, memory, saving = redis.info("server"), redis.info("memory"), redis.info("persistence")
    own = server.get("valkey_version")
    return Condition(
        server=f"Valkey {own}" if own else f"Redis {server['redis_version']}",
        memory_used=int(memory["used_memory"]),
        memory_limit=int(memory.get("maxmemory", 0)),
        eviction=str(memory.get("maxmemory_policy", KEEPS)),
        append_only_file=bool(saving.get("aof_enabled")),
        fsync=_fsync(redis),
        last_save=str(saving.get("aof_last_write_status", "ok")),
    )


def _fsync(redis: Redis) -> str | None:
    """Return `appendfsync`; a server that others run may not show its configuration."""
    try:
        found = redis.config_get("appendfsync").get("appendfsync")
    except ResponseError:
        return None
    return None if found is None else str(found)
