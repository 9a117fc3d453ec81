"""`/settings`: changes the settings of a session, on every renderer that shows forms."""

from __future__ import annotations

from arp.protocol.components import Component
from arp.turn.question_outcome import DECLINED
from arp.turn.turn import Turn


async def change_settings(turn: Turn) -> None:
    """Ask for the settings of the session and store the answer."""
    settings = turn._known_settings()
    now = settings.plain(turn.settings)
    answer = await turn.ask(
        settings.kind, can_decline=True, values=now, title="Settings", submit_label="Save"
    )
    if answer is DECLINED:
        return
    turn.update_settings(**settings.plain(answer))
    turn.show(Component("", "status-card", {"status": "success", "title": "Settings saved"}))
