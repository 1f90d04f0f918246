"""The library of Ebb, long-term memory for AI agents: what an application imports."""
