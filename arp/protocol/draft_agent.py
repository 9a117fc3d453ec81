"""Translation of an agent side that only knows the v0.1 draft into ARP 1.

Theory of operation. `completed` adds the fields that such an agent side leaves out of its messages.
The draft has no turns: the agent side does not echo or acknowledge inputs, and it ends its stream
at a question. `DraftTurns` creates the turns on the renderer side. Each input starts a turn, except
the answer to a question of an open turn. A message belongs to the oldest open turn, and a final
commit ends that turn. If the turn has an open question, its status is then `waiting`, as for an
interrupted turn, and the next input completes it.

Source: protocol.md, differences from the v0.1 draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from arp.protocol.catalog import CATALOG, asks, split_children
from arp.protocol.components import Component, from_object
from arp.protocol.errors import NO_CODE, ErrorPayload
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    AgentHello,
    AgentMessage,
    Commit,
    Delta,
    ErrorMessage,
    Input,
    InputAck,
    InputEcho,
    Patch,
    Render,
    ToolEnd,
    ToolStart,
    TurnMessage,
    TurnStatus,
)
from arp.protocol.patch import Insert, PatchOp, Replace, Update

_IN_SESSION = frozenset(("delta", "tool_start", "tool_end", "render", "patch", "commit"))
"""Message types of the draft that belong to a session."""

_LISTS = {"render": "components", "patch": "ops"}

_PAYLOADS: dict[str, JsonObject] = {
    "delta": {"delta": ""},
    "tool_start": {"tool": "", "args": ""},
    "tool_end": {"tool": "", "ok": True},
}

NO_TEXT = "The server sent an error without a text."

CUT_OFF = "The connection was lost before the answer was complete. Ask again."


def completed(plain: JsonObject) -> JsonObject:
    """Return a message with the missing fields added; fields that are present are kept."""
    kind = plain.get("type")
    if kind == "error":
        return {**plain, "payload": _error_payload(plain)}
    if kind == "hello":
        capabilities = _filled(plain.get("capabilities"), {"components": []})
        return {**plain, "capabilities": capabilities}
    if kind not in _IN_SESSION:
        return plain
    full: JsonObject = {**plain, "session_id": plain.get("session_id") or ""}
    if kind in _LISTS:
        full[_LISTS[kind]] = plain.get(_LISTS[kind]) or []
    elif kind in _PAYLOADS:
        full["payload"] = _filled(plain.get("payload"), _PAYLOADS[kind])
    return full


def _error_payload(plain: JsonObject) -> Json:
    payload = plain.get("payload")
    if payload is not None and not isinstance(payload, dict):
        return payload
    words = payload or {}
    text = words.get("message") or plain.get("message") or NO_TEXT
    return _filled(words, {"error": text, "code": NO_CODE})


def _filled(value: Json, defaults: JsonObject) -> JsonObject:
    """Return an object with defaults for absent and null fields."""
    if value is None:
        return dict(defaults)
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # the decoder refuses it and names the path
    return {**value, **{key: one for key, one in defaults.items() if value.get(key) is None}}


def may_be_draft(hello: AgentHello) -> bool:
    """Return whether an agent side lacks `resume`, so that it may not understand our `hello`."""
    return "resume" not in hello.capabilities.features


def shows_draft(message: AgentMessage) -> bool:
    """Return whether a message shows an agent side of the draft, when `session` was expected."""
    if isinstance(message, ErrorMessage):
        return message.payload.code == NO_CODE
    return isinstance(message, Delta | ToolStart | Render | Commit) and message.seq is None


class DraftTurns:
    """The turns of a session with an agent side that does not name turns."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[str] = []
        """Turns without a final commit, oldest first."""
        self._failed: set[str] = set()
        """Open turns with an error."""
        self._asking: dict[str, str] = {}
        """Turns by the id of their unanswered question."""

    def connected(self) -> list[AgentMessage]:
        """Return messages that end the turns left open by the previous connection."""
        out: list[AgentMessage] = []
        for turn_id in self._open:
            payload = ErrorPayload(CUT_OFF, NO_CODE)
            out.append(ErrorMessage(payload=payload, session_id="", turn_id=turn_id))
            out.append(TurnMessage(session_id="", turn_id=turn_id, status="failed"))
            out.append(Commit(session_id="", turn_id=turn_id, final=True))
        self._open.clear()
        self._failed.clear()
        return out

    def begin(self, message: Input, input_id: str) -> list[AgentMessage]:
        """Return the messages that an agent side of ARP 1 would send for an input."""
        ack = InputAck(id=input_id, session_id="")
        if message.input_type in ("focus", "unfocus", "resize"):
            return [ack]
        asking = self._asking.get(message.source_component or "")
        out: list[AgentMessage] = self._answered(message)
        turn_id = asking if asking is not None and asking in self._open else self._new()
        echo = InputEcho(
            session_id="",
            turn_id=turn_id,
            surface=message.surface,
            input_type=message.input_type,
            data=message.data,
            source_component=message.source_component,
            id=input_id,
        )
        running = TurnMessage(session_id="", turn_id=turn_id, status="running")
        return [*out, echo, running, replace(ack, turn_id=turn_id)]

    @property
    def is_open(self) -> bool:
        """Whether a turn is open, so that the next message answers an input."""
        return bool(self._open)

    def committed(self, changes: Sequence[Render | Patch], commit: Commit) -> list[AgentMessage]:
        """Return the messages of one commit of the object dialect, with their turn.

        Without an open turn, new components on `main` create a turn that ends with the commit.
        Changes of existing components and the content of other surfaces belong to the newest turn.
        """
        if not self._open and not (commit.surface == "main" and any(map(_adds, changes))):
            newest = f"d{self._count}" if self._count else None
            changed = [replace(one, turn_id=newest) for one in changes]
            return [*changed, replace(commit, turn_id=newest, final=False)]
        if not self._open:
            commit = replace(commit, final=True)
        return [placed for one in (*changes, commit) for placed in self._in_turn(one)]

    def placed(self, message: AgentMessage) -> list[AgentMessage]:
        """Return a message with its turn, and the messages for a change of the turn's status."""
        match message:
            case ErrorMessage(payload=payload):
                if payload.id is not None or message.turn_id is not None or not self._open:
                    return [message]
                self._failed.add(self._open[0])
                return [replace(message, turn_id=self._open[0])]
            case Delta() | ToolStart() | ToolEnd() | Render() | Patch() | Commit():
                return self._in_turn(message) if message.turn_id is None else [message]
            case _:
                return [message]

    def _in_turn(
        self, message: Delta | ToolStart | ToolEnd | Render | Patch | Commit
    ) -> list[AgentMessage]:
        if isinstance(message, Commit) and not self._open:
            return [message]
        out: list[AgentMessage] = []
        if not self._open:
            turn = self._new()
            out.append(TurnMessage(session_id="", turn_id=turn, status="running"))
        turn_id = self._open[0]
        for name in _questions(message):
            self._asking[name] = turn_id
        if not (isinstance(message, Commit) and message.final):
            return [*out, replace(message, turn_id=turn_id)]
        del self._open[0]
        is_waiting = turn_id in self._asking.values()
        status: TurnStatus = "waiting" if is_waiting else "completed"
        if turn_id in self._failed:
            self._failed.discard(turn_id)
            status = "failed"
        ended = TurnMessage(session_id="", turn_id=turn_id, status=status)
        return [ended, replace(message, turn_id=turn_id)]

    def _new(self) -> str:
        self._count += 1
        self._open.append(f"d{self._count}")
        return self._open[-1]

    def _answered(self, message: Input) -> list[AgentMessage]:
        """Return messages that close the answered question and complete waiting turns."""
        out: list[AgentMessage] = []
        name = message.source_component
        if name is not None and name in self._asking:
            ops: list[PatchOp] = [Update(name, "props.state", "answered"), *_answer(name, message)]
            out.append(Patch(session_id="", surface=message.surface, ops=ops))
            out.append(Commit(session_id=""))
        ended = {turn_id for turn_id in self._asking.values() if turn_id not in self._open}
        out += (
            TurnMessage(session_id="", turn_id=turn_id, status="completed")
            for turn_id in sorted(ended)
        )
        self._asking = {
            key: turn for key, turn in self._asking.items() if key != name and turn not in ended
        }
        return out


