"""What runs beside: it answers and fails as if called, never outlasts patience, and survives a fork."""

import os
import subprocess
import sys
from threading import Event, get_ident

import pytest

from workers.threads import beside

SECONDS = 30


def test_it_runs_while_the_block_does() -> None:
    begun, go_on = Event(), Event()

    def meet() -> int:
        begun.set()
        assert go_on.wait(SECONDS)
        return get_ident()

    with beside(meet) as answer:
        assert begun.wait(SECONDS)
        go_on.set()
        assert answer() != get_ident()


def test_its_error_comes_to_who_asks_for_its_answer() -> None:
    with beside(int, "no number") as answer, pytest.raises(ValueError, match="no number"):
        answer()


def test_who_fails_does_not_wait_for_it() -> None:
    held = Event()
    try:
        with pytest.raises(RuntimeError, match="first"), beside(held.wait, SECONDS):
            raise RuntimeError("first")
        assert not held.is_set()
    finally:
        held.set()


def test_a_child_has_threads_of_its_own() -> None:
    program = (
        "import os\n"
        "from workers.threads import beside\n"
        "with beside(os.getpid) as answer: assert answer() == os.getpid()\n"
        "child = os.fork()\n"
        "with beside(os.getpid) as answer: assert answer() == os.getpid()\n"
        "if not child: os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True, env=os.environ
    )

    assert ran.stdout.split() == ["7"]
