"""JSON-RPC over the pipes of a child: nothing that it sends raises, and no call waits for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.process.program import ProgramStart
from arp.protocol.json_value import Json, JsonObject
from arp.runtime.programs import json_rpc_peer
from arp.runtime.programs.json_rpc_peer import (
    INTERNAL_ERROR,
    JsonRpcChild,
    JsonRpcError,
    JsonRpcPeer,
    PeerClosed,
    RequestId,
)
from tests.support.waiting import becomes

TOLD_TO_END = -signal.SIGTERM if sys.platform == "linux" else -signal.SIGKILL


class Recorded:
    """A peer, and what it did."""

    def __init__(self, *, has_version: bool = True) -> None:
        self.written: list[JsonObject] = []
        self.notifications: list[tuple[str, JsonObject]] = []
        self.requests: list[tuple[RequestId, str, JsonObject]] = []
        self.reasons: list[str] = []
        self.peer = JsonRpcPeer(self._write, self, has_version=has_version)

    def _write(self, line: bytes) -> None:
        self.written.append(msgspec.json.decode(line))

    def notified(self, method: str, params: JsonObject) -> None:
        self.notifications.append((method, params))

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        self.requests.append((request_id, method, params))

    def closed(self, reason: str) -> None:
        self.reasons.append(reason)

    def receive(self, *messages: Json) -> None:
        for message in messages:
            self.peer.receive(msgspec.json.encode(message) + b"\n")


async def test_answers_find_their_calls_in_any_order() -> None:
    recorded = Recorded()
    first = asyncio.ensure_future(recorded.peer.call("one", {"a": 1}))
    second = asyncio.ensure_future(recorded.peer.call("two"))
    await asyncio.sleep(0)
    assert recorded.written == [
        {"jsonrpc": "2.0", "id": 1, "method": "one", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "two", "params": {}},
    ]
    recorded.receive({"id": 2, "error": {"code": -5, "message": "no", "data": [1]}})
    recorded.receive({"id": 1, "result": "yes"}, {"id": 1, "result": "again"})
    assert await first == "yes"
    with pytest.raises(JsonRpcError, match="no") as refused:
        await second
    assert (refused.value.code, refused.value.data) == (-5, [1])


async def test_what_begins_is_written_at_once() -> None:
    recorded = Recorded()
    answer = recorded.peer.begin("long")
    recorded.peer.notify("stop")
    assert [message["method"] for message in recorded.written] == ["long", "stop"]
    recorded.receive({"id": 1, "result": "stopped"})
    assert await answer == "stopped"


async def test_requests_and_notifications_come_in_order_and_are_answered() -> None:
    recorded = Recorded(has_version=False)
    recorded.receive(
        {"method": "tell", "params": {"n": 1}},
        {"id": 0, "method": "ask"},
        {"id": "x", "method": "ask", "params": [1]},
        {"method": "tell"},
    )
    assert recorded.notifications == [("tell", {"n": 1}), ("tell", {})]
    assert recorded.requests == [(0, "ask", {}), ("x", "ask", {})]
    recorded.peer.answer(0, {"ok": True})
    recorded.peer.refuse("x", -1, "no")
    recorded.peer.notify("initialized")
    assert recorded.written == [
        {"id": 0, "result": {"ok": True}},
        {"id": "x", "error": {"code": -1, "message": "no"}},
        {"method": "initialized"},
    ]


async def test_garbage_is_skipped() -> None:
    recorded = Recorded()
    waiting = asyncio.ensure_future(recorded.peer.call("one"))
    await asyncio.sleep(0)
    garbage = [b"Warning: hello", b"", b"{", b"[]", b"null", b"7", b'{"id": 9, "result": 1}']
    garbage += [b"\xff\xfe", b'{"method": 7}', b'{"id": true, "result": 1}', b'{"id": null}', b"{}"]
    for line in garbage:
        recorded.peer.receive(line + b"\r\n")
    assert not recorded.notifications
    assert not recorded.requests
    assert not waiting.done()
    recorded.receive({"id": 1, "result": None})
    assert await waiting is None


class Failing(Recorded):
    """Fails at messages without a name."""

    def notified(self, method: str, params: JsonObject) -> None:
        super().notified(params["name"], params)

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        super().requested(request_id, params["name"], params)


async def test_handler_that_fails_costs_one_message() -> None:
    failing = Failing()
    failing.receive({"method": "m"}, {"id": 3, "method": "m"})
    failing.receive({"method": "m", "params": {"name": "b"}})
    assert [name for name, _ in failing.notifications] == ["b"]
    (refused,) = failing.written
    assert (refused["id"], refused["error"]["code"]) == (3, INTERNAL_ERROR)


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.integers(-9, 9), max_size=3), max_size=4),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_any_split_of_the_bytes_gives_the_same_messages(
    messages: list[JsonObject], cuts: list[int]
) -> None:
    sent = b"".join(
        msgspec.json.encode({"method": "m", "params": params}) + b"\n" for params in messages
    )
    recorded = Recorded()
    for begin, end in pairwise([0, *sorted(cuts), len(sent) + 200]):
        recorded.peer.receive(sent[begin:end])
    assert [params for _, params in recorded.notifications] == messages


@given(st.binary())
def test_any_bytes_are_taken(sent: bytes) -> None:
    recorded = Recorded()
    recorded.peer.receive(sent)
    recorded.peer.close("over")
    assert recorded.reasons == ["over"]


async def test_line_without_end_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc_peer, "MAX_LINE_BYTES", 1000)
    recorded = Recorded()
    waiting = asyncio.ensure_future(recorded.peer.call("one"))
    await asyncio.sleep(0)
    recorded.peer.receive(b"x" * 999 + b"\n" + b"x" * 1000)
    assert not recorded.reasons
    recorded.peer.receive(b"x")
    with pytest.raises(PeerClosed, match="more than 1000 bytes"):
        await waiting
    with pytest.raises(PeerClosed):
        await recorded.peer.call("two")
    with pytest.raises(PeerClosed):
        recorded.peer.notify("three")
    recorded.receive({"method": "late"})
    assert not recorded.notifications


async def test_call_that_is_cancelled_drops_its_answer() -> None:
    recorded = Recorded()
    waiting = asyncio.ensure_future(recorded.peer.call("one"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    recorded.receive({"id": 1, "result": "late"})


class Child:
    """A Python program as child."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.notifications: asyncio.Queue[tuple[str, JsonObject]] = asyncio.Queue()
        self.reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self, **environment: str) -> JsonRpcChild:
        command = [sys.executable, "-c", self.program]
        environment = {"PATH": "/usr/bin:/bin", **environment}
        return await JsonRpcChild.start(ProgramStart(command, environment, os.getcwd()), self)

    def notified(self, method: str, params: JsonObject) -> None:
        self.notifications.put_nowait((method, params))

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        raise NotImplementedError(method)

    def closed(self, reason: str) -> None:
        self.reason.set_result(reason)


