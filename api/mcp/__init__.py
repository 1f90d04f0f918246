"""MCP for agents, with the same tools over stdio (`ebb mcp`) and over HTTP (`/mcp` of the API)."""
