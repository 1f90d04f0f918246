"""The broker's URL: a Redis, a Redis with TLS, or the primary of Sentinels.

- `redis://:password@host:6379/0`
- `rediss://:password@host:6380/0?ssl_ca_certs=/etc/ssl/redis.pem`: with TLS; the server's certificate is verified
  unless `ssl_cert_reqs=none` is given
- `sentinel://:password@host-a:26379,host-b:26379,host-c:26379/0?master_name=mymaster`: with the password of Redis;
  `sentinel_username` and `sentinel_password` are for the Sentinels

The number is the database for messages; results are in the next one.
"""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlunsplit

RESULTS_AFTER = 1
BETWEEN = re.compile(r"[,\s]+(?=[a-z+]+://)")
REDIS_PORT, SENTINEL_PORT = 6379, 26379
SENTINEL_SECONDS = 2.0
"""Timeout after which the next Sentinel is asked; one on a lost host does not answer at all."""

_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPALIVE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
KEEPALIVE: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {getattr(socket, name): of for name, of in _ALIVE.items() if hasattr(socket, name)},
}
"""redis-py's options for idle connections: firewalls and NAT often drop one that sends nothing for a minute, and the
next command on it would get no answer. The first option has another name on macOS."""

LAST_PORT = 65_535
SENTINEL_OPTIONS = {"master_name", "sentinel_username", "sentinel_password"}
ODD = re.compile(r"#|[][;\t\r\n](?=[^/?]*@)")
"""Characters that redis-py, kombu and Celery read differently: `#` anywhere, the others in a password."""

HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s,:/\[\]]+)(?::(\d{1,5}))?")
NO_CLUSTER = "which Celery's transport cannot use, because its keys would be spread over several servers"
FORMS = (
    "give redis://:password@host:6379/0, rediss:// for TLS, or "
    "sentinel://:password@host-a:26379,host-b:26379/0?master_name=NAME"
)

URL = re.compile(r"(?:([^:/?]+):)?(?://([^/?]*))?([^?]*)(?:\?(.*))?", re.DOTALL)
"""The parts of a URL without a fragment (RFC 3986, appendix B)."""


@dataclass(frozen=True, slots=True)
class Sentinels:
    """Sentinels, with the credentials of the primary and of the Sentinels."""

    hosts: tuple[tuple[str, int], ...]
    master_name: str
    database: int
    username: str | None
    password: str | None
    credentials: dict[str, str]
    """`username` and `password` of the Sentinels, if any."""

    def options(self) -> dict[str, Any]:
        """Return redis-py's options of connections to the Sentinels."""
        return {**self.credentials, "socket_connect_timeout": SENTINEL_SECONDS, "socket_timeout": SENTINEL_SECONDS}


def check(redis_url: str) -> None:
    """Validate a URL; the error does not contain it, as it may have a password.

    Raises:
        ValueError: the URL is not supported; the message says what to give instead.
    """
    parts = parts_of(redis_url)
    host = HOST.fullmatch(_hosts(parts) or "localhost")
    if "cluster" in parts.scheme:
        raise ValueError(f"is that of a Redis Cluster, {NO_CLUSTER}; {FORMS}")
    if odd := ODD.search(redis_url):
        raise ValueError(f"has {odd[0]!r}, which is {quote(odd[0])} in a password; {FORMS}")
    if parts.scheme not in {"redis", "rediss", "sentinel"} or not re.fullmatch(r"(/\d*)?", parts.path):
        raise ValueError(f"is no address of a Redis; {FORMS}")
    if parts.scheme == "sentinel":
        sentinels(redis_url)
    elif host is None or int(host[2] or 0) > LAST_PORT:
        raise ValueError(f"names no single host; {FORMS}")


def is_same(one: str, other: str) -> bool:
    """Return whether two URLs name the same database of the same Redis, with the same credentials and options."""
    try:
        return one == other or _meaning(one) == _meaning(other)
    except ValueError:
        return False


def _meaning(redis_url: str) -> tuple[Any, ...]:
    """Return what a URL names, with defaults in place of what it leaves out; of Sentinels, the URL itself.

    Raises:
        ValueError: the URL is not supported, see `check`.
    """
    check(redis_url)
    parts = parts_of(redis_url)
    host = HOST.fullmatch(_hosts(parts) or "localhost")
    if parts.scheme == "sentinel" or host is None:
        return (redis_url,)
    account = unquote(parts.username or ""), unquote(parts.password or "")
    place = host[1].lower(), int(host[2] or REDIS_PORT), _database(parts)
    return (parts.scheme, *account, *place, dict(parse_qsl(parts.query)))


