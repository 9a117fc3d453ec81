"""The examples of the draft run verbatim: the exact JSON of both sides, message by message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.connection.agent_connection import AgentConnection
from arp.protocol.limits import Limits
from arp.protocol.messages import Input, RendererHello
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.connection import ObjectConnection, ObjectEvent
from arp.protocol.objects.messages import (
    InputAckRequest,
    SurfaceCommitRequest,
    SurfaceRenderRequest,
)
from arp.protocol.objects.renderer import ObjectRendererConnection, Offer
from arp.protocol.objects.wire import ObjectMessage

TABLE = {"headers": ["Region", "Sales"], "rows": [["north", 12], ["south", 7]]}


def sent(end: ObjectConnection) -> list[dict[str, Any]]:
    return [json.loads(frame) for frame in end.data_to_send()]


def give(end: ObjectConnection, messages: list[dict[str, Any]]) -> list[ObjectEvent]:
    return [event for one in messages for event in end.receive(json.dumps(one), 0.0)]


def bound(name: int, interface: str, new_id: int, seq: int) -> dict[str, Any]:
    payload = {"name": name, "interface": interface, "version": 1, "new_id": new_id}
    return {"v": 1, "id": 1, "op": "bind", "seq": seq, "payload": payload}


def offered(name: int, interface: str, seq: int, **more: Any) -> dict[str, Any]:
    payload = {"name": name, "interface": interface, "version": 1, **more}
    return {"v": 1, "id": 1, "op": "global", "seq": seq, "payload": payload}


@pytest.mark.parametrize("chosen_by", ["agent", "renderer"])
def test_the_object_example_of_the_draft_is_what_both_ends_say(chosen_by: str) -> None:
    """A table is shown, a row of it is selected, and the selection is acknowledged."""
    agent = ObjectAgentConnection("json", Limits())
    renderer = ObjectRendererConnection(
        "json",
        Limits(),
        [
            Offer("ArpCompositor"),
            Offer("ArpShell"),
            Offer("ArpInput"),
            Offer("ArpSession"),
            Offer("component:text"),
            Offer("component:table"),
            Offer("feature:streaming"),
            Offer("limit:max_surfaces", 1, 4),
        ],
    )

    agent.get_registry()
    said = sent(agent)
    assert said == [{"v": 1, "id": 0, "op": "get_registry", "seq": 1, "payload": {"new_id": 1}}]
    give(renderer, said)
    said = sent(renderer)
    assert said == [
        offered(1, "ArpCompositor", 1),
        offered(2, "ArpShell", 2),
        offered(3, "ArpInput", 3),
        offered(4, "ArpSession", 4),
        offered(5, "component:text", 5),
        offered(6, "component:table", 6),
        offered(7, "feature:streaming", 7),
        offered(8, "limit:max_surfaces", 8, value=4),
    ]
    give(agent, said)
    for interface in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession"):
        agent.bind(interface)
    agent.create_session("s1", {"title": "Sales"})
    said = sent(agent)
    assert said == [
        bound(1, "ArpCompositor", 2, 2),
        bound(2, "ArpShell", 3, 3),
        bound(3, "ArpInput", 4, 4),
        bound(4, "ArpSession", 5, 5),
        {
            "v": 1,
            "id": 5,
            "op": "create",
            "seq": 6,
            "payload": {"session_id": "s1", "metadata": {"title": "Sales"}},
        },
    ]
    give(renderer, said)
    next_no = 9
    if chosen_by == "renderer":
        renderer.resume("mine", 17, {"epoch": "e1"})
        said = sent(renderer)
        payload = {"session_id": "mine", "last_commit_seq": 17, "state": {"epoch": "e1"}}
        assert said == [{"v": 1, "id": 5, "op": "resumed", "seq": 9, "payload": payload}]
        give(agent, said)
        next_no = 10
    session_id = "s1" if chosen_by == "agent" else "mine"
    assert agent.objects.session_id == renderer.objects.session_id == session_id

    surface = agent.create_surface()
    agent.get_toplevel(surface)
    said = sent(agent)
    assert said == [
        {"v": 1, "id": 2, "op": "create_surface", "seq": 7, "payload": {"new_id": 6}},
        {
            "v": 1,
            "id": 3,
            "op": "get_toplevel",
            "seq": 8,
            "payload": {"surface_id": 6, "new_id": 7},
        },
    ]
    give(renderer, said)
    renderer.configure(6, 800, 600, ["activated"])
    said = sent(renderer)
    payload = {"width": 800, "height": 600, "states": ["activated"]}
    assert said == [{"v": 1, "id": 7, "op": "configure", "seq": next_no, "payload": payload}]
    give(agent, said)

    agent.send(surface, SurfaceRenderRequest([Component("sales", "table", TABLE)]))
    agent.send(surface, SurfaceCommitRequest())
    said = sent(agent)
    assert said == [
        {
            "v": 1,
            "id": 6,
            "op": "render",
            "seq": 9,
            "payload": {"components": [{"id": "sales", "type": "table", "props": TABLE}]},
        },
        {"v": 1, "id": 6, "op": "commit", "seq": 10, "payload": {}},
    ]
    give(renderer, said)
    assert [(one.id, one.props) for one in renderer.content(6)] == [("sales", TABLE)]
    renderer.displayed(6)
    said = sent(renderer)
    assert said == [
        {"v": 1, "id": 6, "op": "frame_ack", "seq": next_no + 1, "payload": {"commit_seq": 10}}
    ]
    give(agent, said)

    serial = renderer.input(6, "selection", {"selected": [1]}, 2.0, source="sales")
    said = sent(renderer)
    assert said == [
        {
            "v": 1,
            "id": 4,
            "op": "input",
            "seq": next_no + 2,
            "payload": {
                "surface_id": 6,
                "serial": 1,
                "type": "selection",
                "data": {"selected": [1]},
                "source_component": "sales",
            },
        }
    ]
    (event,) = give(agent, said)
    assert isinstance(event, ObjectMessage)
    assert event.payload.data == {"selected": [1]}  # type: ignore[attr-defined]
    agent.send(agent.bound["ArpInput"], InputAckRequest(serial))
    said = sent(agent)
    assert said == [{"v": 1, "id": 4, "op": "ack", "seq": 11, "payload": {"serial": 1}}]
    give(renderer, said)
    assert renderer.objects.waiting_inputs == agent.objects.waiting_inputs == {}
    assert sent(renderer) == sent(agent) == []


def test_the_minimal_example_of_the_draft_is_taken_with_its_hello() -> None:
    """The session dialect, as a small device speaks it."""
    connection = AgentConnection("json", Limits())
    hello = json.loads(connection.hello())
    assert (hello["v"], hello["type"]) == (1, "hello")
    assert "text" in hello["capabilities"]["components"]
    said = '{"v":1,"type":"hello","capabilities":{"components":["text"],"features":["input"]}}'
    (event,) = connection.receive(said)
    assert isinstance(event, RendererHello)
    assert event.capabilities.versions() == {"text": 1}
    said = '{"v":1,"type":"input","session_id":"s1","input_type":"text","data":{"text":"Hi"}}'
    (event,) = connection.receive(said)
    assert event == Input(session_id="s1", input_type="text", data={"text": "Hi"})
