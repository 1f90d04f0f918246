"""Stop the system of a home from outside, and wait until it is gone."""

import signal

from api.up import leftovers
from api.up.home import Home
from api.up.supervision import Supervisor
from workers.errors import UnavailableError


def stop_home(home: Home) -> list[str]:
    """Stop everything that runs at this home; return the names of what was running."""
    running = leftovers.supervisor_of(home)
    names = []
    if running is not None:
        names = _names(home)
        leftovers.end([running], signal.SIGTERM, leftovers.STOP_SECONDS["supervisor"])
    return names + [name for name in leftovers.end_leftovers(home) if name not in names]


def _names(home: Home) -> list[str]:
    try:
        return [process.name for process in Supervisor(home.control).processes() if process.pid]
    except UnavailableError:
        return ["supervisor"]
