"""A cable that delays and loses packets, for kernels without netem: a process that carries frames between two TAPs.

    python cable.py OUTER INNER DELAY_SECONDS LOST_SHARE

What INNER sends arrives late, or never; what OUTER sends arrives at once.
"""

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress

SET_NAME = 0x400454CA
TAP_WITHOUT_HEADER = 0x1002
LARGEST_FRAME = 65_536
FRAMES = 64
"""Frames that are read at once."""


def open_tap(name: str) -> int:
    """Make a TAP, and return its file descriptor; it exists until that is closed."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, SET_NAME, struct.pack("16sH", name.encode(), TAP_WITHOUT_HEADER))
    return tap


def carry(outer: int, inner: int, delay: float, lost: float) -> None:
    """Carry frames both ways for ever."""
    chance = random.Random()
    late: deque[tuple[float, bytes]] = deque()
    while True:
        select.select([outer, inner], [], [], max(0.0, late[0][0] - time.monotonic()) if late else None)
        for frame in _frames(outer):
            _send(inner, frame)
        arrives = time.monotonic() + delay
        late.extend((arrives, frame) for frame in _frames(inner) if chance.random() >= lost)
        while late and late[0][0] <= time.monotonic():
            _send(outer, late.popleft()[1])


def _frames(tap: int) -> list[bytes]:
    """Return what a TAP has sent."""
    found: list[bytes] = []
    with suppress(OSError):  # there is no more, or the TAP is down
        while len(found) < FRAMES:
            found.append(os.read(tap, LARGEST_FRAME))
    return found


def _send(tap: int, frame: bytes) -> None:
    with suppress(OSError):  # if the TAP is down, the frame is lost
        os.write(tap, frame)


if __name__ == "__main__":
    taps = [open_tap(name) for name in sys.argv[1:3]]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    carry(*taps, *map(float, sys.argv[3:5]))
