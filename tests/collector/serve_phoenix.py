"""Phoenix on loopback alone, run by the Python of its own environment: by itself it listens everywhere."""

from __future__ import annotations

import sys
from typing import Any

from grpc.aio import _server  # type: ignore[import-untyped, import-not-found, unused-ignore]  # of its environment
from phoenix.server.main import main  # type: ignore[import-not-found, unused-ignore]  # as above

everywhere = _server.Server.add_insecure_port


def on_loopback(server: Any, address: str) -> Any:
    return everywhere(server, address.replace("[::]", "127.0.0.1"))


_server.Server.add_insecure_port = on_loopback
sys.argv = ["phoenix", "serve"]
main()
