"""Imports of each process: interfaces load neither models nor the database driver."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "sklearn", "scipy", "psycopg", "workers.celery", "opentelemetry.exporter")


@pytest.mark.parametrize("module", ["api.http", "api.client"])
def test_a_door_loads_neither_model_nor_database(module: str) -> None:
    loaded = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_loads_neither_model_nor_database_before_a_command_runs() -> None:
    every = "import sys; from api.cli import command_line; command_line()"
    loaded = f"{every}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_loads_no_highlighter_of_code_and_no_tracing_unless_it_is_wanted() -> None:
    unneeded = {"pygments", "opentelemetry.exporter"}
    loaded = f"import sys, workers.__main__, workers.startup; print({unneeded!r} & {{*sys.modules}})"
    environment = {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, "-c", loaded]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "set()"
