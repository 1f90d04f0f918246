"""MCP: the door for agents. Its tools are the same over stdio (`ebb mcp`) and over HTTP (`/mcp` of the API)."""
