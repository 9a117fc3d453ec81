"""Random and mutated frames into every decoder and connection: typed errors, and no growth."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
import pytest

from arp.protocol.codec import (
    ENCODINGS,
    Encoding,
    agent_decoder,
    encode_json,
    read_plain,
    recode,
    renderer_decoder,
)
from arp.protocol.components import Component
from arp.protocol.connection.agent_connection import (
    AgentConnection,
    ConnectionFailure,
    RejectedMessage,
)
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.errors import ArpError, InvalidMessage
from arp.protocol.limits import Limits
from arp.protocol.messages import AgentMessage, RendererCapabilities, RendererHello
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.connection import ObjectConnection, RefusedMessage
from arp.protocol.objects.messages import (
    InputAckRequest,
    SessionStateUpdateRequest,
    SurfaceCommitRequest,
    SurfacePatchRequest,
    SurfaceRenderRequest,
)
from arp.protocol.objects.model import MAX_GLOBALS, MAX_OBJECTS
from arp.protocol.objects.renderer import ObjectRendererConnection, offers
from arp.protocol.objects.screen import ObjectScreenConnection
from arp.protocol.objects.wire import ObjectMessage
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Update
from tests.protocol.hostile_frames import HEADS, ODD, packed
from tests.protocol.sample_messages import FROM_AGENT, FROM_RENDERER
from tests.protocol.test_framing_fuzz import mutated

LIMITS = Limits(max_surfaces=4)

ROUND = 250
"""Inputs into one connection; then a new one takes its place."""

SOAK = 1_000_000
"""From so many inputs on, each decoder and connection gets them all."""


def share(fuzz_count: int) -> int:
    """How many inputs one test gets: in CI all tests of this file together have the count."""
    return fuzz_count // len(ENCODINGS) // (1 if fuzz_count >= SOAK else 5)


WORDS = ["render", "commit", "bind", "sync", "input", "closed", "delta", "error", "get_popup"]


# -- what honest ends say --------------------------------------------------------------------------


def said(encoding: Encoding) -> tuple[list[bytes], list[bytes]]:
    """The frames of a conversation in the object dialect: those of the agent, of the renderer."""
    agent = ObjectAgentConnection(encoding, LIMITS)
    offered = offers({"text": 1, "table": 1}, ["batch"], {"max_surfaces": 4})
    renderer = ObjectRendererConnection(encoding, LIMITS, offered)
    frames: tuple[list[bytes], list[bytes]] = ([], [])

    def exchange() -> None:
        for _ in range(2):
            ends: list[tuple[ObjectConnection, ObjectConnection]]
            ends = [(agent, renderer), (renderer, agent)]
            for kept, (source, target) in zip(frames, ends, strict=True):
                for frame in source.data_to_send():
                    kept.append(frame)
                    target.receive(frame, 1.0)

    agent.get_registry()
    exchange()
    for name in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession"):
        agent.bind(name)
    agent.create_session("s1", {"capabilities": {"components": ["text"]}})
    exchange()
    renderer.resume("mine", 0, {"epoch": "e"})
    surface, other = agent.create_surface("main"), agent.create_surface("side")
    agent.get_toplevel(surface)
    exchange()
    renderer.configure(surface, 80, 24, ["activated"])
    agent.send(surface, SurfaceRenderRequest([Component("a", "text", {"content": "x"})]))
    ops: list[PatchOp] = [
        Update("a", "props.content", "y"),
        Append("a", "props.content", "z"),
        Insert(Component("b", "text", {"content": "x"}), None),
        Remove("b"),
    ]
    agent.send(surface, SurfacePatchRequest(ops))
    agent.send(surface, SurfaceCommitRequest())
    exchange()
    renderer.displayed(surface)
    serial = renderer.input(surface, "text", {"text": "x"}, 1.0)
    exchange()
    agent.send(agent.bound["ArpInput"], InputAckRequest(serial))
    agent.get_popup(other, surface, serial)
    agent.send(agent.bound["ArpSession"], SessionStateUpdateRequest({"a": [1]}))
    renderer.focus(surface)
    agent.sync()
    exchange()
    renderer.close(other)
    exchange()
    agent.destroy(other)
    exchange()
    return frames


SAID = {encoding: said(encoding) for encoding in ENCODINGS}


def plain(frame: bytes, encoding: Encoding) -> Any:
    (value,) = read_plain(frame, encoding)
    return value


def bent(value: Any, fuzz: Random) -> Any:
    """A message with something else in one place, or a word where another belongs."""
    made = dict(value)
    at = fuzz.choice(list(made))
    if at == "payload" and made["payload"]:
        payload = dict(made["payload"])
        payload[fuzz.choice(list(payload))] = odd(fuzz)
        made["payload"] = payload
    elif at == "op":
        made["op"] = fuzz.choice(WORDS)
    elif at == "id":
        made["id"] = fuzz.choice((0, 1, 2, 5, 6, 7, 8, 9, 0x80000000, -1, 2**32))
    else:
        made[at] = odd(fuzz)
    return made


def odd(fuzz: Random) -> Any:
    return fuzz.choice(ODD) if fuzz.random() < 0.7 else fuzz.randrange(12)


def inputs(good: Sequence[bytes], encoding: Encoding, fuzz: Random) -> Callable[[int], bytes]:
    """What makes one input: any bytes, a changed frame, or a readable message that is wrong.

    It is called with the `seq` that would be right.
    """
    values = [plain(frame, encoding) for frame in good]

    def make(number: int) -> bytes:
        kind = fuzz.random()
        if kind < 0.1:
            return fuzz.randbytes(fuzz.randrange(40))
        if kind < 0.35:
            return mutated(fuzz.choice(good), fuzz)
        value = {**fuzz.choice(values)}
        if "seq" in value and "op" in value:
            value["seq"] = number
        if kind < 0.9:
            value = bent(value, fuzz)
        try:
            return packed(value, encoding)
        except (TypeError, ValueError, OverflowError):
            return encode_json(str(value))

    return make


# -- decoders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_decoders_return_messages_or_refuse(
    encoding: Encoding, fuzz: Random, fuzz_count: int
) -> None:
    """docs/protocol.md, "Encodings". Spec: W3."""
    sides = (FROM_AGENT, FROM_RENDERER)
    good = [[recode(encode_json(one), encoding) for one in side] for side in sides]
    made = [inputs(one, encoding, fuzz) for one in (*good, SAID[encoding][0])]
    agent, renderer = agent_decoder(encoding), renderer_decoder(encoding)
    for _ in range(share(fuzz_count)):
        frame = fuzz.choice(made)(1)
        for read in (agent.read, renderer.read, lambda data: read_plain(data, encoding)):
            with suppress(InvalidMessage):
                assert isinstance(read(frame), list)


# -- connections -----------------------------------------------------------------------------------


def new_agent(encoding: Encoding) -> ObjectAgentConnection:
    """An agent's end that has had the conversation, so that it knows some objects."""
    end = ObjectAgentConnection(encoding, LIMITS)
    end.get_registry()
    for frame in SAID[encoding][1][:8]:
        end.receive(frame, 1.0)
    for name in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession"):
        end.bind(name)
    end.get_toplevel(end.create_surface())
    end.data_to_send()
    return end


