"""Measures Ebb against its targets: `python -m tests.benchmarks`, on servers and data of its own."""
