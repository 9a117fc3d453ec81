"""One connection's conversation: who has shown no token is heard for that alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.peers.peer import Peer
from arp.protocol.codec import Encoding, agent_decoder, recode
from arp.protocol.messages import Pong
from tests.hub.rig import Box, running
from tests.support.frames import hello

HELLO = hello("text", session_id="s")
SAID = {"v": 1, "type": "input", "session_id": "s", "input_type": "text", "data": {"text": "x"}}


async def check(token: str) -> Principal | None:
    """Ada's token is `ada`, and so on; nobody has `evil`."""
    await asyncio.sleep(0)
    return Principal(token) if token != "evil" else None


def peer_of(hub: Hub, principal: Principal | None = None) -> tuple[Peer, Box]:
    box = Box()
    peer = Peer(hub, box, "json", "agent", principal, check)
    peer.start()
    return peer, box


async def told(peer: Peer, *messages: Any) -> None:
    for message in messages:
        await peer.receive(message if isinstance(message, str) else json.dumps(message))


async def test_connection_begins_with_the_agents_hello() -> None:
    """protocol.md 2.1: `hello` is the first message on every connection. Spec: S11."""
    async with running() as hub:
        _, box = peer_of(hub, Principal())
        first = box.messages[0]
    assert first["type"] == "hello"
    assert first["capabilities"]["limits"]["max_message_bytes"] == 1 << 20
    assert first["capabilities"]["encodings"] == ["json", "msgpack", "cbor"]


@pytest.mark.parametrize(
    "message", [SAID, {"v": 1, "type": "ack", "seq": 1}, {"type": "ping", "id": "p"}, HELLO]
)
async def test_peer_without_a_token_is_not_heard(message: dict[str, Any]) -> None:
    """UNAUTHENTICATED, and nothing has happened."""
    async with running() as hub:
        peer, box = peer_of(hub)
        await told(peer, message, {**HELLO, "token": "evil"})
        errors = [one["payload"]["code"] for one in box.of("error")]
        sessions = list(hub.sessions)
        peer.closed()
    assert errors == [14, 14]
    assert sessions == []


async def test_token_in_hello_opens_the_door() -> None:
    """WebSocket clients may send the token in their hello; sessions belong to its owner."""
    trusted: list[str] = []
    async with running() as hub:
        peer, box = peer_of(hub)
        peer.on_trusted = lambda: trusted.append("now")
        await told(peer, {**HELLO, "token": "ada"}, SAID)
        await box.has("commit", final=True)
        owner = hub.sessions["s"].session.head.owner
        before = list(trusted)
        peer.closed()
    assert owner == "ada"
    assert before == ["now"]


async def test_identity_stays_what_it_was_whatever_a_later_hello_says() -> None:
    """T07, T08: identity comes from the connection, not from a message."""
    async with running() as hub:
        peer, box = peer_of(hub)
        await told(peer, {**HELLO, "token": "ada"})
        await box.has("session", session_id="s")
        await told(peer, {**HELLO, "session_id": "t", "token": "bob", "role": "admin"})
        await box.has("session", session_id="t")
        owners = {name: live.session.head.owner for name, live in hub.sessions.items()}
        peer.closed()
    assert owners == {"t": "ada"}


async def test_session_of_somebody_else_is_not_found() -> None:
    """T06: by hello, by resume, and by input; 0 bytes of it are sent."""
    async with running() as hub:
        hers, her_box = peer_of(hub, Principal("ada"))
        await told(hers, HELLO, {**SAID, "data": {"text": "her secret"}})
        await her_box.has("commit", final=True)
        epoch = her_box.of("session")[0]["epoch"]
        his, box = peer_of(hub, Principal("bob"))
        resume = {"epoch": epoch, "seq": 0}
        await told(his, HELLO, {**HELLO, "resume": resume}, SAID)
        errors = [one["payload"]["code"] for one in box.of("error")]
        watching = len(hub.sessions["s"].viewers)
        for peer in (hers, his):
            peer.closed()
    assert errors == [8, 8, 8]
    assert watching == 1
    assert "secret" not in json.dumps(box.messages)
    assert {one["type"] for one in box.messages} == {"hello", "error"}


async def test_hello_for_a_session_of_somebody_else_leaves_the_renderer_on_its_own() -> None:
    """A message that is refused changes nothing. Spec: S15, E1."""
    async with running() as hub:
        hers, _ = peer_of(hub, Principal("ada"))
        his, box = peer_of(hub, Principal("bob"))
        await told(hers, HELLO)
        await told(his, {**HELLO, "session_id": "his"}, HELLO)
        await told(his, {key: value for key, value in SAID.items() if key != "session_id"})
        await box.has("commit", final=True)
        for peer in (hers, his):
            peer.closed()
    assert [one["payload"]["code"] for one in box.of("error")] == [8]
    assert {one["session_id"] for one in box.of("commit")} == {"his"}


