"""Report on the terminal of `ebb up` which processes stopped or restarted, and warnings from their logs."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from api.up.starting import LAST_WORDS, System
from api.up.supervision import OWN
from workers.errors import UnavailableError

INTERVAL = 0.5
# start of our log lines: date, time and level as text, or JSON
LEVEL = re.compile(r'(\S+ \S+ |\{"at": "\S+", "level": ")(?P<level>[A-Z]+)[ "]')
LOUD = ("WARNING", "ERROR", "CRITICAL")
GIVING_UP = (LAST_WORDS, "Traceback ")

Report = Callable[[str, str], None]


@dataclass(slots=True)
class Log:
    """A log file that is read on from the last position."""

    path: Path
    offset: int = 0
    loud: bool = field(default=False)

    def warnings(self) -> Iterator[str]:
        """Yield new lines of warnings and errors, with their continuation lines."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            if self.path.stat().st_size < self.offset:  # rotated
                self.offset = 0
            file.seek(self.offset)
            for line in file:
                self.offset += len(line)
                text = line.decode(errors="replace").rstrip()
                begin = LEVEL.match(text)
                self.loud = begin["level"] in LOUD if begin else self.loud or text.startswith(GIVING_UP)
                if self.loud and text:
                    yield text


def watch(system: System, report: Report) -> None:
    """Report events until the supervisor ends, by `ebb down` or a signal."""
    logs = {name: _at_end(system.home.logs / f"{name}.log") for name in OWN}
    last = {process.name: process for process in system.ready}
    while not _ended(system.process):
        for name, log in logs.items():
            for line in log.warnings():
                report(name, line)
        try:
            now = {process.name: process for process in system.supervisor.processes()}
        except UnavailableError:  # it is shutting down
            continue
        for name, process in now.items():
            if process != last[name]:
                report(name, f"is {process.state}" + (f" as pid {process.pid}" if process.pid else ""))
        last = now


def _at_end(path: Path) -> Log:
    return Log(path, path.stat().st_size if path.exists() else 0)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait one interval for the process to end; return whether it did."""
    try:
        process.wait(INTERVAL)
    except subprocess.TimeoutExpired:
        return False
    return True
