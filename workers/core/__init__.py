"""The ideas: pure functions over arrays. No database, no clock, no settings."""
