"""A child that is itself a supervisor, and what it needs of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from .child import Child
from .errors import ActorStopped, InvalidSpec
from .statistics import SupervisorStatistics


class Nestable(ABC):
    """A supervisor, seen from its place in the tree."""

    @abstractmethod
    def adopt(self, place: SupervisorChild) -> None:
        """Take a place. :raises InvalidSpec: it has one already, or cannot stand as it is."""

    @abstractmethod
    async def serve(self, started: Callable[[], None]) -> None:
        """Run until told to stop, or failed; then raise why."""

    @abstractmethod
    def request_stop(self, reason: str) -> None: ...

    @property
    @abstractmethod
    def running(self) -> bool: ...

    @abstractmethod
    def statistics(self) -> SupervisorStatistics: ...


class SupervisorChild(Child):
    """Its occupant stays in view after its end: its statistics say how it ended."""

    __slots__ = ("occupant",)

    occupant: Nestable

    def seat(self, occupant: object) -> None:
        if not isinstance(occupant, Nestable):
            raise InvalidSpec(self.path, f"start must return a supervisor, not {type(occupant).__qualname__}")
        occupant.adopt(self)
        self.occupant = occupant

    @property
    def starts_at_once(self) -> bool:
        return False

    async def occupy(self) -> None:
        await self.occupant.serve(self.begun)

    async def wait_running(self) -> None:
        """Wait for an occupant that takes children, this one or the next.

        :raises ActorStopped: there will be none.
        """
        while not self.occupant.running:
            if self.ending.reason is not None or self.state == "ended":
                raise ActorStopped(self.path, self.stop_reason or "normal")
            await self._change()

    async def clean_up(self) -> None:
        """Its children have cleaned up after themselves."""

    def halt(self, reason: str, now: float) -> None:  # noqa: ARG002  # its children's bounds are their own
        self.occupant.request_stop(reason)

    def vacate(self) -> None:
        """Nothing to let go of: it runs once."""

    def fail_waiting(self, *, for_good: bool) -> None:
        """Nobody waits for a supervisor: it has no mailbox."""

    @property
    def overran(self) -> bool:
        return False  # it takes as long as its children do

    def statistics(self) -> SupervisorStatistics:
        return self.occupant.statistics()
