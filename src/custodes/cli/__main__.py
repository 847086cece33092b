"""``python -m custodes.cli``: the same program where no console script is installed."""

from custodes.cli import main

main()
