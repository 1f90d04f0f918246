"""Runs the tests of each framework's adapter with the newest release of the framework.

Each is installed into a folder of its own, which goes first on the path of its tests: the requirements of some exclude
each other, and those of others exclude what Ebb itself is tested with.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".frameworks"
PROGRAMS = ROOT / "tests" / "acceptance" / "test_programs_of_the_manual.py"
WITHOUT_FRAMEWORK = ("celery",)
"""Extras that Ebb itself is tested with."""

FOR_RECIPES = {"langgraph": ["langgraph"]}
"""What the recipe of a framework needs beside the extra."""


def extras() -> dict[str, list[str]]:
    """Return the requirements of each framework's extra."""
    project = tomllib.loads((ROOT / "api/clients/python/pyproject.toml").read_text(encoding="utf-8"))["project"]
    every: dict[str, list[str]] = project["optional-dependencies"]
    return {one: needs + FOR_RECIPES.get(one, []) for one, needs in every.items() if one not in WITHOUT_FRAMEWORK}


def tests_of(extra: str) -> Path:
    """Return the file with the tests of an extra."""
    return ROOT / "tests" / "acceptance" / f"test_framework_{extra.replace('-', '_')}.py"


def run(extra: str, needs: list[str]) -> int:
    """Install a framework, and run its tests and the program of its page; return the exit status."""
    folder = FOLDER / extra
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder), *needs]
    subprocess.run(pip, check=True)
    environment = os.environ | {"PYTHONPATH": str(folder), "EBB_TEST_FRAMEWORK": extra}
    chosen = f"{tests_of(extra).stem} or frameworks/{extra}"
    pytest = [sys.executable, "-m", "pytest", str(tests_of(extra)), str(PROGRAMS), "-m", "not deep", "-k", chosen]
    return subprocess.run(pytest, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    results = [run(extra, needs) for extra, needs in extras().items()]
    sys.exit(any(results))
