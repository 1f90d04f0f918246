"""The soak: a whole Ebb under mixed load for half an hour, in which nothing may grow, leak, pile up or fail."""
