"""One message by Apprise, as a program of its own: ``python -m custodes.overseer.post``.

A channel may hang without end (a server that answers a byte a second), and no thread can be ended: the
overseer's exit would wait for it. A program can. The address, which holds a secret, and the text come by
stdin, as JSON, so that no list of processes shows them.
"""

from __future__ import annotations

import sys

import msgspec

UNKNOWN_ADDRESS, NOT_TAKEN = 3, 4
"""Exit codes; 0 where the message was taken."""


class Letter(msgspec.Struct, frozen=True):
    url: str
    text: str


def main() -> int:
    import apprise  # half a second to import, and an extra

    letter = msgspec.json.decode(sys.stdin.buffer.read(), type=Letter)
    postman = apprise.Apprise(asset=apprise.AppriseAsset(app_id="Custodes", app_desc="Overseer"))
    if not postman.add(letter.url):
        return UNKNOWN_ADDRESS
    taken = postman.notify(body=letter.text, title="Overseer", body_format=apprise.NotifyFormat.TEXT)
    return 0 if taken else NOT_TAKEN


if __name__ == "__main__":
    sys.exit(main())
