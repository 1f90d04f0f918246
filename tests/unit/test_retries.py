"""A task that is tried again: what is sent then."""

import os
import subprocess
import sys

import pytest

SEND_AGAIN = """
from datetime import UTC, datetime, timedelta
from celery import signals
from kombu import Connection
from workers.celery import app
from workers.clock import AFTER
from workers.coordination import outbox
from workers.tasks.store import store

store.push_request(id="0", **{outbox.HEADER: "default"})
again = store.signature_from_request()
again.apply_async(connection=Connection("memory://"), ignore_result=True)
print(again.kwargs)

sent = {}
app.server_clock.read = lambda: datetime.now(UTC) + timedelta(days=1)
signals.before_task_publish.connect(lambda headers, **_: sent.update(headers), weak=False)
store.signature_from_request(countdown=3).apply_async(connection=Connection("memory://"), ignore_result=True)
print(datetime.fromisoformat(sent[AFTER]) > datetime.now(UTC) + timedelta(days=1))
"""


LOSE_REDIS = """
import redis.exceptions
from workers.celery import app
from workers.tasks.task import EbbTask

@app.task(bind=True, base=EbbTask)
def lost(self):
    print(self.request.retries)
    raise redis.exceptions.ConnectionError("Connection reset by peer")

lost.apply()
"""

TAKE_TOO_LONG = """
import psycopg
from celery.exceptions import SoftTimeLimitExceeded
from workers.celery import app
from workers.tasks.recall import RecallTask

@app.task(bind=True, base=RecallTask)
def slow(self):
    print(self.request.retries)
    try:
        raise SoftTimeLimitExceeded
    finally:
        raise psycopg.OperationalError("the connection is closed")

print(type(slow.apply().result).__name__)
"""

SAY_WHY = """
import sys
from datetime import UTC, datetime, timedelta
from workers.celery import app
from workers.clock import UNTIL
from workers.errors import UnavailableError
from workers.tasks.task import EbbTask

app.server_clock.read = lambda: datetime.now(UTC)

@app.task(bind=True, base=EbbTask)
def away(self):
    print(self.request.retries)
    self.request.update({UNTIL: (datetime.now(UTC) + timedelta(seconds=float(sys.argv[1]))).isoformat()})
    raise UnavailableError("away")

print(away.apply().result)
"""


@pytest.mark.parametrize(("seconds", "tries"), [("0", "0"), ("3600", "0123456")])
def test_a_task_whose_caller_would_stop_waiting_before_another_try_says_why_it_failed(seconds: str, tries: str) -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0", "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    tried = subprocess.run(
        [sys.executable, "-c", SAY_WHY, seconds], env=environment, capture_output=True, text=True, check=False
    )
    assert tried.stdout.split() == [*tries, "away"], tried.stderr


def test_a_question_that_took_longer_than_its_time_limit_is_not_tried_again() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0", "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    tried = subprocess.run(
        [sys.executable, "-c", TAKE_TOO_LONG], env=environment, capture_output=True, text=True, check=False
    )
    assert tried.stdout.split() == ["0", "SoftTimeLimitExceeded"], tried.stderr


def test_a_task_whose_connection_to_redis_breaks_off_is_tried_again() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0", "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    tried = subprocess.run(
        [sys.executable, "-c", LOSE_REDIS], env=environment, capture_output=True, text=True, check=False
    )
    assert tried.stdout.split() == list("0123456"), tried.stderr


def test_an_accepted_write_is_sent_again_without_its_arguments_and_due_by_the_clock_of_redis() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://unused/0", "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    sent = subprocess.run(
        [sys.executable, "-c", SEND_AGAIN], env=environment, capture_output=True, text=True, check=False
    )
    assert sent.stdout == "{}\nTrue\n", sent.stderr
