"""Ids of transfers, which say where a surface comes from and that its session gives it away.

Theory of operation. A renderer carries a surface from one server to another, and is trusted by
neither. So the giving server signs the id of the transfer with a key that both servers have: `ID`,
the giving session and a MAC over both, over the taking session and over their user. A renderer
passes the id on as it is, and can make none itself.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from msgspec import Struct

CONTEXT: Final = "arp transfer 1"
"""What the MAC is made over first, so that it is one of nothing else that the key may sign."""


class TransferEnds(Struct, frozen=True):
    """Between which sessions a surface goes."""

    source: str
    """The giving session."""
    target: str
    """The taking session."""
    owner: str
    """The user of both."""


def new_transfer_id(ends: TransferEnds, key: str | None) -> str:
    """Return the id of a transfer; without a key only this server can tell that it is open."""
    unique = secrets.token_urlsafe(12)
    if key is None:
        return unique
    source = urlsafe_b64encode(ends.source.encode()).decode().rstrip("=")
    return f"{unique}.{source}.{_mac(unique, ends, key)}"


def signed_source(transfer_id: str, target: str, owner: str, key: str) -> str | None:
    """Return the session that gives a surface away; `None` if the id does not prove that.

    Args:
        transfer_id: As a renderer brings it.
        target: The session that is to take the surface.
        owner: Its user.
        key: That of both servers.
    """
    unique, _, rest = transfer_id.partition(".")
    source, _, mac = rest.partition(".")
    try:
        name = urlsafe_b64decode(source + "=" * (-len(source) % 4)).decode()
    except ValueError:
        return None
    expected = _mac(unique, TransferEnds(name, target, owner), key)
    return name if hmac.compare_digest(mac.encode(), expected.encode()) else None


def _mac(unique: str, ends: TransferEnds, key: str) -> str:
    parts = (CONTEXT, unique, ends.source, ends.target, ends.owner)
    # Each part follows its length, so that no two lists of parts are the same text.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()
