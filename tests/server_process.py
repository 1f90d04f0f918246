"""Processes of the embedded servers, which tests, benchmarks and the catalogue run without `ebb up`."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from api.up import redis_programs
from workers.errors import UnavailableError

READY_SECONDS = 60.0


@contextmanager
def running(command: list[str], log: Path, fault: Callable[[], str | None], ending: signal.Signals) -> Iterator[None]:
    """Run a server for the duration of the block, which starts when the server answers.

    Raises:
        UnavailableError: the server ended or did not answer in time; the message contains the end of its log.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while fault() is not None:
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-2000:]
                advice = redis_programs.explain(said) or ""
                raise UnavailableError(f"{' '.join(command)} does not start. {advice} It said:\n{said}")
            time.sleep(0.02)
        yield
    finally:
        process.send_signal(ending)
        process.wait(READY_SECONDS)
