"""Beat ends on a signal, at any moment."""

import os
import subprocess
import sys

# The signal comes in the first round, while a weak reference is cleared.
PROGRAM = """
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
    program = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "ended after 1\n"), ended.stderr
    assert "Exception ignored" in ended.stderr
