"""Every addition to the object dialect of the v0.1 draft is optional, in both directions.

A whole conversation goes over a wire that takes one added field out of every message.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import fields

from arp import Turn, ui
from arp.protocol.objects.messages import INTERFACES, InputAckRequest
from tests.hub.object_rig import Display
from tests.hub.rig import running

CONVERSATION = "ArpConversation"
DRAFT: dict[str, set[str]] = {
    "get_registry": {"new_id"},
    "sync": {"callback_id"},
    "done": set(),
    "error": {"object_id", "code", "message"},
    "bind": {"name", "interface", "version", "new_id"},
    "global": {"name", "interface", "version", "value"},
    "global_remove": {"name"},
    "create_surface": {"new_id"},
    "render": {"components"},
    "patch": {"ops"},
    "commit": {"final"},
    "set_title": {"title"},
    "transfer": {"to_session", "retain_content"},
    "destroy": set(),
    "frame_ack": {"commit_seq"},
    "configure": {"width", "height", "states", "x", "y", "bounds"},
    "closed": set(),
    "transferred": set(),
    "surface_acquired": set(),
    "get_toplevel": {"surface_id", "new_id"},
    "get_popup": {"surface_id", "parent_id", "new_id", "trigger_serial"},
    "get_overlay": {"surface_id", "new_id", "trigger_serial"},
    "close": set(),
    "popup_done": set(),
    "set_anchor": {"surface_id", "position"},
    "set_timeout": {"timeout_ms"},
    "dismissed": set(),
    "ack": {"serial"},
    "input": {"surface_id", "serial", "type", "data", "source_component"},
    "focus": {"surface_id"},
    "unfocus": {"surface_id"},
    "create": {"session_id", "metadata"},
    "state_update": {"state"},
    "resumed": {"session_id", "last_commit_seq", "state"},
}
"""What the draft's operations have; every other field is an addition."""

OURS = {"refuse", "set_fullscreen", "unset_fullscreen"}
"""Operations of a later version: an end that offers version 1 neither sends nor gets them."""

INSIDE = {
    "create": ("metadata", ("capabilities",)),
    "resumed": ("state", ("epoch", "workflow", "locale", "time_zone", "theme")),
}
"""Additions inside objects whose content the draft leaves open."""

CHANGES_NOTHING_HERE = {
    "error.refused_seq",  # nothing is refused
    "done.callback_data",  # nobody reads it
    "transfer.transfer_id",  # one renderer has nobody to hand over to
    "surface_acquired.components",
    "surface_acquired.title",
    "surface_acquired.transfer_id",
    "input.edits",  # without it the input begins a turn of its own
    "resumed.token",  # it has no token
    "resumed.state.workflow",
    "resumed.state.locale",
    "resumed.state.time_zone",
    "resumed.state.theme",
}
"""Additions that this conversation does not have; the first test holds for them too."""


def operations() -> Iterator[tuple[str, Any]]:
    """Yield the operations of the draft's interfaces, with their payloads."""
    for interface in INTERFACES.values():
        for name, operation in {**interface.requests, **interface.events}.items():
            if interface.name != CONVERSATION and name not in OURS:
                yield name, operation.payload


def additions() -> list[str]:
    """Return every added field as `operation.field`."""
    found = {
        f"{name}.{one.encode_name}"
        for name, payload in operations()
        for one in fields(payload)
        if one.encode_name not in DRAFT[name]
    }
    inside = {f"{op}.{place}.{key}" for op, (place, keys) in INSIDE.items() for key in keys}
    return sorted(found | inside)


def test_no_added_field_is_required() -> None:
    """Also those that a conversation seldom has."""
    required = [
        f"{name}.{one.encode_name}"
        for name, payload in operations()
        for one in fields(payload)
        if one.required and one.encode_name not in DRAFT[name]
    ]
    assert required == []
    assert {name for name, _ in operations()} == set(DRAFT)


class Poorer(Display):
    """A renderer on a wire that takes one field out of every message, both ways."""

    def __init__(self, hub: Any, field: str, **more: Any) -> None:
        super().__init__(hub, **more)
        self.op, _, path = field.partition(".")
        self.path = path.split(".") if path else []
        self.taken = 0

    async def ends(self, count: int) -> None:
        """Wait until so many turns have ended."""
        await self.until(lambda: self.finals >= count)

    def came(self, frame: bytes) -> bytes:
        return self._without(frame)

    def goes(self, frame: bytes) -> bytes:
        return self._without(frame)

    def _without(self, frame: bytes) -> bytes:
        value = json.loads(frame)
        for message in value if isinstance(value, list) else [value]:
            if message["op"] != self.op:
                continue
            *way, last = self.path
            inner = message["payload"]
            for key in way:
                inner = inner.get(key) or {}
            if last in inner:
                del inner[last]
                self.taken += 1
        return json.dumps(value).encode()


async def agent(turn: Turn) -> None:
    """Shows, changes, asks, opens a popup, shares state, and fails."""
    match turn.text:
        case "ask":
            sure = await turn.confirm("Sure?", id="q")
            await turn.say(f"{sure}.")
        case "window":
            turn.popup(ui.text("over it", id="p"), over="t", title="Details")
        case "fail":
            raise RuntimeError("inner workings")
        case _:
            await turn.say("One. ")
            async with turn.tool("query", {"table": "sales"}):
                turn.show(ui.table(["n"], [[1]], id="t"))
            turn.append("t", "props.rows", [[2]])
            turn.shared_state["step"] = 1
            turn.usage(input_tokens=3)
            await turn.say("Two. ")


async def conversation(field: str, has_turns: bool) -> tuple[list[Any], int]:
    """Return what `main` shows at the end of a conversation without a field; how often it was."""
    async with running(agent) as hub:
        display = Poorer(
            hub,
            field,
            resumes=("mine", None),
            since=("another life", 7),
            has_conversation=has_turns,
        )
        async with display:
            await display.open()
            for number, text in enumerate(("go", "ask", "fail", "window"), start=1):
                await display.use("text", {"text": text}, input_id=f"i{number}")
                if text == "ask":
                    await display.until(lambda: any(one.id == "q" for one in display.content()))
                    await display.use("action", {"action": "confirm"}, source="q")
                await display.ends(number)
            assert display.told == []
            assert [type(one) for one in display.answers] == [InputAckRequest] * 5
            return [(one.id, one.props) for one in display.content()], display.taken


@pytest.fixture(scope="module")
def whole() -> dict[bool, list[Any]]:
    """Return what shows at the end of the whole conversation, with and without turns."""
    return {has: asyncio.run(conversation("", has))[0] for has in (False, True)}


@pytest.mark.parametrize("field", sorted(set(additions()) - CHANGES_NOTHING_HERE))
async def test_conversation_without_an_added_field_shows_the_same(
    field: str, whole: dict[bool, list[Any]]
) -> None:
    count = 0
    for has_turns, expected in whole.items():
        shown, taken = await conversation(field, has_turns)
        assert shown == expected
        count += taken
    assert count > 0, f"{field}: the conversation does not have it; name it above"
