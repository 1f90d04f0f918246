"""Measures Ebb against its targets: `python -m tests.benchmarks`, on servers and data of its own."""

import os

from workers import ONE_THREAD

os.environ.update(ONE_THREAD)  # as a worker has it; numpy reads it when it is loaded
