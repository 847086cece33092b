"""The loop of one incarnation: take, handle, answer, until it is to leave."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .actor import Actor, BatchActor
from .envelope import Envelope
from .errors import ActorError, UnhandledMessage

if TYPE_CHECKING:  # the child runs this loop over itself
    from .actor_child import ActorChild

logger = logging.getLogger("custodes.actors")


async def serve(actor: Actor, child: ActorChild) -> None:
    """One message at a time. An exception that leaves this is the actor's crash."""
    if isinstance(actor, BatchActor):
        await _serve_batches(actor, child)
        return
    mailbox = child.mailbox
    receive = actor.receive
    attach = None if child.hooks is None else child.hooks.attach
    while (envelope := await mailbox.get()) is not None:
        try:
            if attach is None:
                answer = await receive(envelope.message)
            else:
                answer = None  # where the context swallows what is raised
                with attach(envelope.context):
                    answer = await receive(envelope.message)
        except UnhandledMessage as error:
            if error.message is not envelope.message or error.path != child.path:
                # It is of another actor that this one asked, and so a crash like any other.
                _fail([envelope], child, error)
                raise
            _unhandled(envelope, child, error)
        except BaseException as error:
            _fail([envelope], child, error)
            raise
        else:
            child.handled += 1
            if envelope.reply is not None:
                envelope.reply.answer(answer)


async def _serve_batches(actor: BatchActor, child: ActorChild) -> None:
    while batch := await child.mailbox.get_batch(actor.batch_size):
        try:
            answers = await actor.receive_batch([envelope.message for envelope in batch])
            if len(answers) != len(batch):
                raise ActorError(  # noqa: TRY301  # a crash as any other: every asker is told below
                    child.path, f"receive_batch gave {len(answers)} answers to {len(batch)} messages"
                )
        except BaseException as error:
            _fail(batch, child, error)
            raise
        child.handled += len(batch)
        for envelope, answer in zip(batch, answers, strict=True):
            if envelope.reply is not None:
                envelope.reply.answer(answer)


def _fail(envelopes: list[Envelope], child: ActorChild, error: BaseException) -> None:
    for envelope in envelopes:
        if envelope.reply is not None:
            envelope.reply.fail(child.loss(error, in_hand=True))


def _unhandled(envelope: Envelope, child: ActorChild, error: UnhandledMessage) -> None:
    child.unhandled += 1
    if envelope.reply is None:
        logger.warning("%s", error)  # a tell has nobody else to hear of it
    else:
        envelope.reply.fail(error)
