"""A small OAuth 2.1 server on loopback: metadata, registration, authorization codes with PKCE, and JWTs as tokens."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

PLACES = (
    "/.well-known/oauth-authorization-server/realm",
    "/.well-known/openid-configuration/realm",
    "/realm/.well-known/openid-configuration",
)
"""Where the metadata is looked for."""


class AuthorizationServer(ThreadingHTTPServer):
    """Approves every request for authorization at once, for one user."""

    daemon_threads = True

    def __init__(self, subject: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/realm"
        self.subject = subject
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.key_id = "first"
        self.codes: dict[str, dict[str, str]] = {}
        self.fetched = 0
        self.expires_in = 300
        self.renewals: dict[str, dict[str, str]] = {}
        self.renewed = 0
        self.granted: list[str] = []
        """Scopes of the next tokens by code, in place of those that are asked for."""
        self.asked: list[str] = []
        """Scopes that were asked for."""

    def rotate(self) -> None:
        """Sign with another key from now on."""
        self.private, self.key_id = ec.generate_private_key(ec.SECP256R1()), "second"

    def jwks(self) -> dict[str, Any]:
        self.fetched += 1
        key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key()))
        return {"keys": [key | {"kid": self.key_id, "use": "sig", "alg": "ES256"}]}

    def token(self, audience: str, scope: str = "read write", **claims: Any) -> str:
        now = int(time.time())
        own = {"iss": self.url, "sub": self.subject, "aud": audience, "exp": now + 300, "iat": now, "scope": scope}
        return jwt.encode(own | claims, self.private, "ES256", {"kid": self.key_id, "typ": "at+jwt"})

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }


class _Handler(BaseHTTPRequestHandler):
    server: AuthorizationServer

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        if path in PLACES:
            self._send(self.server.metadata())
        elif path == "/realm/jwks":
            self._send(self.server.jwks())
        elif path == "/realm/authorize":
            asked = {name: values[0] for name, values in parse_qs(query).items()}
            code = secrets.token_urlsafe()
            self.server.asked.append(asked["scope"])
            self.server.codes[code] = asked | ({"scope": self.server.granted.pop(0)} if self.server.granted else {})
            self._send(
                {}, 302, {"Location": f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"}
            )
        else:
            self._send({"error": "not_found"}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if urlsplit(self.path).path == "/realm/register":
            given = json.loads(body) | {"token_endpoint_auth_method": "none"}
            self._send(given | {"client_id": secrets.token_urlsafe(8)}, 201)
            return
        given = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self._granted(given)
        if asked is None:
            self._send({"error": "invalid_grant"}, 400)
            return
        renewal = secrets.token_urlsafe()
        self.server.renewals[renewal] = asked
        answer = {"token_type": "Bearer", "expires_in": self.server.expires_in, "scope": asked["scope"]}
        token = self.server.token(given["resource"], asked["scope"])
        self._send(answer | {"access_token": token, "refresh_token": renewal})

    def _granted(self, given: dict[str, str]) -> dict[str, str] | None:
        """Return the authorization of a code or of a refresh token, each of which is good once."""
        if given["grant_type"] == "refresh_token":
            self.server.renewed += 1
            return self.server.renewals.pop(given["refresh_token"], None)
        asked = self.server.codes.pop(given["code"])
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        return asked if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"] else None

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def _send(self, content: dict[str, Any] | bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def authorization_server(subject: str) -> Iterator[AuthorizationServer]:
    """Give a running server, which ends with the block."""
    with AuthorizationServer(subject) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
