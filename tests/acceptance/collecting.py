"""A task that collects garbage in a worker's child and returns how much memory it then shares with its parent."""

import gc
from pathlib import Path

from workers.celery import app

ROLLUP = Path("/proc/self/smaps_rollup")


@app.task(name="tests.collect")  # type: ignore[untyped-decorator]
def collect() -> dict[str, int]:
    """Return the number of frozen objects, and the KiB of the heap that are private and shared."""
    gc.collect()
    lines = (line.split() for line in ROLLUP.read_text().splitlines()[1:])
    kib = {name.rstrip(":"): int(value) for name, value, *_ in lines}
    return {"frozen": gc.get_freeze_count(), "private": kib["Private_Dirty"], "shared": kib["Shared_Dirty"]}
