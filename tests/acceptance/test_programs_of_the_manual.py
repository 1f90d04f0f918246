"""The programs of README and manual: mypy accepts them, and they run against a running system."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_api import serving
from live_system import ROOT, LiveSystem, clean_environment

pytestmark = pytest.mark.acceptance

PAGES = ("README.md", "api/docs/python.md", "api/docs/celery.md", "api/docs/frameworks.md")
RECIPES = tuple(f"api/docs/recipes/{name}.md" for name in ("chat", "fastapi", "celery"))
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MISSING = re.compile(r"No module named '(llama_index|pydantic_ai|agents|anthropic|crewai|google)\b")
HTTP, REDIS, RESULTS = "http://127.0.0.1:5556", "redis://localhost:6379/0", "redis://localhost:6379/1"
PROGRAMS = [
    (page, found) for page in (*PAGES, *RECIPES) for found in PROGRAM.findall((ROOT / page).read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def url(live: LiveSystem) -> Iterator[str]:
    with serving(live) as client:
        yield str(client.base_url).rstrip("/")


def test_mypy_finds_nothing_in_the_programs(tmp_path: Path) -> None:
    for number, (_, program) in enumerate(PROGRAMS):
        (tmp_path / f"program_{number}.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--allow-untyped-decorators", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("page", "program"), PROGRAMS, ids=[f"{page}-{i}" for i, (page, _) in enumerate(PROGRAMS)])
def test_a_program_runs(live: LiveSystem, url: str, page: str, program: str) -> None:
    here = program.replace(REDIS, live.redis_url).replace(RESULTS, f"{live.redis_url[:-1]}1").replace(HTTP, url)
    here = re.sub(r"Memory\((?=\)|namespace)", f'Memory("{url}", ', here).replace(", )", ")")
    done = subprocess.run(
        [sys.executable, "-c", here], env=clean_environment({}), capture_output=True, text=True, check=False
    )
    if missing := MISSING.search(done.stderr):
        pytest.skip(f"{missing[1]} is not installed; {page} names the extra that has it")
    assert done.returncode == 0, f"{page}: {done.stderr}"
