"""Forgetting: how facts fade, end, are merged or erased, and how that is foreseen, bounded and undone."""
