"""An actor before the project's file: what waits in its mailbox is one batch, one fold and one commit.

Other processes do the same with the same file: the commit's ``BEGIN IMMEDIATE`` puts the folds of all of
them in one order. What could not be written is owed to the file, within a bound: on a full disk a host may be
refused for days, and each refusal has a row to be written.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from custodes.actors import ActorError, BatchActor, Message
from custodes.store import Connection, Database, StoreError, StoreLocked, StoreUnusable
from custodes.supervision.record.clock import Now

WAIT_S = 1.0
"""How long an ask may wait for other writers, in seconds; then it is refused."""
LAST_WAIT_S = 5.0
"""The same for what is still owed to the file when the actor stops."""
OWED = 4_096
"""How many messages are owed to the file at most; some MB, and a fold of a quarter of a second."""


class _Retry(msgspec.Struct, Message[None], frozen=True):
    """To itself: write what is owed."""


class FileActor(BatchActor):
    """``database`` and ``now`` are called for each batch. ``owed`` is what the incarnation before could not
    write.

    An error of the store is no crash: an ask is answered without it (:meth:`unwritten`), and what was told is
    kept and written before anything else, at the next batch or at the stop at the latest; where the file was
    closed by then (the store itself has crashed), by the next incarnation. Nor is a message that cannot be
    written at all: it fails alone.
    """

    mailbox_size = 16_384
    logger: ClassVar[logging.Logger]
    told: ClassVar[tuple[type[Message[Any]], ...]]
    """The messages that are kept until they are written; over :data:`OWED` the last kind goes first."""
    lost: ClassVar[str]
    """What is said of those that never could be: a format of their number."""

    def __init__(
        self,
        database: Callable[[], Database],
        now: Callable[[], Now],
        wait_s: float = WAIT_S,
        owed: list[Message[Any]] | None = None,
    ) -> None:
        self._database = database
        self._now = now
        self._wait_s = wait_s
        self._owed: list[Message[Any]] = [] if owed is None else owed

    @abstractmethod
    async def write(self, batch: list[Message[Any]], wait_s: float) -> list[Any]:
        """Fold it and commit; the answers, in order. :raises StoreError: nothing was written."""

    @abstractmethod
    def unwritten(self, message: Message[Any], error: StoreError) -> Any:
        """The answer to what was not written."""

    async def on_start(self) -> None:
        if self._owed:
            self.context.ref.tell(_Retry())

    async def receive_batch(self, messages: Sequence[Message[Any]]) -> Sequence[Any]:
        owed = self._taken()
        batch = [*owed, *(message for message in messages if not isinstance(message, _Retry))]
        answers = await self._answers(batch, self._wait_s) if batch else []
        answered = iter(answers[len(owed) :])
        return [None if isinstance(message, _Retry) else next(answered) for message in messages]

    async def on_stop(self, reason: str) -> None:  # noqa: ARG002 - whatever the reason
        if owed := self._taken():
            await self._answers(owed, LAST_WAIT_S)
        if self._owed:
            self.logger.error(self.lost, len(self._owed))

    def _taken(self) -> list[Message[Any]]:
        owed = self._owed.copy()
        self._owed.clear()
        return owed

    async def _answers(self, batch: list[Message[Any]], wait_s: float) -> list[Any]:
        """The answers, in order, with all of it written, or owed, or each by itself where one of them cannot
        be written at all."""
        try:
            return await self.write(batch, wait_s)
        except StoreError as error:
            self.logger.warning("%d messages could not be written: %s", len(batch), error)
            self._owe(batch, error)
            return [self.unwritten(message, error) for message in batch]
        except Exception as error:
            if len(batch) > 1:
                return [answer for message in batch for answer in await self._answers([message], wait_s)]
            (message,) = batch
            what = f"{type(message).__name__} holds what cannot be written ({type(error).__name__})"
            self.logger.error("%s", what)  # noqa: TRY400 - the error's words may hold the work's own
            return [self.unwritten(message, StoreUnusable(self._database().path, what))]

    def _owe(self, batch: Sequence[Message[Any]], error: StoreError) -> None:
        self._owed += [message for message in batch if isinstance(message, self.told)]
        if (over := len(self._owed) - OWED) > 0:
            least = sorted(self._owed, key=lambda message: self.told.index(type(message)))[-over:]
            gone = set(map(id, least))
            self._owed[:] = [message for message in self._owed if id(message) not in gone]
            self.logger.error(self.lost, over)
        if self._owed and isinstance(error, StoreLocked):
            with suppress(ActorError):  # it stops: on_stop writes them
                self.context.ref.tell(_Retry())  # which waits for the writer again, so this is no busy loop


class Folded(Protocol):
    """What was read, with a batch of messages folded over it."""

    @property
    def dirty(self) -> bool: ...
    def answers(self, messages: Sequence[Message[Any]]) -> list[Any]: ...


F = TypeVar("F", bound=Folded)


async def fold_and_save(
    database: Database,
    messages: Sequence[Message[Any]],
    load: Callable[[Connection], Awaitable[F]],
    save: Callable[[Connection, F], Awaitable[None]],
    wait_s: float,
    *,
    read_first: bool,
) -> tuple[F, list[Any]]:
    """The fold and its answers; what they say stands on the disk once this returns.

    ``read_first`` looks without waiting for a writer, and writes only if something would change; it is for
    batches that probably change nothing, and makes no difference to the outcome.

    :raises StoreError: nothing was written.
    """

    async def look(connection: Connection) -> tuple[F, list[Any]]:
        fold = await load(connection)
        return fold, fold.answers(messages)

    async def change(connection: Connection) -> tuple[F, list[Any]]:
        fold, answers = await look(connection)
        await save(connection, fold)
        return fold, answers

    if read_first:
        seen = await database.read(look)
        if not seen[0].dirty:
            return seen
    return await database.write(change, wait_s)
