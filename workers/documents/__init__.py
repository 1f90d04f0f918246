"""Documents: Markdown files, folders of them, and items stored under a path and key."""
