"""The graph: links between facts, and relations between entities."""
