"""A worker ends after an error that it cannot recover from."""

import os
import subprocess
import sys

# The consumer fails, and another part of the worker never ends when it is stopped.
PROGRAM = """
import threading
from celery.bootsteps import StartStopStep
from celery.worker.consumer import Consumer
from workers import worker
from workers.celery import app

class Stuck(StartStopStep):
    def start(self, parent):
        pass

    def stop(self, parent):
        print("stops", flush=True)
        threading.Event().wait()

class Broken(Consumer):
    def start(self):
        raise AttributeError("'NoneType' object has no attribute 'hostname'")

worker.SECONDS_TO_STOP = 0.1
app.conf.imports = ()
app.steps["worker"].add(Stuck)
app.conf.worker_consumer = Broken
app.Worker(pool="solo", hostname="stuck@here", quiet=True).start()
print("goes on")
"""


def test_a_worker_that_failed_ends_even_where_stopping_it_hangs() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    program = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "stops\n"), ended.stderr
    assert "did not stop within 0.1 s" in ended.stderr
