"""Telling: what a memory shows of itself, to agents, to owners and to whoever watches it."""
