"""``pytest --custodes-adapter PATH_OR_ID``: the entry point of the adapters' contract.

It is imported by every pytest run where Custodes is installed, so it imports nothing of its own: the
contract is loaded only where the option is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("custodes").addoption(
        "--custodes-adapter",
        action="append",
        default=[],
        metavar="PATH_OR_ID",
        help="run the contract of Custodes' adapters on this one: its id, or the folder of its adapter.yaml. "
        "Other tests run beside it only where their path is given",
    )


def pytest_configure(config: pytest.Config) -> None:
    adapters = config.getoption("--custodes-adapter")
    if not adapters:
        return
    from custodes.adapters.parity.plugin import Plugin

    config.pluginmanager.register(Plugin(adapters), "custodes-adapter-contract")
    if config.args_source is not config.ArgsSource.ARGS:
        config.args = []
