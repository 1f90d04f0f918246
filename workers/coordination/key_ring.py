"""The key ring: a copy of all API keys in Redis, in which every request is looked up; the tables lead."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from redis import Redis

Scope = Literal["read", "write", "admin", "system"]

KEY = "ebb:keys"
COPIED = "copied"
"""Is in the ring once it was copied, so that an emptied Redis is not taken for one without keys."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key opens: one namespace's memory, for some scopes, until an instant; none any more if it was revoked."""

    id: str
    namespace: str
    scopes: tuple[str, ...]
    ends: float | None = None
    label: str | None = None

    def opens(self, now: float) -> bool:
        """Return whether it opens something, at epoch seconds."""
        return bool(self.scopes) and (self.ends is None or now < self.ends)


@dataclass(frozen=True, slots=True)
class Found:
    """Whether the ring was copied from the tables, whether any key is in it, and what the one in question opens."""

    copied: bool
    any_key: bool
    grant: Grant | None


def digest(key: str) -> bytes:
    """Return what is stored of a key: it is as long as random, so that one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).digest()


def look_up(redis: Redis, digest: str | None) -> Found:
    """Return what the key with this digest opens, or no key at all."""
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.hget(KEY, COPIED)
        pipeline.hlen(KEY)
        pipeline.hget(KEY, digest or "")
        pipeline.time()
        copied, length, found, (now, _) = pipeline.execute()
    grant = _grant(json.loads(found)) if found and digest else None
    return Found(copied is not None, length > 1, grant if grant and grant.opens(now) else None)


def of_namespace(redis: Redis, namespace: str) -> list[Grant]:
    """Return what each key to a namespace opens, those that open nothing any more too, oldest first."""
    entries: dict[Any, Any] = redis.hgetall(KEY)
    grants = [_grant(json.loads(one)) for name, one in entries.items() if name not in (COPIED, COPIED.encode())]
    return sorted((one for one in grants if one.namespace == namespace), key=lambda one: one.id)


def copy(redis: Redis, grants: Mapping[bytes, Grant]) -> None:
    """Put all keys into the ring in the place of what is there, revoked ones without scopes."""
    fields: dict[Any, Any] = {digest_.hex(): json.dumps(asdict(grant)) for digest_, grant in grants.items()}
    with redis.pipeline() as pipeline:
        pipeline.delete(KEY)
        pipeline.hset(KEY, mapping={COPIED: "1"} | fields)
        pipeline.execute()


def _grant(content: dict[str, Any]) -> Grant:
    ends, label = content.get("ends"), content.get("label")  # an earlier version's has neither
    return Grant(content["id"], content["namespace"], tuple(content["scopes"]), ends, label)
