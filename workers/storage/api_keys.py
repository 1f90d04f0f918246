"""API keys: the namespace and scopes of each; only digests of the keys are stored."""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from workers.storage.connection import Connection, fetch_all

ADD = """
    insert into api_keys (namespace, id, digest, label, scopes, created_at, expires_at)
    values (%(namespace)s, %(id)s, %(digest)s, %(label)s, %(scopes)s, %(created_at)s, %(expires_at)s)
    on conflict do nothing
"""

REVOKE = """
    update api_keys set revoked_at = %(now)s
    where namespace = %(namespace)s and id = %(id)s and revoked_at is null
"""

EXPIRE = """
    update api_keys set expires_at = %(ends)s
    where namespace = %(namespace)s and id = %(id)s and revoked_at is null
        and (expires_at is null or expires_at > %(now)s)
"""

ALL = """
    select api_keys.id, name as namespace, label, scopes, api_keys.created_at, revoked_at, expires_at, digest
    from api_keys join namespaces on namespaces.id = api_keys.namespace
"""
"""The keys of all namespaces, for the copy in Redis that the servers read."""

OF_NAMESPACE = f"""
    {ALL}
    where api_keys.namespace = %(namespace)s
    order by api_keys.created_at, api_keys.id
"""

PUBLISHING = 0x0EBB + 3
"""Advisory lock for copying the keys to Redis, so that an older copy never replaces a newer one."""

LOCK = "select pg_advisory_xact_lock(%(key)s)"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One API key, with its namespace, scopes, revocation and expiry."""

    id: UUID
    namespace: str
    label: str | None
    scopes: list[str]
    created_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None
    digest: bytes


def add(db: Connection, namespace: int, key: ApiKey) -> bool:
    """Add a key to a namespace, given with its id; return false if it was added before."""
    return db.execute(ADD, asdict(key) | {"namespace": namespace}).rowcount > 0


def revoke(db: Connection, namespace: int, id_: UUID, now: datetime) -> bool:
    """Revoke a key; return false if it is revoked already or does not belong to the namespace."""
    return db.execute(REVOKE, {"namespace": namespace, "id": id_, "now": now}).rowcount > 0


def expire(db: Connection, namespace: int, id_: UUID, ends: datetime | None, now: datetime) -> bool:
    """Set when a key expires; return false if it is revoked or has expired."""
    given = {"namespace": namespace, "id": id_, "ends": ends, "now": now}
    return db.execute(EXPIRE, given).rowcount > 0


def of_namespace(db: Connection, namespace: int) -> list[ApiKey]:
    """Return the keys of a namespace, including revoked ones, oldest first."""
    return fetch_all(db, ApiKey, OF_NAMESPACE, {"namespace": namespace})


def lock(db: Connection) -> None:
    """Keep others from publishing keys until the commit."""
    db.execute(LOCK, {"key": PUBLISHING})


def every(db: Connection) -> list[ApiKey]:
    """Return the keys of all namespaces."""
    return fetch_all(db, ApiKey, ALL)
