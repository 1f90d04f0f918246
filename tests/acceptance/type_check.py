"""mypy as users of the library run it, with one cache for all programs of the tests."""

import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

from live_system import ROOT

CACHE = ROOT / ".mypy_cache" / "programs"
OPTIONS = ("--strict", "--ignore-missing-imports", "--allow-untyped-decorators")
"""Those that programs with a framework need; the same for all programs, since mypy keeps no types for other ones."""


def mypy(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the programs in a folder outside of the repository, strictly.

    The cache keeps the types of libraries for the next run; test processes take turns, since mypy does not lock it.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "mypy", *OPTIONS, f"--cache-dir={CACHE}", "."]
    with CACHE.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
