"""Real processes for benchmarks: workers, the HTTP API, and their clients."""

import http.client
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from celery.result import ResultSet

from api.client import Client
from api.up import processes, servers, supervision
from api.up.supervision import Program
from tests.benchmarks import bare
from tests.benchmarks.machine import Machine
from workers import ONE_THREAD
from workers.context import Context
from workers.queues import RECALL, configuration

START_SECONDS = 60.0
STOP_SECONDS = 30.0
EMPTY = "celery.accumulate"
"""A task that Celery itself brings, and that returns what it is given."""

Call = tuple[str, dict[str, Any]]
"""A task's name and its arguments."""


@contextmanager
def workers(machine: Machine, context: Context, children: int, *, include: str = "") -> Iterator[int]:
    """Run the worker of `ebb up` with that many children during the block; it may import another module.

    Yield the id of its main process.
    """
    own = processes.worker("recall,store", children, "worker")
    command = [*own.command, f"--include={include}"] if include else own.command
    with _process(machine, context, Program("worker", command, environment=own.environment)) as process:
        with app(machine) as asking:
            wait_until(lambda: _answers(asking, process))
        yield process.pid


@contextmanager
def bare_workers(machine: Machine, context: Context, children: int, plain: Celery) -> Iterator[int]:
    """Run a worker of a plain Celery app during the block; yield the id of its main process."""
    options = [f"--concurrency={children}", "--hostname=bare@localhost", "--without-mingle", "--without-gossip"]
    command = [sys.executable, "-m", "celery", "-A", bare.__name__, "worker", *options]
    environment = dict(processes.SOFT_STOP | ONE_THREAD) | {bare.VARIABLE: machine.redis.url()}
    with _process(machine, context, Program("bare", command, environment=environment)) as process:
        wait_until(lambda: _answers(plain, process))
        yield process.pid


@contextmanager
def serving(machine: Machine, context: Context) -> Iterator[str]:
    """Run the HTTP API during the block; yield its address."""
    program = supervision.api("127.0.0.1", servers.free_port(), "")
    url = f"http://127.0.0.1:{program.environment['EBB_PORT']}"
    with _process(machine, context, program) as process:
        wait_until(lambda: _serves(url, process))
        yield url


@contextmanager
def _process(machine: Machine, context: Context, program: Program) -> Iterator["subprocess.Popen[bytes]"]:
    environment = machine.environment(context.settings) | dict(program.environment)
    with (machine.folder / f"{program.name}.log").open("ab") as log:
        process = subprocess.Popen(
            program.command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def wait_until(come_true: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Wait for a condition; raise TimeoutError if it does not come true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not come_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Nothing answered within {seconds:g} s; see worker.log and api.log.")
        time.sleep(0.05)


def _answers(asking: Celery, process: "subprocess.Popen[bytes]") -> bool:
    _check(process)
    return bool(asking.control.ping(timeout=0.5, limit=1))


def _serves(url: str, process: "subprocess.Popen[bytes]") -> bool:
    _check(process)
    try:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=1)
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False


def _check(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        raise RuntimeError(f"{process.args!r} ended with {process.returncode}; see worker.log and api.log.")


@contextmanager
def app(machine: Machine) -> Iterator[Celery]:
    """Yield a Celery app that sends tasks by name."""
    sending = Celery("benchmarks", set_as_current=False)
    sending.conf.update(configuration(machine.redis.url()))
    try:
        yield sending
    finally:
        sending.close()


@contextmanager
def client(machine: Machine, namespace: str) -> Iterator[Client]:
    """Yield a client of one namespace."""
    asking = Client(machine.redis.url(), namespace)
    try:
        yield asking
    finally:
        asking.close()


def seconds_until_done(machine: Machine, calls: Sequence[Call]) -> float:
    """Send tasks at once; return the seconds until the last result."""
    with app(machine) as sending:
        began = time.perf_counter()
        sent = ResultSet([_send(sending, task, arguments) for task, arguments in calls], app=sending)
        sent.join_native(timeout=START_SECONDS * 2)
        took = time.perf_counter() - began
        sent.forget()
    return took


def _send(sending: Celery, task: str, arguments: dict[str, Any]) -> Any:
    if task == EMPTY:
        return sending.send_task(task, args=(1,), queue=RECALL)
    return sending.send_task(task, kwargs=arguments)
