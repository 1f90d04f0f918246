"""Redis: what processes share without the database, one module for each kind of key."""
