"""A running API for the tests: a real process on its own port."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import prepared
from live_system import LiveSystem, eventually

from api.up import servers


@contextmanager
def serving(system: LiveSystem, port: int | None = None, **settings: str) -> Iterator[httpx2.Client]:
    """Yield a client of an API process, which ends with the block; the caller creates keys.

    A system shared by many modules has one process per combination of settings, which ends with the system.
    """
    with ExitStack() as block:
        chosen = tuple(sorted(settings.items()))
        if chosen in system.apis:
            url = system.apis[chosen]
        else:
            url = (system.until_stopped if system.shared else block).enter_context(_process(system, port, settings))
            if system.shared:
                system.apis[chosen] = url
        yield block.enter_context(httpx2.Client(base_url=url, timeout=None))


@contextmanager
def _process(system: LiveSystem, given: int | None, settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the URL of an API process, which ends with the block."""
    port = given or servers.free_port()
    url, environment = f"http://127.0.0.1:{port}", system.environment() | {"EBB_PORT": str(port), **settings}
    with (
        (system.folder / "api.log").open("ab") as log,
        prepared.start(["api.http"], environment, log) as api,
        httpx2.Client(base_url=url, timeout=None) as client,
    ):
        try:
            eventually(lambda: _answers(client, api), "the API answers")
            yield url
        finally:
            api.terminate()
            api.wait()


def _answers(client: httpx2.Client, api: prepared.Process) -> bool:
    assert api.poll() is None, "the API ended"
    try:
        return client.get("/health/live").status_code == 200
    except httpx2.TransportError:
        return False


def make_key(system: LiveSystem, namespace: str, *scopes: str) -> dict[str, str]:
    """Return the header of a new key."""
    options = [option for scope in scopes for option in ("--scope", scope)]
    made: dict[str, Any] = system.ebb_json("keys", "create", "--namespace", namespace, *options)
    return {"x-api-key": made["key"]}
