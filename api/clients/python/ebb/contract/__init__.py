"""The contract: the operations of Ebb, declared once for tasks, HTTP, command line, MCP tools and clients."""
