"""Ebb's workers: what an agent remembers, and how it forgets."""

import sys

# Where OpenTelemetry's SDK is installed, redis-py would load its metrics: 50 ms and 3 MiB a process, for no use.
sys.modules.setdefault("opentelemetry.sdk.metrics", None)  # type: ignore[arg-type]

GARBAGE_THRESHOLD = 50_000
"""Allocations between two garbage collections: with Python's 700, a large body or batch causes hundreds of them."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of a worker's processes, read when numpy is loaded.

One core per child process: multithreaded numeric libraries would slow all of them down, and a model loaded before the
fork must have no threads.
"""
