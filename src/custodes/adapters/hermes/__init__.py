"""Hermes Agent as a runtime. See README.md."""
