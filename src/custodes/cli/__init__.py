"""The command line: ``cos`` (and ``custodes``). A surface: it asks, shows and ends; it holds no rule.

Nothing heavy is imported here or by the commands that only read settings.
"""

import os
import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """The console script. Ctrl-C is a line and an exit code from here on, also while modules still load."""
    try:
        from custodes.cli.console import main as program

        code = program()
    except KeyboardInterrupt:
        os.write(2, b"cos: interrupted\n")
        code = INTERRUPTED
    sys.exit(code)
