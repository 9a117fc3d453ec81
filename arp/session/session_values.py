"""Values of a session that agents and users set: states, settings, and slash commands.

Theory of operation. A value is recorded as a whole, and only if it has changed. What cannot be
stored is refused before anything is recorded.
"""

from __future__ import annotations

import msgspec

from arp.protocol.errors import ResourceLimit
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import FINAL_STATUSES, Command
from arp.session.session import Session
from arp.session.session_settings import MAX_COMMANDS_BYTES, MAX_STATE_BYTES


def update_state(session: Session, turn_id: str, state: JsonObject) -> None:
    """Record the agent's state of this session if it has changed.

    Args:
        session: The session.
        turn_id: The turn that changed it; the state belongs to the branch of that turn.
        state: Plain JSON. The caller must not change it afterwards.

    Raises:
        ResourceLimit: It is larger than `MAX_STATE_BYTES`; nothing is recorded.
        ValueError: It contains a secret; nothing is recorded. A redacted state would not be
            what the agent wrote when it is read back.
    """
    if _check_state(session, state, session.settings.state, "turn.state"):
        session.in_turn("session.updated", turn_id, {"state": state})


def update_shared_state(session: Session, turn_id: str, state: JsonObject) -> None:
    """Record the state that the agent shares with renderers; limits as in `update_state`."""
    if _check_state(session, state, session.screen.shared_state, "turn.shared_state"):
        session.in_turn("session.updated", turn_id, {"sharedState": state})


def _check_state(session: Session, state: JsonObject, before: JsonObject, where: str) -> bool:
    """Return whether a state differs from the previous one; raise if it cannot be stored.

    Args:
        session: The session.
        state: The new state.
        before: The previous state.
        where: Name of the state in error messages.

    Raises:
        ResourceLimit: As `update_state`.
        ValueError: As `update_state`.
    """
    # Compared as JSON, because in Python 1 == True: that change would be lost.
    data = msgspec.json.encode(state)
    if data == msgspec.json.encode(before):
        return False
    if len(data) > MAX_STATE_BYTES:
        raise ResourceLimit(
            f"{where}: {len(data)} bytes as JSON; at most {MAX_STATE_BYTES}. Keep what is "
            "large as a file: await turn.save_file(…)",
            detail=where,
        )
    for name, value in state.items():
        if session.log.redactor.clean(name)[1]:
            raise ValueError(f"{where}: a key is a secret; keep secrets in the environment")
        _, found = session.log.redactor.clean({name: value})
        if found:
            raise ValueError(
                f"{where}[{name!r:.60}] holds a secret ({', '.join(sorted(found))}); keep "
                "secrets in the environment"
            )
    return True


def choose_settings(session: Session, chosen: JsonObject) -> None:
    """Record the user's settings of the session if they have changed.

    Raises:
        ResourceLimit: They are larger than `MAX_STATE_BYTES`; nothing is recorded.
    """
    data = msgspec.json.encode(chosen)
    if data == msgspec.json.encode(session.settings.chosen):
        return
    if len(data) > MAX_STATE_BYTES:
        raise ResourceLimit(
            f"settings: {len(data)} bytes as JSON; at most {MAX_STATE_BYTES}", detail="settings"
        )
    session.record("session.updated", {"settings": chosen})


def set_commands(session: Session, turn_id: str | None, commands: tuple[Command, ...]) -> None:
    """Record the session's own slash commands if they have changed.

    Args:
        session: The session.
        turn_id: The turn that sets them; like `turn.state`, they belong to its branch. `None`
            if no turn sets them; they then belong to the shown branch.
        commands: All commands of the session.

    Raises:
        ResourceLimit: They are larger than `MAX_COMMANDS_BYTES`; nothing is recorded.
    """
    if commands == session.screen.commands:
        return
    data = msgspec.json.encode(commands)
    if len(data) > MAX_COMMANDS_BYTES:
        raise ResourceLimit(
            f"commands: {len(data)} bytes as JSON; at most {MAX_COMMANDS_BYTES}. Shorten their "
            "descriptions",
            detail="commands",
        )
    payload: JsonObject = {"commands": msgspec.json.decode(data)}
    # Only a fact of a turn belongs to a branch. Without a turn, the commands would also show
    # on branches that never had them.
    setter = turn_id or _newest_turn(session)
    if setter is None:
        session.record("session.updated", payload)
    else:
        session.in_turn("session.updated", setter, payload)


def _newest_turn(session: Session) -> str | None:
    """Return the running turn, else the newest one that is over; `None` if there is none."""
    turns = session.screen.turns
    over = (name for name in reversed(turns) if turns[name].status in FINAL_STATUSES)
    return session.turns.running or next(over, None)
