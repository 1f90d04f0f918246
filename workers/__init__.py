"""Ebb's workers: what an agent remembers, and how it forgets."""

GARBAGE_THRESHOLD = 50_000
"""Allocations between two garbage collections: with Python's 700, a large body or batch causes hundreds of them."""
