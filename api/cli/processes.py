"""`ebb worker`, `beat`, `flower`, `api` and `mcp`: start one process of the system."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import output
from api.cli.connection import NamespaceName, client, configured, located

if TYPE_CHECKING:
    from api.processes import Process
    from workers.settings import Settings


def worker(
    queues: Annotated[
        str, typer.Option(help="Which queues, with commas: `recall`, `store`, `maintenance`.")
    ] = "recall,store",
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Child processes; else one a core, at least 2.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The worker's name on this machine; else one of its own.")] = None,
    home: output.HomeFolder = None,
) -> None:
    """Start another worker, for the servers of EBB_DATABASE_URL and EBB_REDIS_URL or of the running home."""
    from api import processes  # noqa: PLC0415

    _become(processes.worker(queues, concurrency or cores(), name or f"worker-{os.getpid()}"), located(home))


def beat(
    schedule: Annotated[
        Path | None, typer.Option(help="File that says when what was sent; else `beat/schedule` at the home.")
    ] = None,
    home: output.HomeFolder = None,
) -> None:
    """Start beat, which sends scheduled tasks; run exactly one per system."""
    from api import processes  # noqa: PLC0415
    from api.up.home import Home  # noqa: PLC0415
    from workers.storage import schema  # noqa: PLC0415

    settings = located(home)
    schema.verify_at(settings.database_url, settings.shards)
    file = schedule or Home.at(settings.home).beat / "schedule"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _become(processes.beat(file), settings)


def flower(
    address: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="At which port.")] = 5555,
    home: output.HomeFolder = None,
) -> None:
    """Start Flower, which shows workers and tasks; FLOWER_BASIC_AUTH=user:password protects it.

    FLOWER_BASIC_AUTH_FILE may name a file that contains this.
    """
    from api import processes  # noqa: PLC0415

    settings = configured(home)  # Flower only needs Redis
    login = os.environ.get("FLOWER_BASIC_AUTH_FILE")
    if login:
        os.environ.setdefault("FLOWER_BASIC_AUTH", Path(login).read_text(encoding="utf-8").strip())
    _become(processes.flower(address, port), settings if settings.redis_url else located(home))


def api(
    host: Annotated[str | None, typer.Option(help="Where it listens; else EBB_HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="At which port; else EBB_PORT.")] = None,
    home: output.HomeFolder = None,
) -> None:
    """Start the HTTP API, with the dashboard and MCP."""
    from api import processes  # noqa: PLC0415

    settings = located(home)
    _become(processes.api(host or settings.host, port or settings.port), settings)


def mcp(namespace: NamespaceName = None, home: output.HomeFolder = None) -> None:
    """Serve memory to an agent over MCP on stdin and stdout; the system must be up."""
    from api.mcp.server import serve_stdio  # noqa: PLC0415 - the SDK is slow to load
    from api.mcp.tool import Opened  # noqa: PLC0415

    with client(home, namespace) as memory:
        serve_stdio(lambda _request, _scope: Opened(memory))


def cores() -> int:
    """Return the number of child processes for this machine; at least two, so that a long task blocks no other."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, usable)


def _become(process: "Process", settings: "Settings") -> None:
    urls = {"EBB_DATABASE_URL": settings.database_url, "EBB_REDIS_URL": settings.redis_url}
    process.replace_this(urls)


COMMANDS: dict[str, Callable[..., None]] = {"worker": worker, "beat": beat, "flower": flower, "api": api, "mcp": mcp}