async def test_child_gets_exactly_the_environment_and_ends_with_its_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_THE_PARENT", "secret")
    program = (
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    answer = {'id': json.loads(line)['id'], 'result': dict(os.environ)}\n"
        "    print(json.dumps(answer), flush=True)\n"
    )
    child = await Child(program).start(ONE="1", LC_CTYPE="C.UTF-8")
    environment = await asyncio.wait_for(child.peer.call("environ"), 10)
    assert environment == {"PATH": "/usr/bin:/bin", "ONE": "1", "LC_CTYPE": "C.UTF-8"}
    await asyncio.wait_for(child.stop(10), 10)
    assert child.process.exit_code == 0
    assert not child.is_running


async def test_long_lines_pass() -> None:
    program = 'print(\'{"method":"m","params":{"text":"\' + \'x\' * 5_000_000 + \'"}}\')'
    about = Child(program)
    child = await about.start()
    _, params = await asyncio.wait_for(about.notifications.get(), 10)
    assert len(params["text"]) == 5_000_000
    await asyncio.wait_for(about.reason, 10)
    await child.stop(10)


async def test_end_in_the_middle_of_a_line_fails_what_waits() -> None:
    program = (
        "import sys\n"
        "sys.stdin.readline()\n"
        "sys.stderr.write('\\x1b[31mError:\\x1b[0m it broke\\n')\n"
        'sys.stdout.write(\'{"id": 1, "resu\')\n'
        "sys.exit(3)\n"
    )
    about = Child(program)
    child = await about.start()
    with pytest.raises(PeerClosed) as closed:
        await asyncio.wait_for(child.peer.call("one"), 10)
    reason = str(closed.value)
    assert reason == await about.reason
    assert reason.endswith("ended in the middle of a line (exit code 3): Error: it broke")
    await child.stop(10)


async def test_child_that_closes_its_output_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc_peer, "EXIT_S", 0.1)
    about = Child("import os, time; os.close(1); time.sleep(600)")
    child = await about.start()
    assert f"exit code {TOLD_TO_END}" in await asyncio.wait_for(about.reason, 10)
    assert child.process.exit_code == TOLD_TO_END


async def test_child_that_sends_a_line_without_end_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_rpc_peer, "MAX_LINE_BYTES", 1000)
    about = Child("import sys, time; sys.stdout.write('x' * 2000); sys.stdout.flush(); input()")
    child = await about.start()
    assert "more than 1000 bytes" in await asyncio.wait_for(about.reason, 10)
    await becomes(lambda: child.process.exit_code is not None)


async def test_child_that_ignores_the_end_of_its_input_is_ended_with_its_children(
    tmp_path: Path,
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The grandchild holds the other end of the fifo: it is gone when that is closed.
    program = (
        "import subprocess, time\n"
        f"subprocess.Popen(['/bin/sh', '-c', 'exec 3> {fifo}; echo on >&3; sleep 600'])\n"
        "time.sleep(600)\n"
    )
    child = await Child(program).start()

    loop, started = asyncio.get_running_loop(), asyncio.Event()

    def first_line() -> str:
        with fifo.open() as reader:
            line = reader.readline()
            loop.call_soon_threadsafe(started.set)
            return line + reader.read()

    reading = asyncio.create_task(asyncio.to_thread(first_line))
    await asyncio.wait_for(started.wait(), 10)
    await asyncio.wait_for(child.stop(0.1), 10)
    assert child.process.exit_code == TOLD_TO_END
    assert await asyncio.wait_for(reading, 10) == "on\n"


async def test_program_that_is_missing_is_told() -> None:
    with pytest.raises(FileNotFoundError):
        await JsonRpcChild.start(ProgramStart(["/missing/program"], {}, "/"), Child(""))
