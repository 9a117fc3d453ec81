"""The messages to a runtime: the conversation that it has missed, then the input of a turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, InvalidArgument
from arp.runtime.contract.user_questions import DECLINE, OTHER
from arp.runtime.turns.linked_session import LinkedSession
from arp.runtime.turns.session_commands import OWN_COMMANDS
from arp.turn.past_messages import model_text
from arp.values.display import text_of

if TYPE_CHECKING:
    from arp.turn.turn import Turn

MAX_EARLIER = 200
"""Number of earlier messages that a new session gets with its first message."""
MAX_MISSED = 2_000
"""Largest length of a message from a turn that another agent answered."""

_PART = re.compile(r"message\.parts\[(\d+)\][.\w]*: ")
"""Prefix of an error text about a part of a message."""


async def message_of(turn: Turn, link: LinkedSession) -> ari.RuntimeMessage | None:
    """Return the message to the runtime for a turn; `None` if there is nothing to send."""
    parts: list[ari.ContentPart] = []
    for ref in turn.files:
        kind = ref.mime.partition("/")[0]
        parts.append(
            ari.ContentPart(
                kind if kind in ("image", "audio") else "file",  # type: ignore[arg-type]  # narrowed to two literals
                mime_type=ref.mime,
                name=ref.name,
                data=await turn.read_file(ref),
            )
        )
    text = turn.text
    if not text and not parts:
        text = _late_answer_text(turn)
    if not text and not parts:
        return None
    return ari.RuntimeMessage(content=_with_missed_messages(turn, link, text), parts=tuple(parts))


def _with_missed_messages(turn: Turn, link: LinkedSession, text: str) -> str:
    """Return a text, preceded by the part of the conversation that the runtime has missed."""
    if link.known_turns:
        before = _missed_messages(turn, link)
        heading = "Since your last answer, others have answered the user"
    else:
        before = [] if link.knows_past else _without_own_commands(turn.history(MAX_EARLIER))
        heading = "The conversation so far"
    if not before:
        return text
    lines = "\n\n".join(f"{role}: {words}" for role, words in before)
    return f"{heading}:\n\n{lines}\n\nNow the user says:\n\n{text}"


def _late_answer_text(turn: Turn) -> str:
    """Return the text for the agent if a permission is answered after its turn has ended.

    The answer runs nothing, because the turn that asked has ended. The runtime asks again if it
    still needs the permission.
    """
    if turn.input.source_component is None:
        return ""
    action, selected = turn.input.data.get("action"), turn.input.data.get("selected")
    if isinstance(selected, list):
        chosen = [str(one) for one in selected if one not in (OTHER, DECLINE)]
        reply = f"answers: {', '.join(chosen)}" if chosen else "does not answer your question"
        return f"Your work was interrupted. The user {reply}"
    fields = turn.input.data.get("fields")
    if isinstance(fields, dict):
        filled_in = "; ".join(f"{name}: {text_of(value)}" for name, value in fields.items())
        return f"Your work was interrupted. The user answers: {filled_in}"
    if action not in ("confirm", "deny"):
        return ""
    if action == "confirm":
        return "Your work was interrupted. The user agrees to what you asked for last; go on."
    payload = turn.input.data.get("payload")
    reason = payload.get("reason") if isinstance(payload, dict) else None
    because = f": {reason}" if isinstance(reason, str) and reason else "."
    return f"Your work was interrupted. The user denies what you asked for last{because}"


def _is_own_command(text: str) -> bool:
    """Return whether a user's text is a command that `RuntimeAgent` carries out itself."""
    return text.split(maxsplit=1)[:1] in [[f"/{name}"] for name in OWN_COMMANDS]


def _without_own_commands(history: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a conversation without the commands of `RuntimeAgent` and their answers."""
    kept: list[tuple[str, str]] = []
    is_own = False
    for role, text in history:
        if role == "user":
            is_own = _is_own_command(text)
        if not is_own:
            kept.append((role, text))
    return kept


def _missed_messages(turn: Turn, link: LinkedSession) -> list[tuple[str, str]]:
    """Return the messages since the last turn that the runtime knows.

    An app can answer some turns with functions of its own, such as commands, or pass only some
    turns to this agent.
    """
    known = frozenset(link.known_turns)
    missed: list[tuple[str, str]] = []
    for message in reversed(turn.messages(MAX_EARLIER)):
        if message.turn_id in known:
            break
        missed.append((message.role, model_text(message)[:MAX_MISSED]))
    return _without_own_commands(missed[::-1])


def history_of(turn: Turn) -> tuple[ari.RuntimeMessage, ...]:
    """Return the conversation before a turn as messages of a runtime, without own commands."""
    past = turn.messages(MAX_EARLIER)
    own = {message.turn_id for message in past if _is_own_command(message.text)}
    return tuple(
        ari.RuntimeMessage(
            message.role,
            model_text(message),
            tool_calls=tuple(
                ari.PastToolCall(call.id, call.name, call.args, call.result, not call.ok)
                for call in message.calls
            ),
        )
        for message in past
        if message.turn_id not in own
    )


def about_file(turn: Turn, refused: InvalidArgument) -> AriError:
    """Return the error for a refused message, with the file that was refused and the reason."""
    found = _PART.match(refused.message)
    if found is None or int(found[1]) >= len(turn.files):
        return refused
    ref = turn.files[int(found[1])]
    why = refused.message[found.end() :]
    return InvalidArgument(f"the file {ref.name!r} ({ref.mime}) was not sent: {why}")
