"""The call of a runtime: under a deadline of our own, and whatever comes of it a result."""

from __future__ import annotations

import logging
import traceback
from typing import get_args

import anyio
import msgspec
from msgspec.structs import replace

from custodes.adapters.errors import AdapterError
from custodes.adapters.port import Category, DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process_errors import KeeperError
from custodes.adapters.registry import Registry

logger = logging.getLogger("custodes.dispatch")

CANCEL_GRACE_S = 5.0
"""How long a runtime may take to end what it started once it is told to, in seconds."""
PROOF_BOUND_S = 5.0
"""How long the proof that nothing is left may take after that, in seconds."""
CATEGORIES = get_args(Category)


async def call_runtime(
    registry: Registry,
    request: DispatchRequest,
    adapter: str,
    progress: ProgressSink,
    scope: anyio.CancelScope | None = None,
) -> DispatchResult:
    """Call the adapter's runtime under a deadline of our own; whatever it raises becomes a failure.

    The deadline lies past the runtime's own, by the grace it has to end what it started.

    :param scope: what to run it in, for whoever may have to end it sooner; that reads as a timeout, too.
    """
    try:
        runtime = registry.runtime(adapter)
    except AdapterError as error:
        failure = Failure(category="unavailable", reason=str(error), outcome="known_failed")
        return DispatchResult(failure=failure)
    scope = scope or anyio.CancelScope()
    scope.deadline = anyio.current_time() + request.timeout_s + CANCEL_GRACE_S + PROOF_BOUND_S
    try:
        with scope:
            return checked(await runtime.dispatch(request, progress))
    except NoResultError as error:
        logger.warning("adapter %s returned what is no result: %s", adapter, error)
        reason = "the adapter returned what is no result"
        return DispatchResult(failure=Failure(category="provider", reason=reason))
    except KeeperError as error:  # also in place of a cancellation, which cannot say what is left
        left = tuple(str(survivor) for survivor in error.survivors)
        reason = "its keeper could not prove the end of what it started"
        return DispatchResult(failure=Failure(category="provider", reason=reason, left=left))
    except TimeoutError:
        pass  # the runtime's own
    except (Exception, SystemExit) as error:  # code that was written to be a program ends itself
        # Where it was, without what it said: an exception's words may hold a secret.
        where = "".join(traceback.format_tb(error.__traceback__))
        kind = type(error).__name__
        logger.error("adapter %s raised %s instead of a failure\n%s", adapter, kind, where)  # noqa: TRY400
        reason = f"the adapter raised {type(error).__name__}"
        return DispatchResult(failure=Failure(category="provider", reason=reason))
    reason = f"no answer within {request.timeout_s:g} s, nor an end after it"
    return DispatchResult(failure=Failure(category="timeout", reason=reason))


class NoResultError(Exception):
    """What an adapter returned is no result."""


def checked(result: object) -> DispatchResult:
    """What an adapter returned, once every field of it is what its type says and could be stored.

    :raises NoResultError: it is not; the field is named, its value is not.
    """
    if not isinstance(result, DispatchResult):
        raise NoResultError(f"a {type(result).__name__}")
    failure = result.failure
    if isinstance(failure, Failure) and failure.category not in CATEGORIES:
        failure = Failure(category="provider", reason="unclassified", accepted=failure.accepted)
        result = replace(result, failure=failure)
    try:
        return msgspec.json.decode(msgspec.json.encode(result), type=DispatchResult)
    except msgspec.ValidationError as error:
        raise NoResultError(str(error)) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise NoResultError(type(error).__name__) from None
