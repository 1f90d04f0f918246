"""Documents: Markdown files as facts, and items kept whole under a path and key."""
