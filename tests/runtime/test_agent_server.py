"""The base class of agents with one process for many sessions: start, calls, and delivery."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.errors import AriError, InvalidArgument, Unavailable
from arp.runtime.programs import agent_server
from arp.runtime.programs.agent_server import AgentServer
from arp.runtime.programs.json_rpc_peer import JsonRpcError, PeerClosed, RequestId

PROGRAM = """
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call["method"] == "silent":
        continue
    refused = {"error": {"code": 1, "message": "no"}} if call["method"] == "refused" else None
    print(json.dumps({"id": call["id"], **(refused or {"result": call["method"]})}), flush=True)
"""


class Session:
    """A session that records what is delivered to it."""

    def __init__(self) -> None:
        self.messages: list[JsonObject] = []
        self.reasons: list[str] = []

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)


class Server(AgentServer[Session]):
    """A server that keeps every message about an unknown session."""

    start_s = 10.0

    def __init__(self, greeting: str = "hello") -> None:
        super().__init__("agent")
        self.greeting = greeting

    async def _introduce(self) -> None:
        self.version = await self.call(self.greeting, {})

    def error_of(self, refused: JsonRpcError) -> AriError:
        return InvalidArgument(refused.message)

    def notified(self, method: str, params: JsonObject) -> None:
        session = self.session(params.get("id"))
        if session is None:
            self.keep_early(str(params.get("id")), lambda: self.notified(method, params))
        else:
            session.messages.append(params)

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        raise NotImplementedError


async def start(server: Server, program: str = PROGRAM) -> Server:
    """Start a program of Python as the process of a server."""
    command = [sys.executable, "-c", program]
    await server.start(command, {"PATH": os.environ["PATH"]}, Path.cwd())
    return server


async def test_calls_are_answered_refused_or_late(monkeypatch: pytest.MonkeyPatch) -> None:
    server = await start(Server())
    assert (server.version, server.is_running) == ("hello", True)
    assert server.process_id > 0
    with pytest.raises(InvalidArgument, match="no"):
        await server.call("refused", {})
    monkeypatch.setattr(agent_server, "CALL_S", 0.05)
    with pytest.raises(Unavailable, match=r"agent did not answer silent within 0\.05 s"):
        await server.call("silent", {})
    await server.stop()
    with pytest.raises(PeerClosed):
        await server.call("hello", {})
    assert (server.is_running, server.ended.is_set()) == (False, True)


async def test_program_that_does_not_start_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unavailable, match="agent cannot be started"):
        await Server().start([str(tmp_path / "missing")], {}, tmp_path)
    with pytest.raises(Unavailable, match=r"agent ended.*cannot work"):
        await start(Server(), "raise SystemExit('cannot work')")
    monkeypatch.setattr(Server, "start_s", 0.5)
    server = Server("silent")
    with pytest.raises(Unavailable, match=r"agent did not start within 0\.5 s"):
        await start(server)
    assert not server.is_running


async def test_early_messages_are_delivered_when_their_session_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_server, "MAX_EARLY", 3)
    server, session, other = Server(), Session(), Session()
    for number, name in enumerate(["one", "two", "one", "two"]):
        server.notified("update", {"id": name, "number": number})
    server.add("one", session)
    assert [one["number"] for one in session.messages] == [0, 2]
    server.add("two", other)
    assert [one["number"] for one in other.messages] == [1]


async def test_kept_message_that_adds_a_session_loses_no_other_message() -> None:
    server, session, agent = Server(), Session(), Session()
    server.keep_early("thread", lambda: server.add("agent", agent))
    server.notified("update", {"id": "agent", "number": 1})
    server.notified("update", {"id": "thread", "number": 2})
    server.notified("update", {"id": "agent", "number": 3})
    server.add("thread", session)
    assert [one["number"] for one in session.messages] == [2]
    assert [one["number"] for one in agent.messages] == [1, 3]


async def test_session_is_lost_once_and_dropped_with_all_its_ids() -> None:
    server, session, other = Server(), Session(), Session()
    for name in ("one", "its agent"):
        server.add(name, session)
    server.add("two", other)
    assert server.sessions() == [session, other]
    server.drop(other)
    assert server.session("two") is None
    server.closed("it ended")
    assert (session.reasons, other.reasons, server.sessions()) == (["it ended"], [], [])
