"""Decay: what changes or ends facts by itself, and how much of it."""
