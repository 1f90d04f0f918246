"""Ebb's interfaces: command line, HTTP and MCP, and the client that they share."""
