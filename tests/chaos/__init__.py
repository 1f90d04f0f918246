"""Chaos: faults injected into a running Ebb under load, and an oracle that compares every row afterwards."""