def split(redis_urls: str) -> list[str]:
    """Return URLs that are separated by commas or spaces; one may name several hosts."""
    return [one for one in BETWEEN.split(redis_urls.strip()) if one]


def number_of(namespace: str, count: int) -> int:
    """Return which of so many shards, or groups of shards, a new namespace is on: by a hash, so all processes agree."""
    return int.from_bytes(sha256(namespace.encode()).digest()[:8]) % count


def of_namespace(redis_urls: Sequence[str], namespace: str) -> str:
    """Return the URL of the broker of a namespace's group of shards."""
    return redis_urls[number_of(namespace, len(redis_urls))]


def sentinels(redis_url: str) -> Sentinels | None:
    """Return the Sentinels of a URL, or None if it is of a Redis.

    Raises:
        ValueError: hosts or the primary's name are missing, or an option is unknown.
    """
    parts = parts_of(redis_url)
    if parts.scheme != "sentinel":
        return None
    options = dict(parse_qsl(parts.query))
    if unknown := sorted(options.keys() - SENTINEL_OPTIONS):
        shown = f" {unknown[0]}" if unknown[0].isidentifier() else ""  # else perhaps of a password with a ?
        raise ValueError(f"has an unknown option{shown}; {FORMS}")
    hosts = _addresses(parts)
    if not hosts or not options.get("master_name"):
        raise ValueError(f"needs hosts and master_name; {FORMS}")
    return Sentinels(
        hosts,
        options["master_name"],
        _database(parts),
        unquote(parts.username) if parts.username else None,
        unquote(parts.password) if parts.password else None,
        {name: options[f"sentinel_{name}"] for name in ("username", "password") if f"sentinel_{name}" in options},
    )


def _addresses(parts: SplitResult) -> tuple[tuple[str, int], ...]:
    """Return the hosts and ports of Sentinels; none if one of them is malformed."""
    found = [HOST.fullmatch(host) for host in _hosts(parts).split(",")]
    named = tuple((host[1].strip("[]"), int(host[2] or SENTINEL_PORT)) for host in found if host)
    return named if len(named) == len(found) else ()


def celery_configuration(redis_url: str) -> dict[str, Any]:
    """Return Celery's settings for broker and results.

    Raises:
        ValueError: the URL is not supported, see `check`.
    """
    check(redis_url)
    named = sentinels(redis_url)
    options: dict[str, Any] = {} if named is None else {"master_name": named.master_name}
    if named is not None:
        options["sentinel_kwargs"] = named.options()
    return {
        "broker_url": _celery_url(redis_url),
        "result_backend": _celery_url(database_after(redis_url, RESULTS_AFTER)),
        "broker_transport_options": options | KEEPALIVE,
        "result_backend_transport_options": options,
    }


def database_after(redis_url: str, distance: int) -> str:
    """Return the URL of another database of the same Redis."""
    parts = parts_of(redis_url)
    return urlunsplit(parts._replace(netloc=parts.netloc or "localhost", path=f"/{_database(parts) + distance}"))


def _celery_url(redis_url: str) -> str:
    """Return the URL in Celery's format: one for each Sentinel, and TLS with `ssl_cert_reqs`."""
    parts, named = parts_of(redis_url), sentinels(redis_url)
    if named is not None:
        account = parts.netloc.rpartition("@")[0]
        login = f"{account}@" if account else ""
        hosts = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in named.hosts)
        return ";".join(f"sentinel://{login}{host}/{named.database}" for host in hosts)
    if parts.scheme == "rediss":
        options = {"ssl_cert_reqs": "required"} | dict(parse_qsl(parts.query))
        return urlunsplit(parts._replace(netloc=parts.netloc or "localhost", query=urlencode(options, quote_via=quote)))
    return redis_url


def parts_of(url: str) -> SplitResult:
    """Return the parts of a URL; unlike `urlsplit` of newer Pythons it accepts several hosts with IPv6 among them."""
    scheme, netloc, path, query = URL.fullmatch(url).groups(default="")  # type: ignore[union-attr]  # fits any text
    return SplitResult(scheme.lower(), netloc, path, query, "")


def _hosts(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _database(parts: SplitResult) -> int:
    number = parts.path.strip("/")
    return int(number) if number else 0
