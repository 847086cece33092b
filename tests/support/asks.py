"""Somebody to ask, for who puts asks: they are kept, and answered when a test says so."""

from __future__ import annotations

from custodes.adapters.asks import Answered, Asks
from custodes.adapters.port import PermissionAnswer, PermissionAsk


class Recorded(Asks):
    """Nothing runs beside it. ``answer`` answers the last one."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asks: list[PermissionAsk] = []
        self.answers: list[Answered] = []

    def put(self, ask: PermissionAsk, answered: Answered) -> None:
        self.asks.append(ask)
        self.answers.append(answered)

    def answer(self, said: PermissionAnswer) -> None:
        self.answers[-1](said)
