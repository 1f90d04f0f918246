"""What each process loads: the doors neither the model nor the database's driver."""

import subprocess
import sys

import pytest

HEAVY = ("sklearn", "scipy", "psycopg", "workers.celery")


@pytest.mark.parametrize("module", ["api.http", "api.client"])
def test_a_door_loads_neither_model_nor_database(module: str) -> None:
    loaded = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
