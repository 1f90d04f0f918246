"""Ebb's doors: the command line, and the client that every door goes through."""