async def test_peer_that_shows_no_token_in_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """T17: a deadline; 1008."""
    monkeypatch.setattr("arp.hub.peers.peer.HELLO_DEADLINE_S", 0.01)
    async with running() as hub:
        late, box = peer_of(hub)
        known, other = peer_of(hub)
        await told(known, {**HELLO, "token": "ada"})
        await box.until(lambda: box.closed is not None)
        closed = other.closed
        for peer in (late, known):
            peer.closed()
    assert box.closed == (1008, "no valid token in time")
    assert closed is None


async def test_peer_of_rubbish_is_closed_in_the_end() -> None:
    """The errors have an end: 1008."""
    async with running() as hub:
        peer, box = peer_of(hub, Principal())
        for _ in range(1001):
            await told(peer, "{")
        errors = len(box.of("error"))
        peer.closed()
    assert errors == 1000
    assert box.closed is not None
    assert box.closed[0] == 1008


async def test_batch_of_messages_is_taken_in_order() -> None:
    """Feature `batch`: an array of messages, applied in order, each with its own answer."""
    async with running() as hub:
        peer, box = peer_of(hub, Principal())
        bad = {**SAID, "data": {"text": 1}, "id": "bad"}
        batch = [HELLO, {**SAID, "id": "a"}, bad, {**SAID, "id": "b"}]
        await told(peer, json.dumps(batch))
        await box.has("commit", turn_id="t2", final=True)
        acks = [one["id"] for one in box.of("ack")]
        errors = [one["payload"]["id"] for one in box.of("error")]
        peer.closed()
    assert acks == ["a", "b"]
    assert errors == ["bad"]


async def test_closed_peer_leaves_nothing_behind() -> None:
    """Its place on the session and its claim to be waiting for a token are gone."""
    gone: list[str] = []
    async with running() as hub:
        peer, _ = peer_of(hub, Principal())
        await told(peer, HELLO)
        stranger, _ = peer_of(hub)
        stranger.on_trusted = lambda: gone.append("gone")
        for one in (peer, stranger):
            one.closed()
        watching = hub.sessions["s"].viewers
    assert watching == {}
    assert gone == ["gone"]


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_ping_is_answered_before_what_waits_and_is_nothing_else(encoding: Encoding) -> None:
    """protocol.md 2: no fact, no input, no session, also before a `hello`."""
    async with running() as hub:
        box = Box()
        peer = Peer(hub, box, encoding, "agent", Principal(), check)
        peer.start()
        asked = {"v": 1, "type": "ping", "id": "p1"}
        await peer.receive(recode(json.dumps(asked).encode(), encoding))
        (answer,) = agent_decoder(encoding).decode(box.first[0])
        await peer.receive(recode(json.dumps({**asked, "type": "pong"}).encode(), encoding))
        sessions, told = list(hub.sessions), len(box.frames)
        peer.closed()
    assert answer == Pong(id="p1")
    assert sessions == []
    assert told == 2  # the agent side's hello, and the pong


async def test_ping_keeps_no_session_in_memory_and_brings_none_back() -> None:
    """A session that nobody uses leaves the memory, whoever asks whether we live."""
    async with running() as hub:
        peer, box = peer_of(hub, Principal())
        await told(peer, HELLO)
        await box.has("session")
        live = hub.sessions["s"]
        before = (live.session.sequence, live.used_at)
        await told(peer, *({"type": "ping", "id": f"p{number}"} for number in range(20)))
        after = (live.session.sequence, live.used_at)
        peer.closed()
        await live.written()
        hub.lifetimes.evict(float("inf"))
        stranger, other = peer_of(hub, Principal())
        await told(stranger, {"type": "ping", "id": "p"})
        sessions = list(hub.sessions)
        stranger.closed()
    assert after == before
    assert [one["id"] for one in box.of("pong")] == [f"p{number}" for number in range(20)]
    assert sessions == []
    assert len(other.of("pong")) == 1


@pytest.mark.parametrize("wrong", [{}, {"id": ""}, {"id": 7}, {"id": "ä"}, {"id": "x" * 129}])
async def test_ping_without_an_id_of_ours_is_refused(wrong: dict[str, Any]) -> None:
    """What it says comes back in the answer."""
    async with running() as hub:
        peer, box = peer_of(hub, Principal())
        await told(peer, {"type": "ping", **wrong})
        codes = [one["payload"]["code"] for one in box.of("error")]
        peer.closed()
    assert codes == [11]
    assert box.first == []
