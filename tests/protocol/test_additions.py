"""Every addition to the v0.1 draft is optional: without it, a message is read all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from arp.protocol.codec import encode_json
from arp.protocol.connection.agent_connection import AgentConnection, RejectedMessage
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.limits import Limits
from arp.protocol.messages import ErrorMessage, RendererHello
from tests.protocol.sample_messages import FROM_AGENT, FROM_RENDERER

DRAFT: dict[str, set[str]] = {
    "hello": {"type", "v", "capabilities", "capabilities.components", "capabilities.features"},
    "delta": {"type", "v", "payload", "payload.delta"},
    "tool_start": {"type", "v", "payload", "payload.tool", "payload.args"},
    "tool_end": {"type", "v", "payload", "payload.tool", "payload.ok"},
    "render": {"type", "v", "components", "tool_name"},
    "patch": {"type", "v", "ops"},
    "error": {"type", "v", "payload"},
    "commit": {"type", "v", "final"},
    "input": {"type", "v", "session_id", "input_type", "data", "source_component"},
}
"""What the draft's messages have; everything else is an addition."""


def without_one_addition(samples: Any, names: set[str]) -> Iterator[Any]:
    """Yield each sample of the draft's types, with one addition removed each time."""
    for sample in samples:
        plain = msgspec.json.decode(encode_json(sample))
        kind = plain["type"]
        if kind not in names:
            continue
        for key, value in plain.items():
            if key not in DRAFT[kind]:
                less = {name: one for name, one in plain.items() if name != key}
                yield pytest.param(less, id=f"{kind} without {key}")
            if not isinstance(value, dict) or key not in ("payload", "capabilities"):
                continue
            for inner in value:
                if f"{key}.{inner}" not in DRAFT[kind]:
                    rest = {name: one for name, one in value.items() if name != inner}
                    yield pytest.param({**plain, key: rest}, id=f"{kind} without {key}.{inner}")


OF_AGENTS = set(DRAFT) - {"input"}


@pytest.mark.parametrize("message", list(without_one_addition(FROM_AGENT, OF_AGENTS)))
def test_renderer_reads_a_message_of_the_agent_side_without_an_addition(message: Any) -> None:
    """Spec: S8."""
    one = RendererConnection(RendererHello())
    one.hello()
    out = one.receive(encode_json(message))
    faults = [
        error for error in out if isinstance(error, ErrorMessage) and error.payload.code == 11
    ]
    assert not faults or message["type"] == "error"


@pytest.mark.parametrize("message", list(without_one_addition(FROM_RENDERER, {"hello", "input"})))
def test_agent_side_reads_a_message_of_a_renderer_without_an_addition(message: Any) -> None:
    """Spec: S8."""
    (event,) = AgentConnection("json", Limits()).receive(encode_json(message))
    assert not isinstance(event, RejectedMessage)
