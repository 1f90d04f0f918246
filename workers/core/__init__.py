"""The pure core: functions over numbers, texts and arrays. No database, no clock, no settings."""
