"""Memory: operations on single facts: store, recall, use, edit, forget and restore."""
