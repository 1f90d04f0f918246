"""Access tokens of external authorization servers: JWTs (RFC 9068), verified by their issuer's published keys."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, get_args
from urllib.parse import urlsplit

import httpx
import jwt
from ebb.contract.faults import show
from ebb.contract.values import LAST_INSTANT

from api.http.problems import RefusedError
from workers.coordination.key_ring import Scope
from workers.errors import InvalidInputError, SettingsError, UnavailableError
from workers.settings import Settings, is_safe_address
from workers.threads import within
from workers.validation import BRANCH, namespace_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by key pairs only: the issuer publishes the keys."""

OF_RSA = tuple(name for name in ALGORITHMS if name.startswith(("RS", "PS")))
"""Signatures by an RSA key that names no algorithm; the type and curve of other keys leave only one."""

NEEDED = ("iss", "aud", "exp", "sub")
LEEWAY_SECONDS = 30
FETCH_SECONDS = 3.0
ALL_SECONDS = 6.0
"""Limit for all requests of a fetch, however slowly their answers arrive."""

LONGEST_ANSWER = 1 << 20
"""Bytes of an answer with metadata or keys."""

WAIT_SECONDS = 0.5
"""Time that a token with an unknown key waits for another one's fetch; each holds one of few threads."""

PAUSE_SECONDS = 10.0
"""Time between two requests for keys, however many tokens name unknown ones."""

FRESH_SECONDS = 3_600.0
"""Age from which keys are fetched again, since an issuer may have withdrawn one."""

AGAIN_SECONDS = 60.0
"""Age of a failed fetch from which keys are fetched again."""

FAULTS = (
    httpx.HTTPError, httpx.InvalidURL, jwt.PyJWKSetError, TimeoutError,
    AttributeError, KeyError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Failures of a fetch: no answer, or one that is no metadata or no keys."""


Key: TypeAlias = "jwt.PyJWK | RSAPublicKey | None"
"""A key with its algorithm, an RSA key that names none, or no key."""


@dataclass(slots=True)
class Issuer:
    """An authorization server, with its signing keys by id."""

    url: str
    keys: dict[str, Key] = field(default_factory=dict)
    fetched_at: float = float("-inf")
    fault: str = ""
    lock: Lock = field(default_factory=Lock)

    def key(self, id_: str) -> Key:
        """Return the key with this id, fetched again if it is unknown or old.

        While one request fetches keys, known keys are returned at once. Requests with unknown keys, which anyone can
        send, wait briefly, and not at all after a failed fetch.

        Raises:
            UnavailableError: the key is not known, and the authorization server does not answer.
        """
        patience = 0 if id_ in self.keys or self.fault else WAIT_SECONDS
        if self._is_due(id_) and self.lock.acquire(timeout=patience):
            try:
                if self._is_due(id_):
                    self._refresh()
            finally:
                self.lock.release()
        return self._known(id_)

    def _refresh(self) -> None:
        """Fetch the keys; those of before stay if this fails."""
        try:
            self.keys, self.fault = within(ALL_SECONDS, self._fetch), ""
        except FAULTS as error:
            self.fault = f"{type(error).__name__}: {error}"
        self.fetched_at = time.monotonic()  # at the end, or those that waited would fetch one after the other

    def _is_due(self, id_: str) -> bool:
        age = time.monotonic() - self.fetched_at
        return age > (AGAIN_SECONDS if self.fault else FRESH_SECONDS) or (id_ not in self.keys and age > PAUSE_SECONDS)

    def _known(self, id_: str) -> Key:
        if id_ not in self.keys and (self.fault or self._is_due(id_)):
            fault = self.fault or "its server has not answered yet"
            raise UnavailableError(f"The keys of {self.url} could not be fetched: {fault}; try again later.")
        return self.keys.get(id_)

    def _fetch(self) -> dict[str, Key]:
        with httpx.Client(timeout=FETCH_SECONDS) as client:
            read = partial(_read, client, until=time.monotonic() + ALL_SECONDS)
            metadata = next(_documents(read, self.url), None)
            if metadata is None:
                raise ValueError("it publishes no metadata in which it is the issuer")
            place = metadata["jwks_uri"]
            if not is_safe_address(place):
                raise ValueError(f"jwks_uri: {show(place)} is no address of https; its keys could be forged")
            found = read(place).raise_for_status().json()
        keys = jwt.PyJWKSet.from_dict(found).keys
        named = {str(one.get("kid")) for one in found["keys"] if isinstance(one, dict) and one.get("alg")}
        return {
            key.key_id: key.key if key.key_type == "RSA" and key.key_id not in named else key
            for key in keys
            if isinstance(key.key_id, str)
        }


def _read(client: httpx.Client, url: str, until: float) -> httpx.Response:
    """Return the answer of an authorization server, which may neither be endless nor come too slowly.

    Raises:
        ValueError: it is longer than `LONGEST_ANSWER`, or not there at `until` on the monotonic clock.
    """
    body = bytearray()
    with client.stream("GET", url) as answer:
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > LONGEST_ANSWER:
                raise ValueError(f"{url} answered with more than {LONGEST_ANSWER >> 20} MiB")
            if time.monotonic() > until:
                raise ValueError(f"{url} answers too slowly")
    return httpx.Response(answer.status_code, content=bytes(body), request=answer.request)


def _documents(read: Callable[[str], httpx.Response], issuer: str) -> Iterator[dict[str, Any]]:
    """Yield the issuer's metadata where it publishes some: as RFC 8414 says, or as OpenID Connect does."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    for place in (
        f"/.well-known/oauth-authorization-server{path}",
        f"/.well-known/openid-configuration{path}",
        f"{path}/.well-known/openid-configuration",
    ):
        answer = read(f"{parts.scheme}://{parts.netloc}{place}")
        with suppress(ValueError):  # a page
            found = answer.json() if answer.is_success else None
            if isinstance(found, dict) and found.get("issuer") == issuer:
                yield found


