"""Custodes."""
