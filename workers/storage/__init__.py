"""The tables: the only SQL in Python, one module a table. Functions take the connection first and never commit."""
