"""Two children of one conversation inside an asyncio host. Run it: python examples/asyncio_host.py

The runtime is a small program, so it needs no account and no network.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from custodes import Budget, Supervision, Work
from custodes.adapters.registry import Registry

PROGRAM = """
import json, os, pathlib
files = sorted(path.name for path in pathlib.Path().glob("*.txt"))
print(json.dumps({"summary": f"the {os.environ['CUSTODES_ROLE']} saw {', '.join(files)}"}))
"""


async def main(project: Path) -> None:
    async with (
        Supervision(project=project) as supervision,
        supervision.conversation("example") as parent,
        parent.fan_out(budget=Budget(children=4, wall_seconds=60)) as fan,
    ):
        fan.start(Work(role="reviewer", prompt="Which files would you read first?"))
        fan.start(Work(role="analyst", prompt="What is this project about?"))
    for outcome in fan.outcomes:
        print(outcome.role, outcome.status, outcome.evidence.summary if outcome.evidence else outcome.refusal)


def make_project(project: Path) -> None:
    """What a project needs: its agents, supervision turned on, and here an adapter of its own, trusted."""
    adapter = project / ".coding-os" / "adapters" / "command"
    adapter.mkdir(parents=True)
    (adapter / "look.py").write_text(PROGRAM)
    program = f'["{sys.executable}", "{adapter / "look.py"}"]'
    (adapter / "adapter.yaml").write_text(f"models: [{{id: look, argv: {program}}}]\n")
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    (project / ".coding-os" / "hub-settings.json").write_text('{"model_routing": {"enabled": true}}')
    for name in ("beans.txt", "kale.txt"):
        (project / name).write_text("sown in March\n")
    Registry.discover(project).trust("command")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"  # the trust of this example ends with it
        make_project(Path(folder, "project"))
        asyncio.run(main(Path(folder, "project")))
