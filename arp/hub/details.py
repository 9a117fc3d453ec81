"""What went wrong in an agent, for its author's own screen: told at once, and never again.

Only under `arp serve --debug`. Nothing of it is a fact, so it is in no ledger, and whoever comes
later does not get it.
"""

from __future__ import annotations

import traceback

from arp.hub.live import LiveSession
from arp.hub.loop_watch import is_authors
from arp.protocol.errors import ErrorCode, ErrorPayload
from arp.protocol.messages import ErrorMessage

MAX_DETAILS = 16_000
"""Characters of a traceback that are shown, the newest; deep ones repeat themselves."""


def traceback_of(error: BaseException) -> str:
    """Return an exception's traceback from the author's first line on; the exception is last."""
    place = first = error.__traceback__
    while place is not None and not is_authors(place.tb_frame.f_code.co_filename):
        place = place.tb_next
    lines = traceback.format_exception(type(error), error, place or first)
    return "".join(lines).rstrip()[-MAX_DETAILS:]


def show_details(live: LiveSession, turn_id: str, what: str, details: str) -> None:
    """Send an `error` with details to whoever is connected to a session now.

    It goes out behind what the turn has shown until now. Where `what` is the text of an error that
    the turn has too, renderers show the details with that one.
    """
    clean = live.session.log.redactor.clean
    payload = ErrorPayload(
        str(clean(what)[0]), ErrorCode.AGENT_FAILED, debug=str(clean(details)[0])
    )
    message = ErrorMessage(payload=payload, session_id=live.id, turn_id=turn_id)

    def tell() -> None:
        for viewer in live.viewers.values():
            viewer.tell(message)

    live.after_write(tell)
