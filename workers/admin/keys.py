"""API keys for the HTTP API: create, list, revoke and publish."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import get_args
from uuid import UUID

from uuid_utils.compat import uuid7

from workers.context import Context
from workers.coordination import key_ring
from workers.coordination.key_ring import Grant, Scope
from workers.coordination.redis import own_keys
from workers.errors import InvalidInputError, NotFoundError
from workers.storage import api_keys, namespaces
from workers.storage.api_keys import ApiKey
from workers.storage.connection import transaction

SCOPES: tuple[str, ...] = get_args(Scope)
PREFIX = "ebb_"
TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Created:
    """A new key, which is shown only once."""

    id: UUID
    key: str


def create(
    context: Context,
    namespace: str,
    scopes: Sequence[str],
    label: str | None,
    now: datetime,
    ends: datetime | None = None,
) -> Created:
    """Create a key for a namespace.

    Raises:
        InvalidInputError: a scope is unknown, there is none, or the expiry is past.
    """
    if ends is not None and ends <= now:
        raise InvalidInputError(f"expires: {ends.isoformat()} is over; give a time to come, such as 90d.")
    wanted = [scope for scope in SCOPES if scope in scopes]
    if not wanted or len(wanted) != len(set(scopes)):
        raise InvalidInputError(
            f"scope: {', '.join(scopes) or 'none'} is not allowed; give some of {', '.join(SCOPES)}."
        )
    made = Created(uuid7(), PREFIX + secrets.token_urlsafe(TOKEN_BYTES))
    with context.at(namespace), transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace)
        api_keys.add(db, tenant.id, made.id, key_ring.digest(made.key), label, wanted, now, ends)
    publish(context, *context.settings.broker_urls)
    return made


def of_namespace(context: Context, namespace: str) -> list[ApiKey]:
    """Return the keys of a namespace, including revoked ones, oldest first."""
    with context.at(namespace), transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return [] if tenant is None else api_keys.of_namespace(db, tenant.id)


def revoke(context: Context, namespace: str, id_: UUID, now: datetime) -> bool:
    """Revoke a key at once; return false if it was revoked before.

    Raises:
        NotFoundError: the namespace has no such key.
    """
    if id_ not in {key.id for key in of_namespace(context, namespace)}:
        raise NotFoundError(f"id: no key {id_} is in namespace {namespace!r}; see `ebb keys list`.")
    with context.at(namespace), transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace)
        revoked = api_keys.revoke(db, tenant.id, id_, now)
    publish(context, *context.settings.broker_urls)
    return revoked


def publish(context: Context, *redis_urls: str) -> int:
    """Copy all keys to Redis, or to several, of groups of shards; return how many are not revoked.

    Raises:
        RedisError: one does not answer; the others have the keys, and it gets them within a minute of its return.
    """
    grants: dict[bytes, Grant] = {}
    with transaction(context.database_url) as locked:
        api_keys.lock(locked)
        for _ in context.each_shard():
            with transaction(context.database_url) as db:
                grants |= {key.digest: _grant(key) for key in api_keys.every(db)}
        with ExitStack() as stack:
            for url in redis_urls or [context.settings.redis_url]:
                stack.callback(_copy, url, grants)
    return sum(bool(grant.scopes) for grant in grants.values())


def _copy(redis_url: str, grants: Mapping[bytes, Grant]) -> None:
    with own_keys(redis_url) as redis:
        key_ring.copy(redis, grants)


def _grant(key: ApiKey) -> Grant:
    ends = None if key.expires_at is None else key.expires_at.timestamp()
    return Grant(str(key.id), key.namespace, () if key.revoked_at else tuple(key.scopes), ends, key.label)
