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
    """What a key opens: one namespace's memory, for some scopes; none any more if it was revoked."""

    id: str
    namespace: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Whether the ring was copied from the tables, whether any key is in it, and what the one in question opens."""

    copied: bool
    any_key: bool
    grant: Grant | None


def digest(key: str) -> bytes:
    """Return what is kept of a key: it is as long as random, so that one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).digest()


def look_up(redis: Redis, key: str | None) -> Found:
    """Return what a key opens, or no key at all."""
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.hget(KEY, COPIED)
        pipeline.hlen(KEY)
        pipeline.hget(KEY, digest(key or "").hex())
        copied, length, found = pipeline.execute()
    grant = _grant(json.loads(found)) if found and key else None
    return Found(copied is not None, length > 1, grant if grant and grant.scopes else None)


def copy(redis: Redis, grants: Mapping[bytes, Grant]) -> None:
    """Put all keys into the ring in the place of what is there, revoked ones without scopes."""
    fields: dict[Any, Any] = {digest_.hex(): json.dumps(asdict(grant)) for digest_, grant in grants.items()}
    with redis.pipeline() as pipeline:
        pipeline.delete(KEY)
        pipeline.hset(KEY, mapping={COPIED: "1"} | fields)
        pipeline.execute()


def _grant(content: dict[str, Any]) -> Grant:
    return Grant(content["id"], content["namespace"], tuple(content["scopes"]))
