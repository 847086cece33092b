"""The command line: ``cos`` (and ``custodes``). A surface: it asks, shows and ends; it holds no rule.

Nothing heavy is imported here or by the commands that only read settings.
"""

from custodes.cli.app import main

__all__ = ["main"]
