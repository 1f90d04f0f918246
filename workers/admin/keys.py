"""API keys for the HTTP API: create, list, expire, revoke and publish."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from workers.context import Context
from workers.coordination import key_ring
from workers.coordination.key_ring import SCOPES, Grant
from workers.coordination.redis import own_keys
from workers.errors import InvalidInputError, NotFoundError
from workers.storage import api_keys, namespaces
from workers.storage.api_keys import ApiKey
from workers.storage.connection import Connection, transaction


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
    made = Created(uuid7(), key_ring.new_key())
    add(context, namespace, made.id, key_ring.digest(made.key), scopes, label, now, ends)
    return made


def add(
    context: Context,
    namespace: str,
    id_: UUID,
    digest: bytes,
    scopes: Sequence[str],
    label: str | None,
    now: datetime,
    ends: datetime | None,
) -> bool:
    """Add a key by its digest; return false if another one has this id.

    Raises:
        InvalidInputError: a scope is unknown, there is none, or the expiry is past.
    """
    _check_end(ends, now)
    wanted = [scope for scope in SCOPES if scope in scopes]
    if not wanted or len(wanted) != len(set(scopes)):
        raise InvalidInputError(
            f"scope: {', '.join(scopes) or 'none'} is not allowed; give some of {', '.join(SCOPES)}."
        )
    with context.at(namespace), transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace)
        added = api_keys.add(db, tenant.id, id_, digest, label, wanted, now, ends)
        added = added or (id_, digest) in {(key.id, key.digest) for key in api_keys.of_namespace(db, tenant.id)}
    publish(context, *context.settings.broker_urls)
    return added


def _check_end(ends: datetime | None, now: datetime) -> None:
    if ends is not None and ends <= now:
        raise InvalidInputError(f"expires: {ends.isoformat()} is over; give a time to come, such as 90d.")


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
    with _changing(context, namespace, id_) as (db, tenant):
        revoked = api_keys.revoke(db, tenant, id_, now)
    publish(context, *context.settings.broker_urls)
    return revoked


def expire(context: Context, namespace: str, id_: UUID, ends: datetime | None, now: datetime) -> None:
    """Set when a key expires; None is never.

    Raises:
        InvalidInputError: the expiry is past, or the key has expired or was revoked, which stays so.
        NotFoundError: the namespace has no such key.
    """
    _check_end(ends, now)
    with _changing(context, namespace, id_) as (db, tenant):
        if not api_keys.expire(db, tenant, id_, ends, now):
            raise InvalidInputError(f"id: the key {id_} has expired or was revoked; create another one.")
    publish(context, *context.settings.broker_urls)


@contextmanager
def _changing(context: Context, namespace: str, id_: UUID) -> Iterator[tuple[Connection, int]]:
    with context.at(namespace), transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None or id_ not in {key.id for key in api_keys.of_namespace(db, tenant.id)}:
            raise NotFoundError(f"id: no key {id_} is in namespace {namespace!r}; see `ebb keys list`.")
        yield db, tenant.id


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
