"""Processes end reliably: after an error that cannot be recovered from, on a signal, and where nothing reaps them."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from api.up import stopping

# The consumer fails, and another part of the worker never stops.
WORKER = """
import threading
from celery.bootsteps import StartStopStep
from celery.worker.consumer import Consumer
from workers import programs
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

programs.SECONDS_TO_STOP = 0.1
app.conf.imports = ()
app.steps["worker"].add(Stuck)
app.conf.worker_consumer = Broken
app.Worker(pool="solo", hostname="stuck@here", quiet=True).start()
print("goes on")
"""


def test_a_worker_that_failed_ends_even_where_stopping_it_hangs() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    program = [sys.executable, "-c", WORKER]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "stops\n"), ended.stderr
    assert "did not stop within 0.1 s" in ended.stderr


# The next heartbeat is due before the loss of the connection is noticed.
HEARTBEAT = """
from amqp.exceptions import ConnectionError
from celery.worker.heartbeat import Heart
from kombu import Connection
from kombu.transport.memory import Channel
from workers.celery import app

faults = iter([ConnectionError("Redis is away"), SystemExit("sends it again")])

def refuse(*_, **__):
    raise next(faults)

Channel.basic_publish = refuse
dispatcher = app.events.Dispatcher(Connection("memory://"), hostname="lost@here")
Heart(None, dispatcher)._send("worker-heartbeat")
print(dispatcher._outbound_buffer[0][1])
"""


def test_a_heartbeat_does_not_keep_a_worker_without_redis_from_noticing_signals() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    program = [sys.executable, "-c", HEARTBEAT]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "worker.heartbeat\n"), ended.stderr


# The signal arrives in the first tick, while a weak reference is cleared.
BEAT = """
import os, signal, weakref
from celery.beat import Scheduler, Service
from workers.celery import app

class Watched:
    pass

class EndedAtOnce(Scheduler):
    rounds = 0

    def tick(self):
        self.rounds += 1
        assert self.rounds == 1, "beat goes on after the signal"
        watched = Watched()
        watch = weakref.ref(watched, lambda _: os.kill(os.getpid(), signal.SIGTERM))
        del watched
        return 0.0

service = Service(app, scheduler_cls=EndedAtOnce)
app.Beat().install_sync_handler(service)
service.start()
print("ended after", service.scheduler.rounds)
"""


def test_beat_ends_though_the_exception_that_should_end_it_is_lost() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://unused/0"}
    program = [sys.executable, "-c", BEAT]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode, ended.stdout) == (0, "ended after 1\n"), ended.stderr
    assert "Exception ignored" in ended.stderr


NOT_REAPING = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid, flush=True)
sys.stdin.read()
"""


def test_a_process_has_ended_although_its_parent_does_not_reap_it(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(psutil.Process, "kill", lambda process: killed.append(process.pid))
    with subprocess.Popen([sys.executable, "-c", NOT_REAPING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        ended = psutil.Process(int(parent.stdout.readline()))
        stopping.end([ended], signal.SIGTERM, 5)
        assert ended.status() == psutil.STATUS_ZOMBIE
        parent.communicate()
    assert not killed
