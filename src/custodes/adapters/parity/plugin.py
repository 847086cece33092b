"""The contract as pytest items: one for each check and event loop, collected for ``--custodes-adapter``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from custodes.adapters.errors import AdapterError
from custodes.adapters.parity.checks import CHECKS, Check
from custodes.adapters.parity.driving import ContractError
from custodes.adapters.parity.subject import Subject, find_subject

LOOPS = ("asyncio", "trio")


class Contract(pytest.Collector):
    """All checks of one adapter."""

    def __init__(self, subject: Subject, **node: object) -> None:
        super().__init__(**node)  # type: ignore[arg-type]  # pytest's own keywords, passed on
        self.subject = subject

    def collect(self) -> Iterator[pytest.Item]:
        for name, check in CHECKS.items():
            for loop in LOOPS:
                yield ContractItem.from_parent(
                    self, name=f"{name} [{loop}]", subject=self.subject, check=check, loop=loop
                )


class ContractItem(pytest.Item):
    """One check on one loop, in an empty folder of its own."""

    def __init__(self, subject: Subject, check: Check, loop: str, **node: object) -> None:
        super().__init__(**node)  # type: ignore[arg-type]  # as above
        self.subject = subject
        self.check = check
        self.loop = loop
        self.keywords["custodes_adapter"] = True

    def runtest(self) -> None:
        factory: pytest.TempPathFactory = self.config._tmp_path_factory  # type: ignore[attr-defined]  # pytest gives items, which have no fixtures, no other way to it
        folder = factory.mktemp("custodes-adapter")
        anyio.run(self.check, self.subject, folder, backend=self.loop)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # noqa: ARG002 - pytest's signature
        """What the adapter does wrong, without the traceback of who found it."""
        if isinstance(excinfo.value, ContractError):
            return f"adapter '{self.subject.id}' breaks the contract\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return Path(self.subject.descriptor.folder), None, f"adapter '{self.subject.id}' {self.name}"


class Plugin:
    """Registered only where the option is given."""

    def __init__(self, adapters: list[str]) -> None:
        self.adapters = adapters

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """After what else was asked for (nothing, where no path was), before it is shuffled or deselected."""
        for named in self.adapters:
            try:
                subject = find_subject(named, config.invocation_params.dir)
            except AdapterError as error:
                raise pytest.UsageError(f"--custodes-adapter {named}: {error}") from error
            contract = Contract.from_parent(session, name=f"custodes-adapter[{subject.id}]", subject=subject)
            items.extend(contract.collect())
        session.testscollected = len(items)
