"""Qwen Code as a runtime. See README.md."""
