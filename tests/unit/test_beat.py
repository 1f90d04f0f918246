"""Beat ends when it is told to, at whatever moment that is."""

import os
import signal
import weakref
from collections.abc import Iterator

import pytest
from celery import Celery
from celery.beat import Scheduler, Service

from workers.beat import Beat


class ToldTooSoon(Scheduler):  # type: ignore[misc]
    """A scheduler during whose first round the process is told to end, while a weak reference is cleared."""

    rounds = 0

    def tick(self) -> float:
        type(self).rounds += 1
        assert self.rounds == 1, "beat goes on though it was told to end"
        watched = Watched()
        watch = weakref.ref(watched, lambda _: os.kill(os.getpid(), signal.SIGTERM))
        del watched
        assert watch() is None
        return 0.0


class Watched:
    pass


@pytest.fixture
def handlers() -> Iterator[None]:
    """Put back what this process does when it is told to end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_beat_ends_though_the_exception_that_should_end_it_is_lost() -> None:
    app = Celery("tests", set_as_current=False)
    service = Service(app, scheduler_cls=ToldTooSoon)
    Beat(app=app).install_sync_handler(service)
    service.start()
    assert ToldTooSoon.rounds == 1
