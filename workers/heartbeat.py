"""Health check for containers (`python -m workers.heartbeat`): exit 1 if this machine's worker has no heartbeat.

It asks Redis, where workers record a heartbeat every two seconds; asking the worker itself would load all of Celery.
While Redis does not answer, or refuses heartbeats, the state of the worker is not known, and a restart would not help:
exit 0.
"""

import sys
from platform import node

from redis.exceptions import AuthenticationError, RedisError

from workers.coordination import signals
from workers.coordination.redis import OWN_AFTER, OwnKeys, clock, explain, open_redis
from workers.errors import EbbError
from workers.settings import Settings

ANSWER_SECONDS = 2.0
"""Shorter than the timeout of the check, which would count as a failure."""


def has_heartbeat() -> bool:
    """Return whether a worker of this machine has a recent heartbeat.

    Raises:
        RedisError: Redis does not answer, or refuses heartbeats.
    """
    url = Settings.from_environment().redis_url
    with open_redis(url, OWN_AFTER, kind=OwnKeys, answer_seconds=ANSWER_SECONDS) as redis:
        signals.try_write(redis)
        return any(name.endswith(f"@{node()}") for _, name in signals.live_workers(redis, clock(redis).timestamp()))


def main() -> str | None:
    """Return what is wrong with the worker, if anything."""
    try:
        return None if has_heartbeat() else "ebb: the worker of this machine does not answer."
    except AuthenticationError as error:  # a new start reads the password again
        return f"ebb: {explain(error)}"
    except RedisError as error:
        sys.stdout.write(f"ebb: whether the worker of this machine answers is not known. {explain(error)}\n")
        return None
    except (EbbError, ValueError) as error:  # of the settings; the address may be missing
        return f"ebb: {error}"


if __name__ == "__main__":
    sys.exit(main())
