"""Administration: doctor, statistics, export and import, purge, branches, keys and indexes."""
