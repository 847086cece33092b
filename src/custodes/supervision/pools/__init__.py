"""Capacity: the breaker of each model pool, folded and kept by one actor."""
