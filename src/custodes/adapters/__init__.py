"""What runtimes there are and how to speak to them.

`Registry.discover(project)` finds the adapters, `port` is the contract each of them keeps, and
`descriptor` what one says of itself. Importing this package loads no runtime and no YAML parser.
"""

from custodes.adapters.descriptor import Capability, Descriptor, Model
from custodes.adapters.errors import AdapterError, DescriptorError, UntrustedError
from custodes.adapters.port import (
    Category,
    DispatchRequest,
    DispatchResult,
    Failure,
    PermissionAnswer,
    PermissionAsk,
    Permit,
    ProfileSetting,
    ProfileSwitch,
    Progress,
    ProgressSink,
    Runtime,
    SwitchError,
    Transcript,
    Usage,
)
from custodes.adapters.readiness import ReadinessState
from custodes.adapters.registry import Registry

__all__ = [
    "AdapterError",
    "Capability",
    "Category",
    "Descriptor",
    "DescriptorError",
    "DispatchRequest",
    "DispatchResult",
    "Failure",
    "Model",
    "PermissionAnswer",
    "PermissionAsk",
    "Permit",
    "ProfileSetting",
    "ProfileSwitch",
    "Progress",
    "ProgressSink",
    "ReadinessState",
    "Registry",
    "Runtime",
    "SwitchError",
    "Transcript",
    "UntrustedError",
    "Usage",
]
