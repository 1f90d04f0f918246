"""The soak: a whole Ebb under mixed load for half an hour; nothing may grow, leak, accumulate or fail."""
