"""Access tokens of an authorization server: an MCP client finds it and gets one, and what is wrong with others."""

import base64
import hmac
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import anyio
import httpx2
import jwt
import pytest
from authorization_server import AuthorizationServer, authorization_server
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from ebb.contract.values import LAST_INSTANT
from live_api import make_key, serving
from live_system import LiveSystem
from mcp.client import Client as McpClient
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from api.http.problems import RefusedError
from api.http.tokens import Tokens
from api.up import servers
from workers.errors import SettingsError, UnavailableError
from workers.settings import Settings

pytestmark = pytest.mark.acceptance

USER = "mira@example.org"
CALLBACK = "http://127.0.0.1:1/callback"


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with authorization_server(USER) as server:
        yield server


@pytest.fixture(scope="module")
def audience(api: httpx2.Client) -> str:
    return f"{api.base_url}".rstrip("/") + "/mcp"


@pytest.fixture(scope="module")
def api(live: LiveSystem, issuer: AuthorizationServer) -> Iterator[httpx2.Client]:
    port = servers.free_port()
    audience = f"http://127.0.0.1:{port}/mcp"
    with serving(live, port, EBB_OAUTH_ISSUERS=issuer.url, EBB_OAUTH_AUDIENCE=audience) as client:
        yield client


class Storage:
    """Keeps what an MCP client was given, while it runs."""

    def __init__(self) -> None:
        self.token: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.token = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Follows the redirection of an authorization, as a user's browser would."""

    location = ""

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient(timeout=None) as client:
            self.location = (await client.get(url)).headers["location"]

    async def called_back(self) -> AuthorizationCodeResult:
        given = {name: values[0] for name, values in parse_qs(urlsplit(self.location).query).items()}
        return AuthorizationCodeResult(code=given["code"], state=given["state"])


@asynccontextmanager
async def signed_in(audience: str) -> AsyncIterator[McpClient]:
    """Open MCP for a client that registers, has its user sign in, and holds tokens while it runs."""
    browser = Browser()
    metadata = OAuthClientMetadata(client_name="tests", redirect_uris=[AnyUrl(CALLBACK)])
    auth = OAuthClientProvider(audience, metadata, Storage(), browser.open, browser.called_back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=None) as http,
        McpClient(streamable_http_client(audience, http_client=http)) as client,
    ):
        yield client


def test_an_mcp_client_finds_the_server_gets_a_token_and_uses_its_own_memory(audience: str, live: LiveSystem) -> None:
    async def remember() -> list[str]:
        async with signed_in(audience) as client:
            stored = await client.call_tool("store", {"text": "The spare key is under the flowerpot."})
            assert not stored.is_error, stored
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "recall" in anyio.run(remember)
    assert [text for _, text in live.facts(USER)] == ["The spare key is under the flowerpot."]


def test_an_mcp_client_renews_its_token_when_that_has_expired(
    audience: str, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "expires_in", 0)

    async def recall() -> None:
        async with signed_in(audience) as client:
            for _ in range(2):
                before = issuer.renewed
                found = await client.call_tool("recall", {"query": "flowerpot"})
                assert not found.is_error, found
                assert issuer.renewed > before

    anyio.run(recall)


def test_an_mcp_client_whose_token_only_reads_asks_for_more_when_it_writes(
    audience: str, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "granted", ["read"])
    monkeypatch.setattr(issuer, "asked", [])

    async def remember() -> None:
        async with signed_in(audience) as client:
            found = await client.call_tool("recall", {"query": "flowerpot"})
            assert not found.is_error, found
            asked = len(issuer.asked)
            stored = await client.call_tool("store", {"text": "The ladder is in the shed."})
            assert not stored.is_error, stored
            assert issuer.asked[asked:] == ["read write"]

    anyio.run(remember)


