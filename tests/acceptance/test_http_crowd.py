"""The API under load: generated requests to every route, and fifty clients at once."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from live_api import serving
from live_system import LiveSystem
from made_up import DEEP, FUZZ, examples

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
ANSWER_SECONDS = 600
"""Time limit for an answer on a busy machine; the library's own is 10 seconds."""
CONFIGURATION = f"""
request-timeout = {ANSWER_SECONDS}
[parameters]
"query.timeout" = 60
"header.X-Ebb-Namespace" = "made-up"
"""
"""A deadline of milliseconds is answered by 504, as documented, which would count as a fault."""

PHASES = "examples,coverage,fuzzing" if DEEP or FUZZ else "examples,fuzzing"
"""The second phase tries every bound of every field, some thousand requests."""

CLIENTS = 50
ROUNDS = 3 if DEEP else 1


@pytest.fixture(scope="module")
def served(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


def test_no_generated_request_is_answered_by_a_server_error(served: httpx2.Client, tmp_path: Path) -> None:
    # The API makes the document for the first request, and Schemathesis waits for it for ten seconds at most.
    routes = [way for path in served.get("/openapi.json").json()["paths"].values() for way in path]
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(tmp_path / "schemathesis.toml"), "run"]
    command += [f"{served.base_url}/openapi.json", "--checks", CHECKS]
    command += ["--max-examples", str(examples(30, few=3).max_examples), "--seed", str(FUZZ or 1)]
    command += ["--phases", PHASES, "--generation-database", "none", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"Tested: {len(routes)}\n" in done.stdout
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_fifty_clients_at_once_each_get_their_own_answers_only(served: httpx2.Client) -> None:
    begin = threading.Barrier(CLIENTS)

    def client(number: int) -> None:
        word, namespace = f"word{number}x", f"crowd-{number}-{uuid4()}"
        headers = {"X-Ebb-Namespace": namespace}
        with httpx2.Client(base_url=served.base_url, headers=headers, timeout=None) as own:
            begin.wait()
            for turn in range(ROUNDS):
                text = f"{word} is remembered, number {turn}."
                assert own.post("/memory/facts", json={"text": text}).status_code == 201
                found = own.post("/memory/recall", json={"query": f"{word} {turn}", "limit": 50}).json()["results"]
                assert text in [one["text"] for one in found]
                assert all(one["text"].startswith(f"{word} ") for one in found)
            assert own.get("/memory/stats").json()["facts"] == ROUNDS

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(client, range(CLIENTS)))
