"""Replace this process by a program that cannot outlive its parent: `python launch.py SIGNAL USER COMMAND…`.

It runs as a file and imports nothing of ours, so it takes only a few milliseconds. USER may be `-`. The kernel sends
the signal when the parent dies for any reason; only Linux supports this, elsewhere the next `ebb up` cleans up.
"""

import ctypes
import os
import pwd
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Drop privileges to the user, tie this process to its parent, and execute the command."""
    ending, user, *command = arguments
    parent = os.getppid()
    if user != "-":
        drop_to(user)
    end_with_parent(signal.Signals[f"SIG{ending}"], parent)
    os.execvp(command[0], command)  # the command is ours, from the generated configuration


def drop_to(user: str) -> None:
    """Give up root permanently; groups come first, since the user itself may not set them."""
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.environ.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)


def end_with_parent(ending: signal.Signals, parent: int) -> None:
    """Make the kernel send `ending` when the parent dies; setuid resets this, so call it afterwards."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, ending)
        if os.getppid() != parent:
            sys.exit("the parent died before its child had started")


if __name__ == "__main__":
    main(sys.argv[1:])
