"""A call with a time limit: a slow one is abandoned, a fast one behaves like a direct call; limits of tasks."""

import os
import subprocess
import sys
from threading import Event

import pytest
from ebb.contract.admin import IMPORT
from ebb.contract.documents import INDEX, PUT_ITEM, PUT_ITEMS, UPLOAD
from ebb.contract.facts import EDIT, REMEMBER, STORE, STORE_MANY

from workers.context import PROBE_SECONDS
from workers.endpoint import SLACK_SECONDS
from workers.memory.embed import ANSWERED_SECONDS
from workers.settings import Settings
from workers.threads import within

LIMITS = """
import sys
from workers.celery import app

app.loader.import_default_modules()
for name in sys.argv[1:]:
    print(app.tasks[name].soft_time_limit or app.conf.task_soft_time_limit)
"""


def test_no_task_that_stores_is_ended_while_the_embedder_may_still_answer() -> None:
    (longest,) = (one.le for one in Settings.model_fields["embedding_timeout"].metadata if hasattr(one, "le"))
    assert longest <= ANSWERED_SECONDS
    names = [one.name for one in (STORE, STORE_MANY, REMEMBER, EDIT, IMPORT, INDEX, UPLOAD, PUT_ITEM, PUT_ITEMS)]
    environment = os.environ | {"EBB_REDIS_URL": "redis://unused/0", "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    command = [sys.executable, "-c", LIMITS, *names]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    limits = [float(limit) for limit in shown.stdout.split()]
    assert len(limits) == len(names)
    assert min(limits) > ANSWERED_SECONDS + SLACK_SECONDS + PROBE_SECONDS


def test_results_and_exceptions_in_time_are_passed_on() -> None:
    error = ValueError("no")
    assert within(30, lambda: 7) == 7
    assert within(30, lambda: error) is error
    with pytest.raises(ZeroDivisionError):
        within(30, lambda: 1 // 0)


def test_a_function_that_does_not_return_is_not_waited_for() -> None:
    over = Event()
    with pytest.raises(TimeoutError):
        within(0.01, over.wait)
    over.set()