def _own_name(given: str) -> str:
    """Return the name of a namespace that is no branch.

    Raises:
        InvalidInputError: it is none.
    """
    name = namespace_name(given)
    if BRANCH.fullmatch(name):
        raise InvalidInputError(f"{name!r} is the name of a branch, which is opened with a key.")
    return name


@dataclass(frozen=True, slots=True)
class Granted:
    """What a token permits: scopes on one namespace, until `ends` (epoch seconds); `subject` is whose it is."""

    subject: str
    namespace: str
    scopes: frozenset[str]
    ends: float


class Tokens:
    """Verifies the tokens of the issuers that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._issuers = {url: Issuer(url) for url in settings.oauth_issuer_urls}
        if self._issuers and "ES256" not in jwt.algorithms.get_default_algorithms():
            raise SettingsError("EBB_OAUTH_ISSUERS needs the extra `oauth`: install ebb-server[oauth].")

    def verify(self, token: str) -> Granted:
        """Return what a token permits.

        Raises:
            RefusedError: it is not valid here, or names no namespace, or a branch.
            UnavailableError: its issuer's keys could not be fetched.
        """
        try:
            claims = self._claims(token)
        except jwt.PyJWTError as error:
            raise RefusedError(HTTPStatus.UNAUTHORIZED, f"This token is not valid: {show(str(error))[1:-1]}.") from None
        name = claims.get(self._settings.oauth_namespace_claim)
        try:
            namespace, ends = _own_name(str(name or "")), min(int(claims["exp"]), LAST_INSTANT.timestamp())
            return Granted(str(claims["sub"]), namespace, self._scopes(claims), ends)
        except InvalidInputError as error:
            claim = self._settings.oauth_namespace_claim
            raise RefusedError(HTTPStatus.FORBIDDEN, f"The claim {claim!r} of this token: {error}") from None

    def _claims(self, token: str) -> dict[str, Any]:
        unverified = jwt.decode(token, options={"verify_signature": False})
        issuer = self._issuers.get(str(unverified.get("iss")))
        if issuer is None:
            raise jwt.InvalidIssuerError("its issuer is not one of EBB_OAUTH_ISSUERS")
        key = issuer.key(str(jwt.get_unverified_header(token).get("kid")))
        if key is None:
            raise jwt.InvalidKeyError("its issuer publishes no key with this id")
        audience = self._settings.oauth_audience.rstrip("/")
        return jwt.decode(
            token,
            key,
            algorithms=ALGORITHMS if isinstance(key, jwt.PyJWK) else OF_RSA,
            audience=[audience, f"{audience}/"],
            issuer=issuer.url,
            leeway=LEEWAY_SECONDS,
            options={"require": list(NEEDED)},
        )

    def _scopes(self, claims: dict[str, Any]) -> frozenset[str]:
        given = claims.get("scope") or claims.get("scp")
        named = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        prefix = self._settings.oauth_scope_prefix
        return frozenset(one for one in get_args(Scope) if f"{prefix}{one}" in named)
