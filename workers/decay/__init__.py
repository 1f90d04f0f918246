"""Decay: passes, clean-ups and reviews that change or end facts without a request, and their limits."""
