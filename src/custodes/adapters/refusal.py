"""What an adapter is asked beyond what it declares: `invalid`, and said before anything runs."""

from __future__ import annotations

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.errors import instead
from custodes.adapters.port import DispatchRequest


def undeclared(descriptor: Descriptor, request: DispatchRequest) -> str:
    """What a request wants that the descriptor does not declare (seed 000: "a missing capability is an
    explicit invalid failure"), as the failure's detail; "" where there is nothing of the kind."""
    if request.effort and not descriptor.can("effort_selection"):
        return "it has no effort to choose"
    if request.effort and request.effort not in descriptor.efforts:
        return f"'{request.effort}' is not one of its efforts; {instead(request.effort, descriptor.efforts)}"
    if request.resume is not None and not descriptor.can("resume"):
        return "it cannot go on with an earlier thread"
    if request.schema is not None and not descriptor.can("structured_output"):
        return "it cannot hold its answer to a schema"
    return ""
