"""`AgUiStream`: applies the events of one AG-UI run to a turn.

Theory of operation. An event names its message or its call by id. Several messages and calls can be
open at once, and their parts must not be mixed. A chunk without an id continues the open message or
call that the newest chunk of the same kind and subagent belongs to.

Texts are emitted one message after the other, in the order in which the messages begin; the text of
a later message is held back until the earlier one has ended. A call is emitted when its arguments
are complete. Messages and state are updated as the protocol says, because the agent receives them
with its next run.
"""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn

import jsonpatch

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import Canceled, RuntimeInternal, Unavailable
from arp.runtime.contract.model_errors import error_of_model
from arp.runtime.contract.task_runtime import TaskTurn
from arp.runtime.frameworks.spoken_messages import SpokenMessages
from arp.values.display import arguments_of, component_of, text_of

logger = logging.getLogger(__name__)

NO_RESULT: Final = "The agent ended its run without a result of this call."
LEFT: Final = "The agent left this call to its application, which has no such tool: it did not run."
"""Result of a call that was not carried out, for people and for the agent."""
_STATUS: Final = re.compile(r"\b(?:status|status_code|error code): (\d{3})\b", re.IGNORECASE)
"""HTTP status of the model's server in an error message; AG-UI has no field for it."""
_OLD_THOUGHT: Final = "THINKING_TEXT_MESSAGE_CONTENT"
MAX_WARNINGS: Final = 20
"""Largest number of warnings in one run."""
_BETWEEN_CHUNKS: Final = frozenset(("RAW", "CUSTOM", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"))
"""Events that may come between the chunks of one message or call."""


class _StreamedCall:
    """A tool call of one run: its entry in a stored message, and whether it was emitted."""

    __slots__ = ("in_chunks", "is_emitted", "kept")

    def __init__(self, kept: JsonObject) -> None:
        self.kept = kept
        """Entry in `toolCalls` of a message."""
        self.in_chunks = False
        self.is_emitted = False


class AgUiStream:
    """Applies the events of one run to a turn; `kept` has messages, state and interrupts."""

    def __init__(self, turn: TaskTurn, kept: JsonObject) -> None:
        self.turn = turn
        self.kept = kept
        kept["interrupts"] = []
        self._is_finished = False
        self._is_new_protocol = False
        """Whether the agent reports its protocol version; then a call without a result is left to
        the application."""
        self._texts, self._thoughts = SpokenMessages(), SpokenMessages()
        self._last_text_id = ""
        """Id of the message with the newest emitted text; empty if something else was emitted
        since."""
        self._calls: dict[str, _StreamedCall] = {}
        self._emitted: set[str] = set()
        """Ids of the calls that were emitted."""
        self._ended: set[str] = set()
        """Ids of the calls with an emitted result."""
        self._early_arguments: dict[str, str] = {}
        """Arguments of calls that have not begun, by call id."""
        self._chunked: dict[tuple[str, str], str] = {}
        """Id of the message or call that is open in chunks, by kind and run id of the subagent."""
        self._state_is_lost = False
        """Whether a change of the state could not be applied. Further changes are ignored until a
        snapshot comes."""
        self._known: set[Json] = {one.get("id") for one in kept["messages"]}
        """Ids of the messages from before the run."""
        self._snapshot_text = ""
        """Texts of a snapshot; emitted at the end if the run emitted no text."""
        self._has_text = False
        self._warned: set[str] = set()

    def receive(self, event: Json) -> None:
        """Apply one event; an unreadable event becomes a warning.

        Raises:
            AriError: The run failed, or was cancelled.
        """
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(event, dict) or not isinstance(kind, str):
            self._warn("the agent sent what is no event")
            return
        handle = _HANDLERS.get(kind)
        if handle is None:
            logger.debug("an event of an unknown type: %.80s", kind)
            return
        # Chunks have no end event: any other event ends the message or call that they belong to.
        if not kind.endswith("_CHUNK") and kind not in _BETWEEN_CHUNKS:
            self._end_chunks()
        try:
            handle(self, event)
        except (KeyError, TypeError, AttributeError) as wrong:
            self._warn(f"the agent sent a {kind} that cannot be read: {wrong!r:.200}")

    def end(self) -> None:
        """Handle the end of the stream.

        Raises:
            Unavailable: The run had not ended.
        """
        self.flush()
        if not self._is_finished:
            raise Unavailable("the agent was cut off: its events ended before its run did")

    def flush(self) -> None:
        """Emit the texts that were held back, also if the run was cut off."""
        self._end_chunks()
        self._texts.flush()
        self._thoughts.flush()

    # -- texts -----------------------------------------------------------------------------------

    def _say(self, message_id: str, delta: str) -> None:
        if self._last_text_id not in ("", message_id):
            self.turn.say("\n\n")
        self.turn.say(delta)
        self._last_text_id, self._has_text = message_id, True

    def _begin_text(self, event: JsonObject) -> None:
        message = self._message(event["messageId"], _role_of(event))
        if message["role"] == "assistant":
            self._texts.begin(message["id"], is_closed_later=True)

    def _add_text(self, event: JsonObject) -> None:
        self._append(self._message(event["messageId"]), self._texts, event.get("delta") or "")

    def _end_text(self, event: JsonObject) -> None:
        self._texts.end(event["messageId"])

    def _text_chunk(self, event: JsonObject) -> None:
        message_id = self._chunk_target("text", event, event.get("messageId"))
        message = self._message(message_id, _role_of(event))
        self._append(message, self._texts, event.get("delta") or "")

    def _append(self, message: JsonObject, voice: SpokenMessages, delta: str) -> None:
        if not delta:
            return
        content = message.get("content") or ""
        message["content"] = content + delta if isinstance(content, str) else delta
        if message["role"] in ("assistant", "reasoning"):
            tell = self.turn.think if voice is self._thoughts else partial(self._say, message["id"])
            voice.add(message["id"], partial(tell, delta))

    # -- reasoning -------------------------------------------------------------------------------

    def _begin_thought(self, event: JsonObject) -> None:
        message = self._message(event["messageId"], "reasoning")
        self._thoughts.begin(message["id"], is_closed_later=True)

    def _add_thought(self, event: JsonObject) -> None:
        message = self._message(event["messageId"], "reasoning")
        self._append(message, self._thoughts, event.get("delta") or "")

    def _end_thought(self, event: JsonObject) -> None:
        self._thoughts.end(event["messageId"])

    def _thought_chunk(self, event: JsonObject) -> None:
        message_id = self._chunk_target("reasoning", event, event.get("messageId"))
        message = self._message(message_id, "reasoning")
        self._append(message, self._thoughts, event.get("delta") or "")

    def _old_thought(self, event: JsonObject) -> None:
        self.turn.think(event.get("delta") or "")

    def _encrypted(self, event: JsonObject) -> None:
        """Store an encrypted value that the provider wants back."""
        entity_id = event["entityId"]
        if event.get("subtype") == "tool-call":
            found = self._kept_call(entity_id)
        else:
            found = self._kept_message(entity_id) or self._message(entity_id, "reasoning")
        if found is not None:
            found["encryptedValue"] = event["encryptedValue"]

    # -- calls -----------------------------------------------------------------------------------

    def _begin_call(self, event: JsonObject) -> None:
        self._call(event["toolCallId"], event["toolCallName"], event.get("parentMessageId"))

    def _add_arguments(self, event: JsonObject) -> None:
        call_id, delta = event["toolCallId"], event.get("delta") or ""
        call = self._calls.get(call_id)
        if call is None:  # the call begins later, or never
            self._early_arguments[call_id] = self._early_arguments.get(call_id, "") + delta
        elif call.is_emitted:
            self._warn("the agent sent arguments of a call that were complete")
        else:
            call.kept["function"]["arguments"] += delta

    def _end_call(self, event: JsonObject) -> None:
        call = self._calls.get(event["toolCallId"])
        if call is not None:
            self._emit_call(call)

    def _call_chunk(self, event: JsonObject) -> None:
        call_id = self._chunk_target("call", event, event.get("toolCallId"))
        call = self._calls.get(call_id)
        if call is None:
            call = self._call(call_id, event["toolCallName"], event.get("parentMessageId"))
            call.in_chunks = True
        self._add_arguments({"toolCallId": call_id, "delta": event.get("delta")})
        if not call.is_emitted and _is_object(call.kept["function"]["arguments"]):
            self._emit_call(call)

    def _call(self, call_id: str, name: str, parent_id: str | None) -> _StreamedCall:
        """Return the call with an id; a new call is added to its message."""
        known = self._calls.get(call_id)
        if known is not None:
            return known
        kept = self._kept_call(call_id)
        if kept is None:
            kept = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
            self._parent_message(parent_id).setdefault("toolCalls", []).append(kept)
        kept["function"]["arguments"] = self._early_arguments.pop(call_id, "")
        call = self._calls[call_id] = _StreamedCall(kept)
        return call

    def _parent_message(self, parent_id: str | None) -> JsonObject:
        """Return the message for a new call: its parent, or the newest message of the agent."""
        messages = self.kept["messages"]
        if parent_id:
            return self._message(parent_id)
        last: JsonObject | None = messages[-1] if messages else None
        if last is not None and last.get("role") == "assistant":
            return last
        return self._message(self.turn.session.new_id("message"))

    def _emit_call(self, call: _StreamedCall) -> None:
        """Emit a call with complete arguments."""
        if not call.is_emitted:
            call.is_emitted = True
            self._emit_kept(call.kept)

    def _emit_kept(self, call: JsonObject) -> None:
        if call["id"] not in self._emitted:
            self._emitted.add(call["id"])
            self._last_text_id = ""
            function = call["function"]
            self.turn.start_call(call["id"], function["name"], arguments_of(function["arguments"]))

    def _emit_calls(self) -> None:
        for call in self._calls.values():
            self._emit_call(call)

    def _result(self, event: JsonObject) -> None:
        call_id, content = event["toolCallId"], event["content"] or ""
        call = self._calls.get(call_id)
        if call is not None:
            self._emit_call(call)
        # A snapshot may have brought the result already; the agent must not receive it twice.
        if not any(_is_result_of(one, call_id) for one in self.kept["messages"]):
            message_id = event.get("messageId") or self.turn.session.new_id("message")
            message = {"id": message_id, "role": "tool", "toolCallId": call_id}
            self.kept["messages"].append({**message, "content": content})
        self._emit_result(call_id, content, event.get("error"))

    def _emit_result(self, call_id: str, content: Json, error: Json) -> None:
        if call_id in self._ended:
            return
        self._ended.add(call_id)
        self._last_text_id = ""
        text = _content_text(content)
        shown = component_of(arguments_of(text))
        self.turn.end_call(call_id, str(error or text), failed=bool(error), shown=shown)

    def _end_unanswered(self, event: JsonObject) -> None:
        """End the calls that have no result when the run ends; they do not count as failed.

        A call that is left to the application gets an answer, because the next run needs one.
        """
        outcome = event.get("outcome") or {}
        named = outcome.get("pendingToolCallIds") or ()
        for call_id in list(self.turn.open_calls):
            is_left = call_id in named or (self._is_new_protocol and call_id in self._calls)
            if is_left:
                self._answer(call_id)
            self.turn.end_call(call_id, LEFT if is_left else NO_RESULT, no_output=True)

    def _answer(self, call_id: str) -> None:
        messages = self.kept["messages"]
        for place, message in enumerate(messages, 1):
            if any(one["id"] == call_id for one in message.get("toolCalls") or ()):
                answer = {"id": self.turn.session.new_id("message"), "role": "tool"}
                messages.insert(place, {**answer, "toolCallId": call_id, "content": LEFT})
                return

    # -- state and messages ----------------------------------------------------------------------

    def _state(self, event: JsonObject) -> None:
        self.kept["state"], self._state_is_lost = event["snapshot"], False

    def _change_state(self, event: JsonObject) -> None:
        if self._state_is_lost:  # a later change builds on the one that was not applied
            return
        try:
            self.kept["state"] = _patched(self.kept["state"], event["delta"])
        except ValueError as wrong:
            self._state_is_lost = True
            self._warn(
                f"a change of the agent's state cannot be applied: {wrong}; the state stays as it "
                "was until the agent sends all of it"
            )

    def _messages(self, event: JsonObject) -> None:
        """Replace all messages by a snapshot, and emit the parts of this turn that are new."""
        before, given = self.kept["messages"], event["messages"]
        if not all(isinstance(one, dict) and one.get("role") for one in given):
            raise TypeError("a message without a role")
        new = copy.deepcopy(given)
        ids = {one.get("id") for one in new}
        # A snapshot may omit messages that are still open. Without them, their later parts would
        # be lost.
        still_open = [one for one in before if one["id"] not in ids and self._is_open(one)]
        self.kept["messages"] = [*new, *still_open]
        fresh = of_newest_turn(new)
        results = [one for one in fresh if one["role"] == "tool"]
        self._move_calls({one.get("toolCallId") for one in results})
        known = {call["id"] for one in before for call in one.get("toolCalls") or ()}
        for call in [call for one in fresh for call in one.get("toolCalls") or ()]:
            if call["id"] not in known:
                self._emit_kept(call)
        for one in results:
            if one.get("toolCallId") in self.turn.open_calls:
                self._emit_result(one["toolCallId"], one.get("content") or "", one.get("error"))
        texts = [_content_text(one["content"]) for one in fresh if _is_new_text(one, self._known)]
        self._snapshot_text = "\n\n".join(texts)

    def _move_calls(self, ended: set[Json]) -> None:
        """Move the calls of this run to their copies in a snapshot; `ended` have results there."""
        for call_id, call in self._calls.items():
            again = self._kept_call(call_id)
            if again is not None and again is not call.kept:
                if call_id not in ended and not call.is_emitted:
                    again["function"]["arguments"] = call.kept["function"]["arguments"]
                call.kept = again
            if call_id in ended:
                self._emit_call(call)

    def _is_open(self, message: JsonObject) -> bool:
        """Return whether a message, or a call in it, has not ended."""
        calls = [self._calls.get(call["id"]) for call in message.get("toolCalls") or ()]
        return (
            any(call is not None and not call.is_emitted for call in calls)
            or self._texts.is_open(message["id"])
            or self._thoughts.is_open(message["id"])
        )

    def _activity(self, event: JsonObject) -> None:
        message = self._kept_message(event["messageId"])
        if message is None:
            made = {"id": event["messageId"], "role": "activity"}
            made |= {"activityType": event["activityType"], "content": dict(event["content"])}
            self.kept["messages"].append(made)
        elif event.get("replace") is not False:
            message["content"] = event["content"]

    def _change_activity(self, event: JsonObject) -> None:
        message = self._kept_message(event["messageId"])
        if message is not None:
            try:
                message["content"] = _patched(message["content"], event["patch"])
            except ValueError as wrong:
                self._warn(f"a change of an activity of the agent cannot be applied: {wrong}")

    # -- the run ---------------------------------------------------------------------------------

    def _started(self, event: JsonObject) -> None:
        self._is_finished = False
        self._is_new_protocol = bool(event.get("protocolVersion"))

    def _finished(self, event: JsonObject) -> None:
        self._emit_calls()
        self.flush()
        self._use(event)
        self._is_finished = True
        if self._snapshot_text and not self._has_text:
            self.turn.say(self._snapshot_text)
        outcome = event.get("outcome") or {}
        if outcome.get("type") == "cancelled":
            raise Canceled("the agent's run was cancelled")
        if outcome.get("type") == "interrupt":
            self.kept["interrupts"] = [one for one in outcome["interrupts"] if one["id"]]
        # An interrupt may be about an open call, which then waits for its answer.
        if not self.kept["interrupts"]:
            self._end_unanswered(event)

    def _failed(self, event: JsonObject) -> NoReturn:
        self._emit_calls()
        self.flush()
        self._use(event)
        message = event.get("message") or "the agent failed"
        answered = _STATUS.search(message)
        if answered is not None:
            status = int(answered[1])
            raise error_of_model(status, f"the model's server answered {status}: {message:.500}")
        raise RuntimeInternal(message)

    def _use(self, event: JsonObject) -> None:
        for used in event.get("usage") or ():
            self.turn.use(
                used.get("inputTokens"),
                used.get("outputTokens"),
                used.get("cachedInputTokens"),
                used.get("reasoningTokens"),
                used.get("model") or "",
            )

    def _custom(self, event: JsonObject) -> None:
        made = component_of(event.get("value"))
        if made is not None:
            self._last_text_id = ""
            self.turn.show(made)

    def _subagent(self, event: JsonObject) -> None:
        kind: str = event["type"]
        about: JsonObject = {"subagent_id": event["subagentRunId"]}
        content = event.get("description") or event.get("message") or ""
        if kind == "SUBAGENT_STARTED":
            about |= {"status": "started", "name": event["name"], "objective": content}
            if event.get("parentToolCallId"):
                about["tool_call_id"] = event["parentToolCallId"]
        else:
            about["status"] = "failed" if kind == "SUBAGENT_ERROR" else "completed"
        self.turn.tell(ari.Lifecycle.SUBAGENT, content, **about)

    # -- implementation --------------------------------------------------------------------------

    def _warn(self, message: str) -> None:
        """Emit a warning once per run, until the run has `MAX_WARNINGS`."""
        if message not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(message)
            self.turn.tell(ari.Lifecycle.WARNING, message)

    def _chunk_target(self, kind: str, event: JsonObject, given: str | None) -> str:
        """Return the id of a chunk's message or call: `given`, or else that of the last chunk."""
        place = (kind, event.get("subagentRunId") or "")
        if given:
            self._chunked[place] = given
        return self._chunked[place]

    def _end_chunks(self) -> None:
        """End all messages and calls that are open in chunks."""
        if self._chunked:
            self._chunked.clear()
            for call in self._calls.values():
                if call.in_chunks:
                    self._emit_call(call)

    def _message(self, message_id: str, role: str = "assistant") -> JsonObject:
        """Return the message with an id; create it if it does not exist."""
        found = self._kept_message(message_id)
        if found is None:
            found = {"id": message_id, "role": role, "content": ""}
            self.kept["messages"].append(found)
        return found

    def _kept_message(self, message_id: str) -> JsonObject | None:
        newest_first = reversed(self.kept["messages"])
        return next((one for one in newest_first if one.get("id") == message_id), None)

    def _kept_call(self, call_id: str) -> JsonObject | None:
        for message in reversed(self.kept["messages"]):
            for call in message.get("toolCalls") or ():
                if call["id"] == call_id:
                    found: JsonObject = call
                    return found
        return None


_HANDLERS: Final[dict[str, Callable[[AgUiStream, JsonObject], None]]] = {
    "TEXT_MESSAGE_START": AgUiStream._begin_text,
    "TEXT_MESSAGE_CONTENT": AgUiStream._add_text,
    "TEXT_MESSAGE_END": AgUiStream._end_text,
    "TEXT_MESSAGE_CHUNK": AgUiStream._text_chunk,
    "REASONING_MESSAGE_START": AgUiStream._begin_thought,
    "REASONING_MESSAGE_CONTENT": AgUiStream._add_thought,
    "REASONING_MESSAGE_END": AgUiStream._end_thought,
    "REASONING_MESSAGE_CHUNK": AgUiStream._thought_chunk,
    "REASONING_ENCRYPTED_VALUE": AgUiStream._encrypted,
    _OLD_THOUGHT: AgUiStream._old_thought,
    "TOOL_CALL_START": AgUiStream._begin_call,
    "TOOL_CALL_ARGS": AgUiStream._add_arguments,
    "TOOL_CALL_END": AgUiStream._end_call,
    "TOOL_CALL_CHUNK": AgUiStream._call_chunk,
    "TOOL_CALL_RESULT": AgUiStream._result,
    "STATE_SNAPSHOT": AgUiStream._state,
    "STATE_DELTA": AgUiStream._change_state,
    "MESSAGES_SNAPSHOT": AgUiStream._messages,
    "ACTIVITY_SNAPSHOT": AgUiStream._activity,
    "ACTIVITY_DELTA": AgUiStream._change_activity,
    "CUSTOM": AgUiStream._custom,
    "RUN_STARTED": AgUiStream._started,
    "RUN_FINISHED": AgUiStream._finished,
    "RUN_ERROR": AgUiStream._failed,
    "SUBAGENT_STARTED": AgUiStream._subagent,
    "SUBAGENT_FINISHED": AgUiStream._subagent,
    "SUBAGENT_ERROR": AgUiStream._subagent,
}
"""Methods by type of event. Other types, such as `STEP_STARTED` and `RAW`, are ignored."""


def of_newest_turn(messages: list[JsonObject]) -> list[JsonObject]:
    """Return the messages after the last message of the user."""
    places = [place for place, one in enumerate(messages, 1) if one.get("role") == "user"]
    return messages[places[-1] if places else 0 :]


def _is_new_text(message: JsonObject, known: set[Json]) -> bool:
    is_text = message["role"] == "assistant" and bool(message.get("content"))
    return is_text and message.get("id") not in known


def _role_of(event: JsonObject) -> str:
    role = event.get("role")
    return role if role in ("developer", "system", "user") else "assistant"


def _is_result_of(message: JsonObject, call_id: str) -> bool:
    return message.get("role") == "tool" and message.get("toolCallId") == call_id


def _is_object(text: str) -> bool:
    """Return whether a text is a complete JSON object; then no further part of it can come."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _patched(value: Json, patch: Json) -> Json:
    """Return a value with a JSON Patch applied; the value itself does not change.

    Raises:
        ValueError: The patch cannot be applied.
    """
    try:
        changed: Json = jsonpatch.apply_patch(value, patch)
    except Exception as wrong:  # the library raises many types of exceptions
        raise ValueError(f"{type(wrong).__name__}: {wrong!s:.200}") from wrong
    return changed


def _content_text(content: Json) -> str:
    """Return a content as text; parts that are not text become their type in parentheses."""
    if not isinstance(content, list):
        return text_of(content)
    parts = [
        one if isinstance(one, dict) else {"type": "text", "text": text_of(one)} for one in content
    ]
    return "\n".join(
        str(part.get("text") or "") if part.get("type") == "text" else f"({part.get('type')})"
        for part in parts
    )