def new_renderer(encoding: Encoding) -> ObjectRendererConnection:
    offered = offers({"text": 1, "table": 1}, ["batch"], {"max_surfaces": 4})
    end = ObjectRendererConnection(encoding, LIMITS, offered)
    for frame in SAID[encoding][0][:12]:
        end.receive(frame, 1.0)
    return end


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("side", ["agent", "renderer"])
def test_object_connections_never_raise(
    side: str, encoding: Encoding, fuzz: Random, fuzz_count: int
) -> None:
    """docs/protocol.md, "Object dialect": the peer can never make an end raise. Spec: E1."""
    taken = refused = failed = 0
    made = inputs(SAID[encoding][side == "agent"], encoding, fuzz)
    makes: Callable[[Encoding], ObjectConnection]
    makes = new_agent if side == "agent" else new_renderer
    for _ in range(share(fuzz_count) // ROUND):
        end = makes(encoding)
        for _ in range(ROUND):
            if end.life == "failed":
                end = makes(encoding)
            for event in end.receive(made(end._received_no + 1), 1.0):
                taken += isinstance(event, ObjectMessage)
                refused += isinstance(event, RefusedMessage)
                failed += isinstance(event, ConnectionFailure)
            assert all(isinstance(frame, bytes) for frame in end.data_to_send())
        assert len(end.objects.entries) <= MAX_OBJECTS
        assert len(end.objects.globals) <= MAX_GLOBALS
    assert taken > refused // 50
    assert refused > taken // 50
    assert failed > 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_screens_of_the_object_dialect_never_raise(
    encoding: Encoding, fuzz: Random, fuzz_count: int
) -> None:
    made = inputs(SAID[encoding][0], encoding, fuzz)
    hello = RendererHello(capabilities=RendererCapabilities({"text": 1}))
    for _ in range(share(fuzz_count) // ROUND):
        end = ObjectScreenConnection(hello, encoding, lambda: 1.0)
        end.hello()
        for frame in SAID[encoding][0][:12]:
            end.receive(frame)
        for _ in range(ROUND):
            if end._objects.life == "failed":
                break
            for message in end.receive(made(end._objects._received_no + 1)):
                assert isinstance(message, msgspec.Struct)
            end.replies()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_session_connections_never_raise(encoding: Encoding, fuzz: Random, fuzz_count: int) -> None:
    """docs/protocol.md, "Errors": the connection stays open after an error."""
    sides = (FROM_AGENT, FROM_RENDERER)
    good = [[recode(encode_json(one), encoding) for one in side] for side in sides]
    to_renderer, to_agent = (inputs(one, encoding, fuzz) for one in good)
    hello = RendererHello(capabilities=RendererCapabilities({"text": 1}))
    for _ in range(share(fuzz_count) // ROUND):
        agent, renderer = AgentConnection(encoding, LIMITS), RendererConnection(hello, encoding)
        renderer.hello()
        for _ in range(ROUND):
            for event in agent.receive(to_agent(1)):
                assert isinstance(event, msgspec.Struct)
                assert not isinstance(event, RejectedMessage) or isinstance(event.error, ArpError)
            messages: list[AgentMessage] = renderer.receive(to_renderer(1))
            assert all(isinstance(one, msgspec.Struct) for one in messages)


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("side", ["agent", "renderer"])
def test_refused_messages_leave_nothing_behind(side: str, encoding: Encoding) -> None:
    """What is refused is not kept: memory stays where it was."""
    fuzz, made = Random(3), []
    makes: Callable[[Encoding], ObjectConnection]
    makes = new_agent if side == "agent" else new_renderer
    end = makes(encoding)
    for number in range(400):
        value = {"v": 1, "id": 4000 + number, "op": "paint", "seq": number + 100}
        made.append(packed({**value, "payload": {"text": "x" * fuzz.randrange(2000)}}, encoding))
    tracemalloc.start()
    try:
        for frame in made[:200]:
            end.receive(frame)
            end.data_to_send()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for frame in made[200:]:
            end.receive(frame)
            end.data_to_send()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end.life == "open"
    assert end._rejected == len(made)
    assert after - before < 20_000


BOMBS: dict[str, dict[Encoding, bytes]] = {
    "nesting": {encoding: HEADS[encoding] * 100_000 for encoding in ENCODINGS},
    "array": {
        "json": b"[" + b"{}," * 300_000 + b"{}]",
        "msgpack": b"\xdd\xff\xff\xff\xff",
        "cbor": b"\x9b\x00\x00\x00\xff\xff\xff\xff\xff",
    },
    "map": {
        "json": b'{"v":1,"id":0,"op":"sync","seq":90000,"payload":' + b'{"a":' * 200_000,
        "msgpack": b"\xdf\xff\xff\xff\xff\xa1v\x01",
        "cbor": b"\xbb\x00\x00\x00\xff\xff\xff\xff\xff\x61v\x01",
    },
    "text": {
        "json": b'{"v":1,"id":0,"op":"' + b"x" * 900_000 + b'","seq":90000,"payload":{}}',
        "msgpack": b"\xdb\xff\xff\xff\xffabc",
        "cbor": b"\x7b\x00\x00\x00\xff\xff\xff\xff\xffabc",
    },
    "number": {
        "json": b'{"v":1,"id":' + b"9" * 900_000 + b',"op":"sync","seq":90000,"payload":{}}',
        "msgpack": b"\x84\xa1v\x01\xa2id\xcf" + b"\xff" * 8 + b"\xa2op\xa4sync\xa3seq\x01",
        "cbor": b"\xa1\x61v\xc2\x5b\x00\x00\x00\x00\xff\xff\xff\xff" + b"\xff" * 16,
    },
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_without_allocation(bomb: str, encoding: Encoding) -> None:
    """A few bytes that announce gigabytes, or a megabyte that nests or counts without end.

    Spec: W4.
    """
    frame = BOMBS[bomb][encoding]
    for end in (new_agent(encoding), new_renderer(encoding)):
        before = len(end.objects.entries)
        end.data_to_send()
        tracemalloc.start()
        try:
            events = end.receive(frame)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert [type(one) for one in events] == [RefusedMessage]
        assert len(end.objects.entries) == before
        assert peak < 4 * len(frame) + 200_000
        assert len(b"".join(end.data_to_send())) < 1000
