"""Chaos: one command that tries to break a running Ebb, and an oracle that looks at every row afterwards."""
