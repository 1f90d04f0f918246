"""The system under load: all processes of `ebb up`, in a folder of their own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from api.up import servers
from api.up.home import Home

CHECKOUT = Path(__file__).parents[2]
UP_SECONDS = 180
SIGNS = {
    "maintenance": "--hostname=maintenance@",
    "worker": "--hostname=worker@",
    "beat": "workers beat",
    "flower": "workers flower",
    "api": "api.http",
    "redis": "-server 127.0.0.1:",
}
"""A part of each program's command that identifies it."""


@dataclass(frozen=True, slots=True)
class System:
    """A running Ebb: its addresses, folder and supervisor."""

    home: Path
    database_url: str
    redis_url: str
    api_url: str
    supervisor: int
    log_sizes: Mapping[str, int]

    def programs(self) -> list[tuple[str, psutil.Process]]:
        """Return every process with its program's name; forked children are `NAME child`."""
        own = psutil.Process(self.supervisor)
        found = [("supervisor", own)]
        for program in own.children():
            name = _name(program)
            found.append((name, program))
            for child in program.children(recursive=True):
                with suppress(psutil.Error):  # it has just ended
                    found.append((f"{name} {_role(child)}".strip(), child))
        return found

    def logs(self) -> Iterator[tuple[str, str]]:
        """Yield each line of each program's log since the start was complete, with the program's name."""
        for log in sorted((self.home / "logs").glob("*.log")):
            said = log.read_bytes()[self.log_sizes.get(log.name, 0) :]
            for line in said.decode(errors="replace").splitlines():
                yield log.stem, line


@contextmanager
def started(keep: Path | None, workers: int, settings: Mapping[str, str]) -> Iterator[System]:
    """Run a whole Ebb for the duration of the block, in a folder that is removed afterwards unless it is to be kept."""
    home = keep or Path(tempfile.mkdtemp(prefix="ebb-soak-", dir="/tmp"))
    options = [f"--workers={workers}", f"--port={servers.free_port()}"]
    try:
        yield _system(home, _ebb(home, settings, "up", "--detach", *options))
    finally:
        _ebb(home, settings, "down")
        if keep is None:
            shutil.rmtree(home)


def _ebb(home: Path, settings: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("EBB_")}
    paths = [str(CHECKOUT), outside.get("PYTHONPATH", "")]
    environment = outside | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | dict(settings)
    command = [sys.executable, "-m", "api.cli", *arguments, f"--home={home}", "--json"]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True, timeout=UP_SECONDS, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _system(home: Path, status: Mapping[str, Any]) -> System:
    pids = {process["name"]: process["pid"] for process in status["processes"]}
    sizes = {log.name: log.stat().st_size for log in (home / "logs").glob("*.log")}
    state = Home(home).running()
    assert state is not None
    return System(home, state.database_url, state.redis_url, state.api_url, pids["supervisor"], sizes)


def _name(program: psutil.Process) -> str:
    """Return a program's name as `ebb status` shows it, from its command."""
    command = " ".join(program.cmdline())
    return next((name for name, sign in SIGNS.items() if sign in command), "postgres")


def _role(child: psutil.Process) -> str:
    """Return the role of a child process, which PostgreSQL shows in its title."""
    said = " ".join(child.cmdline())
    if not said.startswith("postgres: "):
        return "child"
    words = said.removeprefix("postgres: ").split()
    return "backend" if len(words) > 2 and words[0] == "postgres" else " ".join(words[:2])
