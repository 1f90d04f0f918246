"""Health check for containers (`python -m workers.heartbeat`): exit 0 if this machine's worker has a heartbeat.

It asks Redis, where workers record a heartbeat every two seconds; asking the worker itself would load all of Celery.
"""

import sys
from platform import node

from workers.coordination import signals
from workers.coordination.redis import clock, own_keys
from workers.settings import Settings


def has_heartbeat() -> bool:
    """Return whether a worker of this machine has a recent heartbeat."""
    with own_keys(Settings.from_environment().redis_url) as redis:
        return any(name.endswith(f"@{node()}") for _, name in signals.live_workers(redis, clock(redis).timestamp()))


if __name__ == "__main__":
    sys.exit(0 if has_heartbeat() else "ebb: the worker of this machine does not answer.")
