"""Codex as a runtime. See README.md."""
