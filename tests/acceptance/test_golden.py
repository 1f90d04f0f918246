"""Interfaces that callers rely on, compared with the files in `tests/golden`; `make golden` updates these."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import click
import pytest
import typer
from live_api import serving
from live_system import ROOT, LiveSystem, eventually
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from api.cli import command_line
from api.http import make_app
from api.mcp.tools import TOOLS
from workers.coordination import signals, timings

FOLDER = ROOT / "tests" / "golden"
WRITE = bool(os.environ.get("WRITE_GOLDEN"))
EARLIER = ROOT / "tests" / "integration" / "releases" / "0001-mira.jsonl"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
NOW = "2025-06-01T00:00:00Z"
WIDTH = 110

TASKS = """
import json
from inspect import signature
from workers.celery import app
app.loader.import_default_modules()
own = {name: signature(task.run) for name, task in app.tasks.items() if not name.startswith("celery.")}
print(json.dumps({
    name: [str(one.replace(annotation=one.empty)) for one in found.parameters.values() if one.name != 'self']
    for name, found in own.items()
}))
"""


def compare(name: str, found: str) -> None:
    """Fail if a golden file differs, or write it if requested."""
    file = FOLDER / name
    found = found.rstrip("\n") + "\n"
    if WRITE:
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), (
        f"tests/golden/{name} differs from what the code does now. If that is intended, run `make golden`, read the "
        "difference with `git diff tests/golden`, and commit it with the change."
    )


def as_json(value: Any, indent: str = "") -> str:
    """Return JSON with each object or list on one line if it fits."""
    line, deeper = json.dumps(value, sort_keys=True, ensure_ascii=False), indent + " "
    if len(indent + line) <= WIDTH or not isinstance(value, dict | list):
        return line
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + as_json(one, deeper) for one in value) + f"\n{indent}]"
    members = (f"{deeper}{json.dumps(name)}: {as_json(value[name], deeper)}" for name in sorted(value))
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def test_the_openapi_document_matches_the_golden_file() -> None:
    document = make_app().openapi()
    document["info"]["version"] = "VERSION"
    compare("openapi.json", as_json(document))


def commands(command: click.Command, words: str) -> Iterator[str]:
    """Yield a command and all of its subcommands, as they are typed."""
    yield words
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from commands(below, f"{words} {name}")


def shown_help(words: str) -> str:
    done = CliRunner().invoke(command_line(), [*words.split()[1:], "--help"], prog_name="ebb")
    assert done.exit_code == 0, done.output
    lines = [line.rstrip() for line in done.output.strip().splitlines()]
    return "\n".join([f"$ {words} --help", *lines, "", ""])


def test_the_help_of_each_command_matches_the_golden_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "120", "LINES": "100", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", None)
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", None)
    every = commands(typer.main.get_command(command_line()), "ebb")
    compare("help.txt", "\n".join(map(shown_help, every)))


def test_the_mcp_tools_match_the_golden_file() -> None:
    shown = [tool.listed.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS]
    compare("mcp_tools.json", as_json(shown))


def test_the_tasks_and_their_parameters_match_the_golden_file() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    done = subprocess.run([sys.executable, "-c", TASKS], env=environment, capture_output=True, text=True, check=True)
    parameters: Mapping[str, list[str]] = json.loads(done.stdout)
    compare("tasks.txt", "".join(f"{name}({', '.join(parameters[name])})\n" for name in sorted(parameters)))


def steady(value: Any, began: datetime) -> Any:
    """Return a JSON value without parts that depend on the machine or the time.

    Floats have six digits, instants no fraction of a second, and instants after the start of the test are NOW.
    """
    if isinstance(value, dict):
        return {name: steady(one, began) for name, one in value.items()}
    if isinstance(value, list):
        return [steady(one, began) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, str) and INSTANT.fullmatch(value):
        at = datetime.fromisoformat(value)
        return "NOW" if began <= at <= datetime.now(UTC) else at.isoformat(timespec="seconds")
    return value


@pytest.mark.acceptance
def test_an_export_matches_the_golden_file(live: LiveSystem, namespace: str) -> None:
    ((began,),) = live.rows("select now()")
    assert live.ebb("import", str(EARLIER), "--namespace", namespace).returncode == 0
    done = live.ebb("export", "--now", NOW, "--namespace", namespace)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.replace(namespace, "mira").splitlines()]
    compare("export.json", as_json(steady(lines, began)))


@pytest.mark.acceptance
def test_the_metrics_match_the_golden_file(live: LiveSystem) -> None:
    with serving(live) as api:
        api.post("/memory/facts", json={"text": "The key hangs by the door."}).raise_for_status()
        api.post("/memory/recall", json={"query": "Where is the key?"}).raise_for_status()
        gone = api.post("/memory/facts", json={"text": "The door is green."}).json()["id"]
        api.delete(f"/memory/facts/{gone}").raise_for_status()
        api.post("/memory/decay?everywhere=true", json={}).raise_for_status()
        live.settle()
        signals.count(live.own_keys, signals.FAILURES, "memory.store")
        signals.note_beat(live.own_keys, 1.0)
        eventually(lambda: timings.read_usage(live.own_keys, time.time()), "the workers have noted what they use")
        live.own_keys.delete("ebb:measured")
        metrics = api.get("/metrics").text
    live.own_keys.delete(signals.BEAT)  # else `ebb doctor` would report that beat has been silent
    families = {family.name: family for family in text_string_to_metric_families(metrics)}
    compare(
        "metrics.txt",
        "".join(
            f"{name} {one.type} {sorted({label for sample in one.samples for label in sample.labels})}: "
            f"{one.documentation}\n"
            for name, one in sorted(families.items())
        ),
    )
