"""On which systems this runs: those on which a process can be proven gone."""

from __future__ import annotations


def unsupported(platform: str) -> str:
    """Why not on this platform (as ``sys.platform`` names it), and what would work; empty where it runs."""
    if platform in ("linux", "darwin"):
        return ""
    return (
        f"on this system ({platform}) nothing proves that a child's processes are gone, so none is started; "
        "Linux and macOS have it, and WSL on Windows"
    )
