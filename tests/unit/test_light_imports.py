"""Imports and memory of each process: interfaces load neither models nor the database driver."""

import subprocess
import sys

import pytest

WATCHED = """
import click, flower.command, gc
from flower.events import EventsState
from workers.__main__ import main

@click.command()
def watch():
    state = EventsState(callback=None, max_tasks_in_memory=100)
    for number in range(20_000):
        for what in ("task-received", "task-started", "task-succeeded"):
            state.event({"type": what, "uuid": str(number), "name": "memory.store", "hostname": "worker", "pid": 1,
                "clock": number, "timestamp": number, "local_received": number, "utcoffset": 0})
    print(sum(type(one).__name__ == "Task" for one in gc.get_objects()))

flower.command.flower = watch
main("flower", [])
"""
"""A Flower that watches 20,000 tasks, is to keep 100, and prints how many are left in memory."""

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


def test_flower_does_not_keep_more_and_more_tasks_in_memory() -> None:
    environment = {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, "-c", WATCHED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert 100 <= int(done.stdout) < 1_000
