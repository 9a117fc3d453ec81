"""What `/ready` says of the ledger: whether its facts are those whose hashes it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arp.hub.verification import Verification

if TYPE_CHECKING:
    from arp.access.principal import Principal
    from arp.hub.hub import Hub


def verification(hub: Hub, principal: Principal | None) -> Verification:
    """Begin to verify the ledger in the background, if that is due; give what is known so far.

    Args:
        hub: A started one.
        principal: Who asks. Broken sessions are named to their owner; others get their number.
    """
    hub.verifier.begin()
    return hub.verifier.told(principal.name if principal is not None else None)
