"""Who may ask the Hub for what: the rules, pure.

A page of any site that a person visits can send requests to a port of their machine, and a name that such a
site owns can be made to point at it (DNS rebinding). So the Host must be one that the Hub is reached by, an
Origin must be the Hub's own, and every change carries a token that only a page of the Hub can know.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from custodes.adapters.foreign import digits

SAFE = frozenset({"GET", "HEAD"})
MAX_BODY = 256 * 1024
"""Bytes of a request. The largest that a page sends are the forms of a policy: a few thousand."""

BODY_S = 30.0
"""How long a body may take to come, in seconds."""

CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """``token`` is asked of everybody where it is not None; ``csrf`` is known to pages of this Hub alone."""

    host: str
    port: int
    token: str | None = None
    csrf: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie(self) -> str:
        """Cookies know no ports: two Hubs on one host must not overwrite each other's."""
        return f"custodes_hub_{self.port}"


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    kind: str
    message: str


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def denial(access: Access, method: str, path: str, headers: Mapping[str, str]) -> Denied | None:
    """Why a request is refused by its head alone; None where it may go on.

    ``headers`` by their names in lower case. The token of a change is asked for by :func:`csrf_ok`, once the
    body is read.
    """
    host = headers.get("host", "")
    if not _host_allowed(access, host):
        return Denied(
            status=421,
            kind="host",
            message=f"this Hub is not reached as {host[:100]!r}; open {_url(access)}",
        )
    if why := _foreign(headers, host):
        return Denied(status=403, kind="origin", message=why)
    if not _token_ok(access, path, headers):
        return Denied(
            status=401, kind="token", message="this Hub asks for its token; it printed one as it started"
        )
    if method not in SAFE and (digits(headers.get("content-length", "")) or 0) > MAX_BODY:
        return too_large()
    return None


def too_large() -> Denied:
    return Denied(status=413, kind="body", message=f"a request may have up to {MAX_BODY} bytes")


TOO_SLOW = Denied(status=408, kind="body", message=f"a request must come within {BODY_S:.0f} s")


def csrf_ok(access: Access, headers: Mapping[str, str], field: str) -> bool:
    """Whether a change comes from a page of this Hub, or from a program that was given its token."""
    if access.token is not None and _bearer(headers) is not None:
        return True  # checked before; no browser adds it by itself
    given = headers.get(CSRF_HEADER) or field
    return secrets.compare_digest(given.encode(), access.csrf.encode())


NOT_OURS = Denied(
    status=403,
    kind="csrf",
    message="this change carries no token of this Hub; load the page again (the Hub may have been started "
    "anew), or as a program send the header X-CSRF-Token with what GET /api/session names",
)


def same_token(access: Access, given: str) -> bool:
    return access.token is not None and secrets.compare_digest(given.encode(), access.token.encode())


def _host_allowed(access: Access, host: str) -> bool:
    name, port = _split(host)
    if port != access.port:
        return False
    if name in ("localhost", access.host) or is_loopback(name):
        return True
    # Bound to every address, it is reached by any of them; never by a name, which somebody else may own.
    bound = _address(access.host)
    return bound is not None and bound.is_unspecified and _address(name) is not None


def _foreign(headers: Mapping[str, str], host: str) -> str:
    """Why a request comes from another site's page ("" where it does not). A link that is followed may."""
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return f"a page of {origin[:100]!r} may not ask this Hub for anything"
    site = headers.get("sec-fetch-site", "none")
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if site not in ("same-origin", "none") and not (origin is None and followed):
        return "a page of another site may not ask this Hub for anything"
    return ""


def _token_ok(access: Access, path: str, headers: Mapping[str, str]) -> bool:
    if access.token is None or path == "/token" or path.startswith("/static/"):
        return True
    given = _bearer(headers) or _cookies(headers).get(access.cookie)
    return given is not None and same_token(access, given)


def _bearer(headers: Mapping[str, str]) -> str | None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    pairs = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
    return {name: value for name, _, value in pairs}


def _split(host: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").rstrip("."), parts.port or 80
    except ValueError:
        return "", None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _url(access: Access) -> str:
    address = _address(access.host)
    if address is not None and address.is_unspecified:
        return f"http://localhost:{access.port}/"
    return f"http://{authority(access.host, access.port)}/"


def authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
