"""Memory: what is done with single facts: store, recall, use, edit, forget and restore them."""
