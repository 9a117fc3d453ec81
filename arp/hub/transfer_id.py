"""Ids of surface transfers, which prove that the source session requested the transfer.

Theory of operation. A renderer moves a surface from one server to another, and neither server
trusts it. So the source server signs the id of the transfer with a key that both servers have. The
id contains a unique part, the source session, and a MAC over both, the target session and the
owner. A renderer passes the id on unchanged and cannot create one.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from msgspec import Struct

from arp.net.signer import Signer

CONTEXT: Final = "arp transfer 1"
"""Prefix of the text under the MAC; it prevents use of this MAC for another purpose of the key."""


class TransferEnds(Struct, frozen=True):
    """Source, target and owner of a transfer."""

    source: str
    """Id of the source session."""
    target: str
    """Id of the target session."""
    owner: str
    """User who owns both sessions."""


def new_transfer_id(ends: TransferEnds, key: str | None) -> str:
    """Return the id of a transfer; without a key it has no proof and is valid in this server."""
    unique = secrets.token_urlsafe(12)
    if key is None:
        return unique
    source = urlsafe_b64encode(ends.source.encode()).decode().rstrip("=")
    return f"{unique}.{source}.{Signer(key.encode()).signature(_signed_text(unique, ends))}"


def signed_source(transfer_id: str, target: str, owner: str, key: str) -> str | None:
    """Return the source session of a signed transfer id; `None` if the signature is not valid.

    Args:
        transfer_id: Id that a renderer brings.
        target: Session that receives the surface.
        owner: Owner of that session.
        key: Key that both servers have.
    """
    unique, _, rest = transfer_id.partition(".")
    source, _, mac = rest.partition(".")
    try:
        name = urlsafe_b64decode(source + "=" * (-len(source) % 4)).decode()
    except ValueError:
        return None
    text = _signed_text(unique, TransferEnds(name, target, owner))
    return name if Signer(key.encode()).is_valid(text, mac) else None


def _signed_text(unique: str, ends: TransferEnds) -> bytes:
    parts = (CONTEXT, unique, ends.source, ends.target, ends.owner)
    # Each part follows its length, so that no two lists of parts are the same text.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return text.encode("utf-8", "surrogatepass")
