"""Administration: examination, figures, export and import, keys and indexes."""
