"""``cos completion``: the script that lets a shell complete commands, options and their words."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from custodes.cli.output import DONE, write


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell it is for.")], /
) -> int:
    """Print the script that lets your shell complete all this.

    The shell's start-up file takes:
    bash: eval "$(cos completion bash)"   zsh: eval "$(cos completion zsh)"
    fish: cos completion fish | source
    """
    from custodes.cli.app import make_app

    write(make_app().generate_completion(shell=shell))
    return DONE
