"""The adapter of ``bench/dispatch.py``: an installed one, in process, whose runtime returns at once."""
