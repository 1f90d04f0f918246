"""The key ring: a copy of all API keys in Redis for looking up requests, and the sessions of the dashboard.

The tables of keys are authoritative. Sessions hold only digests of their token and key.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from redis import Redis

Scope = Literal["read", "write", "admin", "system"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "ebb_"
TOKEN_BYTES = 32
LONGEST_LABEL = 256
"""Maximum characters of a key's label."""

KEY = "ebb:keys"
COPIED = "copied"
"""Field that exists once the keys were copied: without it, an emptied Redis would look like one without keys."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key permits: scopes on one namespace until an instant; a revoked key has no scopes."""

    id: str
    namespace: str
    scopes: tuple[str, ...]
    ends: float | None = None
    label: str | None = None

    def opens(self, now: float) -> bool:
        """Return whether it permits anything at `now` (epoch seconds)."""
        return bool(self.scopes) and (self.ends is None or now < self.ends)


@dataclass(frozen=True, slots=True)
class Found:
    """Whether the ring was copied from the tables, whether it holds any key, and the grant looked up."""

    copied: bool
    any_key: bool
    grant: Grant | None


def new_key() -> str:
    """Return a new random key."""
    return PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def digest(key: str) -> bytes:
    """Return the stored digest of a key: keys are long and random, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode()).digest()


def look_up(redis: Redis, digest: str | None) -> Found:
    """Return the grant of the key with this digest, if any."""
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.hget(KEY, COPIED)
        pipeline.hlen(KEY)
        pipeline.hget(KEY, digest or "")
        pipeline.time()
        copied, length, found, (now, _) = pipeline.execute()
    grant = _grant(json.loads(found)) if found and digest else None
    return Found(copied is not None, length > 1, grant if grant and grant.opens(now) else None)


def of_namespace(redis: Redis, namespace: str) -> list[Grant]:
    """Return the grants of all keys to a namespace, expired and revoked ones included, oldest first."""
    entries: dict[Any, Any] = redis.hgetall(KEY)
    grants = [_grant(json.loads(one)) for name, one in entries.items() if name not in (COPIED, COPIED.encode())]
    return sorted((one for one in grants if one.namespace == namespace), key=lambda one: one.id)


def copy(redis: Redis, grants: Mapping[bytes, Grant]) -> None:
    """Replace the ring by these keys; revoked ones have no scopes."""
    fields: dict[Any, Any] = {digest_.hex(): json.dumps(asdict(grant)) for digest_, grant in grants.items()}
    with redis.pipeline() as pipeline:
        pipeline.delete(KEY)
        pipeline.hset(KEY, mapping={COPIED: "1"} | fields)
        pipeline.execute()


def _grant(content: dict[str, Any]) -> Grant:
    return Grant(**content | {"scopes": tuple(content["scopes"])})


SESSION = "ebb:session:"
SESSION_SECONDS = 12 * 3_600
"""Lifetime of a session after the last visit."""


def start_session(redis: Redis, key: str) -> str:
    """Start a session of a key, and return its token."""
    token = secrets.token_urlsafe(32)
    redis.set(_session(token), digest(key).hex(), ex=SESSION_SECONDS)
    return token


def session_key(redis: Redis, token: str) -> str | None:
    """Return the digest of the session's key and extend the session; None if it has ended."""
    found = redis.getex(_session(token), ex=SESSION_SECONDS)
    return found.decode() if isinstance(found, bytes) else str(found) if found else None


def end_session(redis: Redis, token: str) -> None:
    """End a session."""
    redis.delete(_session(token))


def _session(token: str) -> str:
    return SESSION + digest(token).hex()
