"""The supervision of one project by one host: the door for embedding."""

from __future__ import annotations

import logging
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from custodes.adapters.registry import Registry
from custodes.paths import there
from custodes.policy.project import nearest_project
from custodes.policy.settings import Settings
from custodes.supervision.asks.permission_asks import Permissions
from custodes.supervision.conversation import Conversation
from custodes.supervision.dispatching.job import HostDispatch
from custodes.supervision.event_log import EVENTS_KEPT, EventLog
from custodes.supervision.events import Event, Observer
from custodes.supervision.nesting.client import Client
from custodes.supervision.outlook import Outlook
from custodes.supervision.tree import Tree

logger = logging.getLogger("custodes.supervision")


class Supervision:
    """``async with Supervision(project) as supervision``, in an asyncio or a trio host alike.

    While supervision is off it costs one stat of the settings file for each dispatch: the tree, with its
    store and its thread, starts with the first supervised work, in the host's own task tree.

    In a process that a child has started (the variables ``CUSTODES_RUN``, ``CUSTODES_TOKEN`` and
    ``CUSTODES_PROJECT`` say so) it starts no tree: the owner of that child does all the work that is asked
    for here, in the child's own tree, ledger, slots and trace. A budget given here narrows that: children,
    depth and wall seconds hold here; tokens and USD are counted by what the outcomes say that they used.
    Work for another project is refused as ``invalid``.

    :param project: the folder that holds ``.coding-os.yaml`` and ``.coding-os/``; where none is given, the
        nearest one from the current folder upward, within its repository: as on the command line.
    :param module: the host's own gate; False is the disabled path, whatever the settings say.
    :param observer: called with every event, in order; what it raises is logged and goes no further. The
        simple form of :meth:`Conversation.events`, which reads at its own pace and can be resumed.
    :param permissions: decides on what a runtime asks leave for, at any depth: an async callable that is
        given the ask and answers ``allow`` or ``deny``. Whoever answers first counts, from another process
        too (``cos runs answer``); by the policy's ``ask_seconds`` it is denied.
    :param events_kept: how many of a conversation's newest events are kept for those who read them.
    :raises NotADirectoryError: there is no such project folder.
    """

    def __init__(
        self,
        project: Path | str | None = None,
        *,
        module: bool = True,
        observer: Observer | None = None,
        permissions: Permissions | None = None,
        events_kept: int = EVENTS_KEPT,
    ) -> None:
        self.project: Path = nearest_project(Path.cwd()) if project is None else Path(project).resolve()
        if not (there(self.project) and self.project.is_dir()):
            raise NotADirectoryError(f"{self.project} is no project folder")
        if events_kept < 1:
            raise ValueError(f"events_kept={events_kept} keeps nothing; 1 or more would work")
        self.module = module
        self.permissions = permissions
        self.settings: Settings = Settings(self.project)
        self.outlook: Outlook = Outlook(self.project)
        self._observer = observer
        self._events_kept = events_kept
        self._logs: dict[str, EventLog] = {}
        self.client: Client | None = Client.of_this_process(self.project)
        """Where this process was started by a child: its owner does the work. None: this is a root."""
        self.conversations: set[Conversation] = set()
        """Those whose block is open."""
        self._tree: Tree | None = None
        self._starting = anyio.Lock()

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Every conversation has ended; the tree is stopped in reverse order, the store last."""
        for log in tuple(self._logs.values()):
            self.close_events(log)
        if self._tree is not None:
            # In a task of its own: asyncio's Task.cancel() pierces every shield in the host's.
            self._group.start_soon(self._stop, self._tree)
        if self.client is not None:
            self._group.start_soon(self.client.aclose)
        if isinstance(error, Exception):
            # The host's own exception passes as it is, not inside a group of ours.
            await self._group.__aexit__(None, None, None)
            return None
        return await self._group.__aexit__(kind, error, trace)

    async def _stop(self, tree: Tree) -> None:
        with anyio.CancelScope(shield=True):
            await tree.root.stop("the host ended")

    def conversation(
        self,
        conversation_id: str,
        *,
        adapter: str = "",
        dispatch: HostDispatch | None = None,
        permissions: Permissions | None = None,
    ) -> Conversation:
        """The conversation that is running, as the parent of its children.

        :param adapter: the runtime it runs on itself: the default where nothing else names one.
        :param dispatch: the host's own way to do work. It is used, untouched, wherever supervision does not
            apply: disabled, or below the adaptive gate.
        :param permissions: its own handler, instead of the supervision's.
        """
        return Conversation(self, conversation_id, adapter, dispatch, permissions)

    def registry(self) -> Registry:
        """The project's adapters as they stand now; stats only where no file changed."""
        return Registry.discover(self.project)

    async def tree(self) -> Tree:
        """The running tree, started by whoever asks first.

        :raises SettingsError: the settings cannot be read.
        :raises StoreError: its store cannot be opened. In either case the next one to ask tries again.

        :meta private: for the work of its conversations
        """
        if self._tree is not None:
            return self._tree
        async with self._starting:
            if self._tree is None:
                tree = Tree(self.project, self.settings, self.emit, lambda: self.conversations)
                await tree.start(self._group, self.outlook)
                self._tree = tree
            return self._tree

    def events_of(self, conversation: str) -> EventLog:
        """The log of a conversation that is running: one, however many handles it has.

        :meta private: for its conversations
        """
        log = self._logs.get(conversation)
        if log is None:
            log = self._logs[conversation] = EventLog(conversation, self._events_kept)
        return log

    def close_events(self, log: EventLog) -> None:
        """Its conversation has ended. One of the same id that begins later has a log of its own.

        :meta private: for its conversations
        """
        log.close()
        if self._logs.get(log.conversation) is log:
            del self._logs[log.conversation]

    def emit(self, event: type[Event], conversation: str, run_id: str, **fields: object) -> None:
        """Tell whoever listens; where nobody does, no event is made.

        :meta private: for what happens in its conversations
        """
        log = self._logs.get(conversation)
        if self._observer is None and (log is None or not log.listened):
            return
        told = (log or self.events_of(conversation)).tell(event, run_id, fields)
        if self._observer is None:
            return
        try:
            self._observer(told)
        except Exception:
            logger.exception("the observer raised on %s", event.__name__)
