"""Processes end reliably: after an error that cannot be recovered from, on a signal, and where nothing reaps them."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from api.up import processes, stopping

# The consumer fails or gets a signal, and another part of the worker never stops, unless the worker waits for tasks.
WORKER = """
import signal, sys, threading
from celery.concurrency.solo import TaskPool
from celery.worker import state
from celery.worker.consumer import Consumer
from workers import programs
from workers.celery import app

class Stuck(TaskPool):
    def on_stop(self):
        bounded = any(isinstance(thread, threading.Timer) for thread in threading.enumerate())
        print("stops", "in time" if bounded else "after the last task", flush=True)
        if bounded:
            threading.Event().wait()

class Ended(Consumer):
    def start(self):
        if sys.argv[1] == "failure":
            raise AttributeError("'NoneType' object has no attribute 'hostname'")
        signal.raise_signal(signal.Signals[sys.argv[1]])
        state.maybe_shutdown()

programs.SECONDS_TO_STOP = 0.1
app.conf.imports = ()
app.conf.worker_consumer = Ended
app.Worker(pool=Stuck, hostname="stuck@here", quiet=True).start()
print("goes on")
"""


@pytest.mark.parametrize("cause", ["failure", "SIGTERM", "SIGQUIT"])
def test_a_worker_ends_even_where_stopping_it_hangs(cause: str) -> None:
    ended = _worker(cause)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (1, "stops in time"), ended.stderr
    assert "did not stop within 0.1 s" in ended.stderr


def test_a_worker_that_gets_an_interruption_waits_for_its_tasks() -> None:
    ended = _worker("SIGINT")
    assert ended.stdout.splitlines()[-2:] == ["stops after the last task", "goes on"], ended.stderr


def _worker(cause: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"} | processes.SOFT_STOP
    program = [sys.executable, "-c", WORKER, cause]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)


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
