"""The running system on one machine: its embedded servers, their supervision and how others find it."""
