"""Remembering: how facts come in, are joined to others, and stay for being used."""
