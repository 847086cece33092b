"""OpenCode as a runtime. See README.md."""
