"""A task for a worker's child: it collects all garbage, and tells what memory it then shares with its parent."""

import gc
from pathlib import Path

from workers.celery import app

ROLLUP = Path("/proc/self/smaps_rollup")


@app.task(name="tests.collect")  # type: ignore[untyped-decorator]
def collect() -> dict[str, int]:
    """Return how many objects no collection looks at, and how many KiB of the heap are its own and how many shared."""
    gc.collect()
    lines = (line.split() for line in ROLLUP.read_text().splitlines()[1:])
    kib = {name.rstrip(":"): int(value) for name, value, *_ in lines}
    return {"frozen": gc.get_freeze_count(), "private": kib["Private_Dirty"], "shared": kib["Shared_Dirty"]}
