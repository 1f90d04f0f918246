"""API keys for the HTTP API: create, list, expire, revoke and publish."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from redis.exceptions import RedisError
from uuid_utils.compat import uuid7

from workers.context import Context
from workers.coordination import key_ring
from workers.coordination.key_ring import LONGEST_LABEL, SCOPES, Grant
from workers.coordination.redis import own_keys
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.storage import api_keys, namespaces, shards
from workers.storage.api_keys import ApiKey
from workers.storage.connection import Connection, on_shard_of, reading, transaction

FOLLOWS = "the Redis of group {} does not answer; that group gets it within a minute of its return"


class UnpublishedError(UnavailableError):
    """A change of a key is in the database, but not in the Redis of every group."""


@dataclass(frozen=True, slots=True)
class Added:
    """Whether a key was added, and which groups do not know it yet, if any."""

    added: bool
    unpublished: str | None


@dataclass(frozen=True, slots=True)
class Created:
    """A new key, which is shown only once, and which groups do not know it yet, if any."""

    id: UUID
    key: str
    unpublished: str | None


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
        InvalidInputError: a scope is unknown, there is none, the label is too long, or the expiry is past.
    """
    id_, key = uuid7(), key_ring.new_key()
    done = add(context, ApiKey(id_, namespace, label, list(scopes), now, None, ends, key_ring.digest(key)))
    return Created(id_, key, done.unpublished)


def check_label(label: str | None) -> None:
    """Refuse the label of a key that is too long.

    Raises:
        InvalidInputError: it has more than `LONGEST_LABEL` characters.
    """
    if label is not None and len(label) > LONGEST_LABEL:
        raise InvalidInputError(f"label: has {len(label)} characters, more than the limit of {LONGEST_LABEL}.")


def add(context: Context, key: ApiKey) -> Added:
    """Add a key by its digest, unless another one has this id.

    Raises:
        InvalidInputError: a scope is unknown, there is none, the label is too long, or the expiry is past.
    """
    _check_end(key.expires_at, key.created_at)
    check_label(key.label)
    wanted: list[str] = [scope for scope in SCOPES if scope in key.scopes]
    if not wanted or len(wanted) != len(set(key.scopes)):
        raise InvalidInputError(
            f"scope: {', '.join(key.scopes) or 'none'} is not allowed; give some of {', '.join(SCOPES)}."
        )
    with context.at(key.namespace), transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, key.namespace)
        added = api_keys.add(db, tenant.id, replace(key, scopes=wanted))
        added = added or (key.id, key.digest) in {(one.id, one.digest) for one in api_keys.of_namespace(db, tenant.id)}
    return Added(added, publish_everywhere(context))


def _check_end(ends: datetime | None, now: datetime) -> None:
    if ends is not None and ends <= now:
        raise InvalidInputError(f"expires: {ends.isoformat()} is over; give a time to come, such as 90d.")


def of_namespace(context: Context, namespace: str) -> list[ApiKey]:
    """Return the keys of a namespace, including revoked ones, oldest first."""
    with context.at(namespace), transaction(context.database_url) as db:
        return api_keys.of_namespace(db, namespaces.id_of(db, namespace))


def revoke(context: Context, namespace: str, id_: UUID, now: datetime) -> bool:
    """Revoke a key at once; return false if it was revoked before.

    Raises:
        NotFoundError: the namespace has no such key.
        UnpublishedError: it is revoked, but the Redis of a group does not answer.
    """
    with _changing(context, namespace, id_) as (db, tenant):
        revoked = api_keys.revoke(db, tenant, id_, now)
    _publish_change(context, f"The key {id_} is revoked in the database")
    return revoked


def expire(context: Context, namespace: str, id_: UUID, ends: datetime | None, now: datetime) -> None:
    """Set when a key expires; None is never.

    Raises:
        InvalidInputError: the expiry is past, or the key has expired or was revoked, which stays so.
        NotFoundError: the namespace has no such key.
        UnpublishedError: the expiry is set, but the Redis of a group does not answer.
    """
    _check_end(ends, now)
    with _changing(context, namespace, id_) as (db, tenant):
        if not api_keys.expire(db, tenant, id_, ends, now):
            raise InvalidInputError(f"id: the key {id_} has expired or was revoked; create another one.")
    _publish_change(context, f"The expiry of the key {id_} is set in the database")


@contextmanager
def _changing(context: Context, namespace: str, id_: UUID) -> Iterator[tuple[Connection, int]]:
    with context.at(namespace), transaction(context.database_url) as db:
        tenant = namespaces.id_of(db, namespace)
        if id_ not in {key.id for key in api_keys.of_namespace(db, tenant)}:
            raise NotFoundError(f"id: no key {id_} is in namespace {namespace!r}; see `ebb keys list`.")
        yield db, tenant


def publish(context: Context) -> int:
    """Copy all keys to the Redis of this process's group; return how many are not revoked.

    Raises:
        RedisError: it does not answer.
    """
    with _all_grants(context) as grants:
        _copy(context.settings.redis_url, grants)
    return sum(bool(grant.scopes) for grant in grants.values())


def publish_everywhere(context: Context) -> str | None:
    """Copy all keys to the Redis of every group; return which do not answer and when they follow, if any."""
    away = list[str]()
    with _all_grants(context) as grants:
        for number, url in enumerate(context.settings.broker_urls):
            try:
                _copy(url, grants)
            except RedisError:
                away.append(str(number))
    return FOLLOWS.format(" and ".join(away)) if away else None


def _publish_change(context: Context, done: str) -> None:
    if unpublished := publish_everywhere(context):
        raise UnpublishedError(f"{done}, but {unpublished}.")


@contextmanager
def _all_grants(context: Context) -> Iterator[dict[bytes, Grant]]:
    """Yield the grants by digest, while no other process publishes."""
    with transaction(context.database_url) as locked:
        api_keys.lock(locked)
        grants, before = _grants(context), None
        # each node of Citus has a snapshot of its own, so a move may be seen in part
        while namespaces.is_on_citus(locked) and grants != before:
            grants, before = _grants(context), grants
        yield grants


def _grants(context: Context) -> dict[bytes, Grant]:
    """Return the grants by digest.

    What a move that was killed left on another shard than the directory's is not among them.
    """
    found: list[tuple[int, ApiKey]] = []
    # one snapshot of all shards: a namespace that moves meanwhile is on one of them
    with context.at(0), reading(context.database_url) as db:
        for number in context.each_shard():
            with on_shard_of(db, number):
                found += [(number, key) for key in api_keys.every(db)]
        with on_shard_of(db, 0):
            places = shards.directory(db, {key.namespace for _, key in found})
    return {
        key.digest: _grant(key)
        for number, key in found
        if " " not in key.namespace and places.get(key.namespace, 0) == number
    }


def _copy(redis_url: str, grants: Mapping[bytes, Grant]) -> None:
    with own_keys(redis_url) as redis:
        key_ring.copy(redis, grants)


def _grant(key: ApiKey) -> Grant:
    ends = None if key.expires_at is None else key.expires_at.timestamp()
    return Grant(str(key.id), key.namespace, () if key.revoked_at else tuple(key.scopes), ends, key.label)
