"""Runs the tests with the oldest versions of the packages that the system allows: `python -m tests.run_oldest FILE…`.

They are installed into a folder of their own, which goes first on the path of all processes. Warnings are no errors, as
old packages warn of newer ones.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".oldest"
PROJECTS = ("pyproject.toml", "api/clients/python/pyproject.toml")
OF_NEWEST = "tests/acceptance/test_golden.py::test_the_help_of_each_command_matches_the_golden_file"
"""The test of what depends on the version: how Typer writes the help."""

EXTRAS = ("embedded", "oauth", "openai", "otel", "tokens")


def oldest() -> list[str]:
    """Return the packages that the system, the library and the extras need, in the oldest version that fits all."""
    versions: dict[str, Version] = {}
    extras: dict[str, str] = {}
    for project in PROJECTS:
        given = tomllib.loads((ROOT / project).read_text(encoding="utf-8"))["project"]
        optional = given.get("optional-dependencies", {})
        for one in given["dependencies"] + [one for extra in EXTRAS for one in optional.get(extra, [])]:
            name, _, extra = one.split(">=")[0].partition("[")
            least = [Version(part.version) for part in Requirement(one).specifier if part.operator == ">="]
            if least:
                versions[name] = max(versions.get(name, least[0]), *least)
                extras[name] = f"[{extra}" if extra else ""
    return [f"{name}{extras[name]}=={version}" for name, version in versions.items()]


def main(files: list[str]) -> int:
    """Install them, and run the tests in these files, by default all; return the exit status."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(FOLDER), *oldest()]
    subprocess.run(pip, check=True)
    pytest = [sys.executable, "-m", "pytest", "-W", "ignore", "-m", "not deep"]
    pytest += ["--dist", "loadfile", "--numprocesses", "4", "--deselect", OF_NEWEST, *files]
    return subprocess.run(pytest, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(FOLDER)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
