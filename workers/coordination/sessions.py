"""Sessions of the dashboard: who has signed in, by the token in a cookie; Redis has digests of token and key alone."""

import secrets

from redis import Redis

from workers.coordination.key_ring import digest

PREFIX = "ebb:session:"
SECONDS = 12 * 3_600
"""How long a session lasts without a visit."""

TOKEN_BYTES = 32


def begin(redis: Redis, key: str) -> str:
    """Begin a session of a key, and return its token."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    redis.set(_name(token), digest(key).hex(), ex=SECONDS)
    return token


def key_digest(redis: Redis, token: str) -> str | None:
    """Return the digest of the key that signed in, or nothing if the session has ended; a visit prolongs it."""
    found = redis.getex(_name(token), ex=SECONDS)
    return found.decode() if isinstance(found, bytes) else str(found) if found else None


def end(redis: Redis, token: str) -> None:
    """End a session."""
    redis.delete(_name(token))


def _name(token: str) -> str:
    return PREFIX + digest(token).hex()
