"""The agent that tests of uploads serve, over each transport."""

from __future__ import annotations

import hashlib

from arp import Turn, ui


async def agent(turn: Turn) -> None:
    """Say of each file its name, type, size and whether its digest is right; or ask for one."""
    if turn.text == "form":
        answer = await turn.ask(ui.form([ui.field("report", field_type="file")], id="form"))
        await turn.say(str(answer["report"]["name"]))
        return
    for ref in turn.files:
        content = await turn.read_file(ref)
        digest = hashlib.sha256(content).hexdigest()
        await turn.say(f"[{ref.name}|{ref.mime}|{len(content)}|{digest == ref.sha256}]")
    await turn.say(turn.text)
