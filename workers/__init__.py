"""Ebb's workers: what an agent remembers, and how it forgets."""