def _answer(name: str, message: Input) -> Iterator[Update]:
    """Yield the update that shows an answer in its question, as an agent side of ARP 1 does."""
    data = message.data
    answer: Json = None
    if message.input_type == "action" and data.get("action") in ("confirm", "deny"):
        answer = data["action"] == "confirm"
    elif message.input_type == "selection":
        answer = data.get("selected")
    elif message.input_type == "text":
        answer = data.get("text")
    if answer is not None:
        yield Update(name, "props.answer", answer)


def _questions(message: AgentMessage) -> Iterator[str]:
    """Yield the ids of the questions in a message."""
    shown: Iterable[Component] = ()
    if isinstance(message, Render):
        shown = message.components
    elif isinstance(message, Patch):
        shown = [op.component for op in message.ops if isinstance(op, Insert | Replace)]
    waiting = list(shown)
    while waiting:
        one = waiting.pop()
        try:
            own, children = split_children(one.type, one.props)
            waiting += map(from_object, children)
        except (KeyError, TypeError, AttributeError):
            continue  # malformed; the commit will be refused
        if one.type in CATALOG and asks(one.type, own):
            yield one.id


def _adds(change: Render | Patch) -> bool:
    """Return whether a change adds components."""
    if isinstance(change, Render):
        return bool(change.components)
    return any(isinstance(op, Insert) for op in change.ops)
