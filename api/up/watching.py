"""Tell the person in front of `ebb up` what happens: who ended or came back, and who warns of what."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from api.up.starting import LAST_WORDS, System
from api.up.supervision import OWN
from workers.errors import UnavailableError

INTERVAL = 0.5
# how our log lines begin, for people after date and time, for machines in JSON
LEVEL = re.compile(r'(\S+ \S+ |\{"at": "\S+", "level": ")(?P<level>[A-Z]+)[ "]')
LOUD = ("WARNING", "ERROR", "CRITICAL")
GIVING_UP = (LAST_WORDS, "Traceback ")

Tell = Callable[[str, str], None]


@dataclass(slots=True)
class Log:
    """A log file that is read on from where the reader was."""

    path: Path
    offset: int = 0
    loud: bool = field(default=False)

    def warnings(self) -> Iterator[str]:
        """Return the new lines of warnings and errors, with what belongs to them."""
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


def watch(system: System, tell: Tell) -> None:
    """Tell what happens until the supervisor ends, which `ebb down` or a signal makes it do."""
    logs = {name: _at_end(system.home.logs / f"{name}.log") for name in OWN}
    last = {process.name: process for process in system.ready}
    while not _ended(system.process):
        for name, log in logs.items():
            for line in log.warnings():
                tell(name, line)
        try:
            now = {process.name: process for process in system.supervisor.processes()}
        except UnavailableError:  # it is about to end
            continue
        for name, process in now.items():
            if process != last[name]:
                tell(name, f"is {process.state}" + (f" as pid {process.pid}" if process.pid else ""))
        last = now


def _at_end(path: Path) -> Log:
    return Log(path, path.stat().st_size if path.exists() else 0)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait one interval for the end."""
    try:
        process.wait(INTERVAL)
    except subprocess.TimeoutExpired:
        return False
    return True
