"""Whether the worker of this machine lives: `python -m workers.heartbeat`, for a container's health check.

It asks Redis, where workers leave a mark every two seconds; asking the worker itself would start all of Celery.
"""

import sys
from platform import node

from workers.coordination import signals
from workers.coordination.redis import clock, own_keys
from workers.settings import Settings


def lives() -> bool:
    """Return whether a worker of this machine left its mark a moment ago."""
    with own_keys(Settings.from_environment().redis_url) as redis:
        return any(name.endswith(f"@{node()}") for _, name in signals.alive(redis, clock(redis).timestamp()))


if __name__ == "__main__":
    sys.exit(0 if lives() else "ebb: the worker of this machine does not answer.")
