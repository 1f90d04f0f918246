"""Processes of Ebb for the tests, forked from one that has imported everything: imports are most of a start's work.

A forked process runs what `python -m` runs, with an environment and a session of its own, and does not outlive the
tests, even if these are interrupted. The tests of `ebb up`, of starts and of chaos start theirs from nothing.
"""

import ast
import gc
import json
import os
import random
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import ModuleType, TracebackType
from typing import IO, Any, Self

from api.up.launch import end_with_parent

ROOT = Path(__file__).parents[2]

AT_IMPORT = {"PYTHONPATH": str(ROOT), "REMAP_SIGTERM": "SIGQUIT", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Variables that are read while modules are imported."""

IMPORTED = (
    "celery.bin.worker", "celery.worker.autoscale", "celery.worker.components", "celery.worker.strategy",
    "celery.concurrency.prefork", "celery.events.state", "workers.programs", "workers.graph", "numpy.random",
    "uvicorn.lifespan.on", "uvicorn.loops.auto", "api.http", "api.http.limits", "api.http.openmemory",
    "typer", "rich.console", "rich.table",
)  # fmt: skip
READING_SETTINGS = ("workers.celery", "workers.tasks", "workers.startup")
"""Modules that a forked process imports itself; what they import, it need not."""

LARGEST = 1_000_000
"""Bytes of a request: command and environment of a process."""


class Forked:
    """A forked process; has as much of `subprocess.Popen` as the tests use."""

    def __init__(self, command: Sequence[str], pid: int, status: int) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wait()

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            (self.returncode,) = struct.unpack("i", os.read(self._status, 4))
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Source:
    """The process that others are forked from; it starts with the first of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def fork(
        self,
        module: Sequence[str],
        environment: Mapping[str, str],
        outputs: Sequence[IO[bytes]],
        *,
        new_session: bool,
    ) -> Forked:
        with self._lock:
            self._started()
            reading, writing = os.pipe()
            request = json.dumps([module, dict(environment), new_session]).encode()
            socket.send_fds(self._requests, [request], [*(one.fileno() for one in outputs), writing])
            os.close(writing)
            (pid,) = struct.unpack("i", self._requests.recv(4))
            return Forked(module, pid, reading)

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Return whether no variable that imports may read differs from those of the tests."""
        same = environment.get("PYTHONPATH") == str(ROOT) and _outside(environment) == _outside(os.environ)
        return sys.platform == "linux" and same

    def _started(self) -> None:
        if self._process is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, __file__, str(theirs.fileno())]
            clean = _outside(os.environ) | AT_IMPORT
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=clean, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
            theirs.close()

    def close(self) -> None:
        if self._process is not None:
            self._requests.close()
            self._process.wait()
            self._process = None


def _outside(environment: Mapping[str, str]) -> dict[str, str]:
    own = {name for name in environment if name.startswith(("EBB_", "PYTEST_"))}
    return {name: value for name, value in environment.items() if name not in own | AT_IMPORT.keys()}


source = Source()

Process = Forked | subprocess.Popen[bytes]


def start(
    module: Sequence[str],
    environment: Mapping[str, str],
    output: IO[bytes],
    errors: IO[bytes] | None = None,
    *,
    new_session: bool = False,
) -> Process:
    """Start a module with arguments, as `python -m`, or `-c` with a program, in the project's folder.

    Without a file for errors, these go to the output.
    """
    outputs = [output, errors or output]
    if source.suits(environment):
        return source.fork(module, environment, outputs, new_session=new_session)
    command = [sys.executable, *(["-m"] if module[0] != "-c" else []), *module]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=outputs[0], stderr=outputs[1], stdin=subprocess.DEVNULL,
        start_new_session=new_session,
    )  # fmt: skip


class Forking:
    """The other side: forks for each request until the tests end."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._statuses: dict[int, int] = {}

    def serve(self) -> tuple[list[str], dict[str, str]] | None:
        """Return a module with arguments and an environment in each forked process; none in this one, at its end."""
        ended, ending = os.pipe2(os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, self._report)
        signal.set_wakeup_fd(ending)  # or a signal just before the call that waits is noticed after it
        while True:
            if self._requests not in select.select([self._requests, ended], [], [])[0]:
                os.read(ended, LARGEST)
                continue
            request, descriptors, _, _ = socket.recv_fds(self._requests, LARGEST, 3)
            if not request:
                return None
            module, environment, new_session = json.loads(request)
            *outputs, status = descriptors
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            own = os.getpid()
            if (pid := os.fork()) == 0:
                end_with_parent(signal.SIGTERM, own)
                signal.set_wakeup_fd(-1)
                self._become(outputs, [ended, ending, status, *self._statuses.values()], new_session=new_session)
                return module, environment
            self._statuses[pid] = status
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            for output in outputs:
                os.close(output)
            self._requests.send(struct.pack("i", pid))

    def _report(self, *_: Any) -> None:
        """Tell the tests of each process that ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                status = self._statuses.pop(ended[0])
                with suppress(BrokenPipeError):
                    os.write(status, struct.pack("i", os.waitstatus_to_exitcode(ended[1])))
                os.close(status)

    def _become(self, outputs: list[int], unneeded: list[int], *, new_session: bool) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        if new_session:
            os.setsid()
        for output, standard in zip(outputs, (1, 2), strict=True):
            os.dup2(output, standard)
        for descriptor in (*outputs, self._requests.detach(), *unneeded):
            os.close(descriptor)


def _imported_by(package: str) -> Iterator[str]:
    """Return the modules that a package or module which reads the settings imports at its top."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin)
    for source in file.parent.glob("*.py") if file.name == "__init__.py" else [file]:
        for statement in ast.parse(source.read_bytes()).body:
            if isinstance(statement, ast.ImportFrom) and statement.module:
                yield statement.module
                yield from (f"{statement.module}.{one.name}" for one in statement.names)
            elif isinstance(statement, ast.Import):
                yield from (one.name for one in statement.names)


def _import_everything() -> None:
    gc.disable()
    for name in (*IMPORTED, *(name for package in READING_SETTINGS[1:] for name in _imported_by(package))):
        if not name.startswith(READING_SETTINGS):
            with suppress(ModuleNotFoundError):  # a function of a module, not a module
                import_module(name)
    gc.freeze()


def main(descriptor: int) -> None:
    sys.path[0] = str(ROOT)
    _import_everything()
    asked = Forking(socket.socket(fileno=descriptor)).serve()
    if asked is not None:
        (name, *arguments), environment = asked
        os.environ.clear()
        os.environ.update(environment)
        random.seed()
        gc.enable()
        sys.argv = [name, *arguments]
        if name == "-c":
            sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(arguments[0], "<string>", "exec"), vars(sys.modules["__main__"]))
        else:
            runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