def called(api: httpx2.Client, token: str, method: str, params: Any = None, **headers: str) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    headers |= {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    return api.post("/mcp", json=message, headers=headers)


def test_a_call_beyond_a_tokens_scopes_is_refused_with_the_scopes_and_the_metadata(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    reads, writes = issuer.token(audience, "read"), issuer.token(audience, "write")
    store = {"name": "store", "arguments": {"text": "Tea."}}
    refused = called(api, reads, "tools/call", store)
    assert refused.status_code == 403
    where = f"{audience.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp"
    named = f'error="insufficient_scope", resource_metadata="{where}", scope="read write"'
    assert refused.headers["www-authenticate"] == f'Bearer realm="ebb", {named}'
    assert called(api, writes, "resources/read", {"uri": "ebb://entity/Mira"}).status_code == 403
    assert called(api, reads, "resources/read", {"uri": "ebb://entity/Mira"}).status_code == 200
    assert called(api, reads, "tools/list").status_code == 200
    assert called(api, reads, "tools/call", {"name": ["store"]}).status_code == 200


def test_the_metadata_names_the_server_and_a_challenge_leads_to_it(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    refused = api.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert refused.status_code == 401
    where = refused.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    said = api.get(where).json()
    assert (said["authorization_servers"], said["resource"]) == ([issuer.url], audience)


def recalled(api: httpx2.Client, token: str, **headers: str) -> httpx2.Response:
    return api.post("/memory/recall", json={"query": "key"}, headers={"authorization": f"Bearer {token}", **headers})


def test_a_token_opens_the_other_routes_with_its_scopes_for_its_namespace(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    token = issuer.token(audience, "read offline_access")
    assert recalled(api, token).status_code == 200
    assert recalled(api, token, **{"x-ebb-namespace": USER}).status_code == 200
    assert recalled(api, token, **{"x-ebb-namespace": "other"}).status_code == 403
    refused = api.post("/memory/facts", json={"text": "Tea."}, headers={"authorization": f"Bearer {token}"})
    assert refused.status_code == 403
    assert 'error="insufficient_scope", scope="write"' in refused.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("scopes", "reads", "writes"),
    [("read write", 403, 403), ("system", 403, 403), ("read system", 200, 403), ("read write system", 200, 200)],
)
def test_a_token_for_all_namespaces_reads_and_writes_in_another_one_by_its_scopes(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str, scopes: str, reads: int, writes: int
) -> None:
    token, there = issuer.token(audience, scopes), {"x-ebb-namespace": "other"}
    headers = {"authorization": f"Bearer {token}", **there}
    assert recalled(api, token, **there).status_code == reads
    assert called(api, token, "resources/read", {"uri": "ebb://entity/Mira"}, **there).status_code == reads
    stored = {"text": "The kettle is new."}
    assert called(api, token, "tools/call", {"name": "store", "arguments": stored}, **there).status_code == writes
    assert api.post("/memory/facts", json=stored, headers=headers).status_code == writes


def test_no_key_that_is_made_with_a_token_outlasts_it(
    live: LiveSystem, api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    def bearer(days: int) -> dict[str, str]:
        ends = int(time.time()) + days * 86_400
        return {"authorization": f"Bearer {issuer.token(audience, 'read write admin', exp=ends)}"}

    known = live.ebb_json("keys", "create", "--namespace", USER)["id"]
    with httpx2.Client(base_url=api.base_url, headers=bearer(20), timeout=None) as client:
        page = client.get("/dashboard/keys").text.partition("Create a key")[2]
        form = dict(re.findall(r'name="(token|id)" value="([\w-]+)"', page)) | {"scopes": "read"}
        for path, done in (("/dashboard/keys", 200), (f"/dashboard/keys/{known}/expire", 303)):
            for expires, status in (("", 403), ("30", 403), ("7", done)):
                answer = client.post(path, data=form | {"expires": expires})
                assert (answer.status_code, "your own access token ends" in answer.text) == (status, status == 403)
        client.headers.update(bearer(1))
        assert "no key may end after that" in client.get("/dashboard/keys").text
        refused = client.post("/dashboard/keys", data=form | {"id": str(uuid4()), "expires": "7"})
        assert (refused.status_code, "ebb keys create" in refused.text) == (403, True)


def test_a_token_opens_no_session_of_the_dashboard_whose_form_takes_keys(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    answer = api.post("/dashboard/sign-in", data={"key": issuer.token(audience, "read")})
    assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)


def test_keys_still_open_the_api(live: LiveSystem, api: httpx2.Client) -> None:
    key = make_key(live, "with-a-key", "read")
    assert api.post("/memory/recall", json={"query": "key"}, headers=key).status_code == 200


def coded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unsigned(token: str) -> str:
    header = coded(json.dumps({"alg": "none", "kid": "first"}).encode())
    return f"{header}.{token.split('.')[1]}."


def with_half_a_character(server: AuthorizationServer, audience: str) -> str:
    """Return a token whose header names an extension that no answer can quote as it is."""
    header = coded(json.dumps({"alg": "ES256", "kid": server.key_id, "crit": ["\ud800"]}).encode())
    return f"{header}.{server.token(audience).partition('.')[2]}"


def by_public_key(server: AuthorizationServer, audience: str) -> str:
    """Return a token whose secret is the issuer's public key, as a verifier takes it that trusts the header."""
    public = server.private.public_key()
    key = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = {"alg": "HS256", "kid": server.key_id}
    signed = f"{coded(json.dumps(header).encode())}.{server.token(audience).split('.')[1]}"
    return f"{signed}.{coded(hmac.digest(key, signed.encode(), 'sha256'))}"


def by_another(server: AuthorizationServer, audience: str) -> str:
    claims = jwt.decode(server.token(audience), options={"verify_signature": False})
    return jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", {"kid": server.key_id})


WRONG: dict[str, Callable[[AuthorizationServer, str], str]] = {
    "for another resource": lambda server, _: server.token("https://elsewhere.example.org/mcp"),
    "expired": lambda server, audience: server.token(audience, exp=int(time.time()) - 120),
    "not valid yet": lambda server, audience: server.token(audience, nbf=int(time.time()) + 120),
    "without end": lambda server, audience: server.token(audience, exp=None),
    "of another issuer": lambda server, audience: server.token(audience, iss="https://elsewhere.example.org"),
    "signed by another": by_another,
    "signed by the public key": by_public_key,
    "unsigned": lambda server, audience: unsigned(server.token(audience)),
    "cut off": lambda server, audience: server.token(audience)[:-8],
    "with half a character": with_half_a_character,
    "no JWT": lambda _, __: "eyJ.x.y",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_token_that_is_wrong_is_refused(
    what: str, api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    refused = recalled(api, WRONG[what](issuer, audience))
    assert refused.status_code == 401, refused.text
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


def test_a_token_whose_subject_is_no_name_of_a_namespace_is_refused(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    assert recalled(api, issuer.token(audience, sub="a|b")).status_code == 403


def test_a_token_for_a_branch_is_refused_before_there_is_one(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    """Its user could have chosen the name that a copy of another namespace will have."""
    refused = recalled(api, issuer.token(audience, sub="mira-older-365d"))
    assert refused.status_code == 403
    assert "'mira-older-365d' is the name of a branch" in refused.json()["detail"]
    assert recalled(api, issuer.token(audience, sub="mira-older")).status_code == 200


def test_many_tokens_with_unknown_keys_cause_few_requests_for_keys(
    api: httpx2.Client, issuer: AuthorizationServer, audience: str
) -> None:
    before = issuer.fetched
    for number in range(20):
        token = jwt.encode({"iss": issuer.url, "aud": audience}, issuer.private, "ES256", {"kid": f"unknown-{number}"})
        assert recalled(api, token).status_code == 401
    assert issuer.fetched - before <= 3


AUDIENCE = "https://memory.example.org/mcp"


def tokens_of(issuer: AuthorizationServer) -> Tokens:
    given = {"EBB_OAUTH_ISSUERS": issuer.url, "EBB_OAUTH_AUDIENCE": AUDIENCE}
    return Tokens(Settings.from_environment(given))


def test_pages_in_the_place_of_metadata_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with authorization_server(USER) as issuer:
        found = iter([b"<html>", b"[]", issuer.metadata()])
        monkeypatch.setattr(issuer, "metadata", lambda: next(found))
        assert tokens_of(issuer).verify(issuer.token(AUDIENCE)).subject == USER


@pytest.mark.parametrize("scope", [None, 5, {"read": True}, ["read", 5]])
def test_scopes_that_are_neither_text_nor_a_list_grant_nothing(issuer: AuthorizationServer, scope: Any) -> None:
    granted = tokens_of(issuer).verify(issuer.token(AUDIENCE, scope))
    assert granted.scopes == ({"read"} if isinstance(scope, list) else set())


def test_a_token_may_end_later_than_any_number_of_a_clock(issuer: AuthorizationServer) -> None:
    assert tokens_of(issuer).verify(issuer.token(AUDIENCE, exp=10**400)).ends == LAST_INSTANT.timestamp()


@pytest.mark.parametrize("metadata", [[], None, {"jwks_uri": 5}, {"jwks_uri": "http://[::1"}], ids=repr)
def test_a_valid_token_is_not_called_invalid_after_its_keys_could_not_be_fetched(
    monkeypatch: pytest.MonkeyPatch, metadata: Any
) -> None:
    with authorization_server(USER) as issuer:
        wrong = {"issuer": issuer.url} | metadata if isinstance(metadata, dict) else metadata
        monkeypatch.setattr(issuer, "metadata", lambda: wrong)
        tokens, token = tokens_of(issuer), issuer.token(AUDIENCE)
        for _ in range(2):
            with pytest.raises(UnavailableError, match="could not be fetched"):
                tokens.verify(token)


@pytest.mark.parametrize("metadata", [b"<html>", {"issuer": "https://elsewhere.example.org"}], ids=repr)
def test_metadata_of_no_issuer_or_another_one_is_named_as_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, metadata: Any
) -> None:
    with authorization_server(USER) as issuer:
        monkeypatch.setattr(issuer, "metadata", lambda: metadata)
        with pytest.raises(UnavailableError, match="publishes no metadata in which it is the issuer; try again later"):
            tokens_of(issuer).verify(issuer.token(AUDIENCE))


def test_keys_are_fetched_by_https_alone_as_the_metadata_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with authorization_server(USER) as issuer:
        wrong = issuer.metadata() | {"jwks_uri": "http://login.example.org/jwks"}
        monkeypatch.setattr(issuer, "metadata", lambda: wrong)
        with pytest.raises(UnavailableError, match="is no address of https; its keys could be forged"):
            tokens_of(issuer).verify(issuer.token(AUDIENCE))


@contextmanager
def hanging(issuer: AuthorizationServer, tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a token with an unknown key fetch keys from a server that hangs."""
    hangs, ends = threading.Event(), threading.Event()

    def jwks() -> dict[str, Any]:
        hangs.set()
        ends.wait()
        return {}

    monkeypatch.setattr(issuer, "jwks", jwks)
    issuer.rotate()
    waiting = threading.Thread(target=unavailable, args=(tokens, issuer.token(AUDIENCE)))
    waiting.start()
    hangs.wait()
    yield
    assert waiting.is_alive()
    ends.set()
    waiting.join()


@pytest.mark.parametrize("fresh_seconds", [3_600.0, 0.0])
def test_a_token_of_a_known_key_waits_for_no_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch, fresh_seconds: float
) -> None:
    with authorization_server(USER) as issuer:
        tokens, token = tokens_of(issuer), issuer.token(AUDIENCE)
        tokens.verify(token)
        monkeypatch.setattr("api.http.tokens.PAUSE_SECONDS", 0.0)
        monkeypatch.setattr("api.http.tokens.FRESH_SECONDS", fresh_seconds)
        with hanging(issuer, tokens, monkeypatch):
            tokens.verify(token)


def test_tokens_with_unknown_keys_are_refused_while_the_server_hangs_and_after_it_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("api.http.tokens.WAIT_SECONDS", 0.0)
    with authorization_server(USER) as issuer:
        tokens = tokens_of(issuer)
        tokens.verify(issuer.token(AUDIENCE))
        monkeypatch.setattr("api.http.tokens.PAUSE_SECONDS", 0.0)
        with hanging(issuer, tokens, monkeypatch):
            unavailable(tokens, issuer.token(AUDIENCE))
        monkeypatch.setattr("api.http.tokens.WAIT_SECONDS", None)
        with hanging(issuer, tokens, monkeypatch):
            unavailable(tokens, issuer.token(AUDIENCE))


def test_a_key_that_names_no_algorithm_verifies_by_all_of_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    private = {name: rsa.generate_private_key(65_537, 2_048) for name in ("any", "named")}
    private |= {"curve": ec.generate_private_key(ec.SECP384R1())}
    with authorization_server(USER) as issuer:
        makers = {"curve": jwt.algorithms.ECAlgorithm}
        jwks = [
            json.loads(makers.get(name, jwt.algorithms.RSAAlgorithm).to_jwk(key.public_key())) | {"kid": name}
            for name, key in private.items()
        ]
        jwks[1]["alg"] = "RS256"
        monkeypatch.setattr(issuer, "jwks", lambda: {"keys": [*jwks, {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"}]})
        tokens = tokens_of(issuer)

        def opens(name: str, algorithm: str, key: Any = None) -> bool:
            claims = jwt.decode(issuer.token(AUDIENCE), options={"verify_signature": False})
            token = jwt.encode(claims, key or private[name], algorithm, {"kid": name})
            try:
                return tokens.verify(token).subject == USER
            except RefusedError:
                return False

        assert [opens("any", one) for one in ("RS256", "RS512", "PS256")] == [True] * 3
        assert [opens("named", one) for one in ("RS256", "RS512", "PS256")] == [True, False, False]
        assert opens("curve", "ES384")
        assert not opens("any", "ES256", issuer.private)
        assert not opens("secret", "HS256", "secret" * 8)


def test_a_withdrawn_key_opens_nothing_soon_after_the_issuer_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with authorization_server(USER) as issuer:
        tokens, token = tokens_of(issuer), issuer.token(AUDIENCE)
        tokens.verify(token)
        with monkeypatch.context() as away:
            away.setattr("api.http.tokens.FRESH_SECONDS", 0.0)
            away.setattr(issuer, "jwks", dict)
            tokens.verify(token)
        issuer.rotate()
        monkeypatch.setattr("api.http.tokens.AGAIN_SECONDS", 0.0)
        with pytest.raises(RefusedError, match="publishes no key with this id"):
            tokens.verify(token)


def test_fetching_keys_ends_however_slowly_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.http.tokens.FETCH_SECONDS", None)  # as if each read was quick enough
    monkeypatch.setattr("api.http.tokens.ALL_SECONDS", 0.1)
    ends = threading.Event()
    with authorization_server(USER) as issuer:
        monkeypatch.setattr(issuer, "jwks", lambda: {"keys": [ends.wait()]})
        with pytest.raises(UnavailableError, match="TimeoutError"):
            tokens_of(issuer).verify(issuer.token(AUDIENCE))
        ends.set()


def test_an_answer_with_keys_is_not_read_beyond_a_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    with authorization_server(USER) as issuer:
        known = issuer.jwks()
        monkeypatch.setattr(issuer, "jwks", lambda: {"much": "x" * 2_000_000} | known)
        with pytest.raises(UnavailableError, match="answered with more than 1 MiB; try again later"):
            tokens_of(issuer).verify(issuer.token(AUDIENCE))


def unavailable(tokens: Tokens, token: str) -> None:
    with pytest.raises(UnavailableError, match="could not be fetched"):
        tokens.verify(token)


def refused_settings(**settings: Any) -> str:
    with pytest.raises(SettingsError) as error:
        Settings.from_environment({f"EBB_{name}": value for name, value in settings.items()})
    return str(error.value)


def test_settings_need_an_audience_and_an_issuer_by_https() -> None:
    assert "EBB_OAUTH_AUDIENCE" in refused_settings(OAUTH_ISSUERS="https://login.example.org")
    assert "https" in refused_settings(OAUTH_ISSUERS="http://login.example.org", OAUTH_AUDIENCE="x")
