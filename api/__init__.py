"""Ebb's interfaces: command line, HTTP and MCP, and the client that they share."""

import workers  # noqa: F401 - before redis-py, whose imports it limits
