"""The programs of README and manual: mypy accepts them, and they run against a running system."""

import os
import re
from pathlib import Path

import prepared
import pytest
from live_system import ROOT, LiveSystem, clean_environment
from type_check import mypy

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

PAGES = [ROOT / "README.md", ROOT / "api/clients/python/README.md", *sorted((ROOT / "api" / "docs").rglob("*.md"))]
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MISSING = re.compile(r"No module named '(llama_index|pydantic_ai|agents|anthropic|crewai|google|langgraph)\b")
HTTP, REDIS, RESULTS = "http://127.0.0.1:5556", "redis://localhost:6379/0", "redis://localhost:6379/1"
TRIED = "EBB_TEST_FRAMEWORK" in os.environ
"""Whether a framework is on the path, whose program must run."""

PROGRAMS = [
    (page.relative_to(ROOT).with_suffix("").as_posix(), found)
    for page in PAGES
    for found in PROGRAM.findall(page.read_text(encoding="utf-8"))
]


@pytest.mark.slow
def test_mypy_finds_nothing_in_the_programs(tmp_path: Path) -> None:
    assert len(PROGRAMS) > 15
    for number, (_, program) in enumerate(PROGRAMS):
        (tmp_path / f"program_{number}.py").write_text(program)
    done = mypy(tmp_path)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("page", "program"), PROGRAMS, ids=[f"{page}-{i}" for i, (page, _) in enumerate(PROGRAMS)])
def test_a_program_runs(live: LiveSystem, url: str, page: str, program: str, tmp_path: Path) -> None:
    here = program.replace(REDIS, live.redis_url).replace(RESULTS, f"{live.redis_url[:-1]}1").replace(HTTP, url)
    here = re.sub(r"Memory\((?=\)|namespace)", f'Memory("{url}", ', here).replace(", )", ")")
    environment = clean_environment({})
    if TRIED:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"] + os.pathsep + environment["PYTHONPATH"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        status = prepared.start(["-c", here], environment, output).wait()
    if not TRIED and (missing := MISSING.search(log.read_text())):
        pytest.skip(f"{missing[1]} is not installed; {page} names the extra that has it")
    assert status == 0, f"{page}: {log.read_text()}"
