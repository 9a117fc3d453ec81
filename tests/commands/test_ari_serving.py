"""`arp ari serve`: a real process that serves a runtime over gRPC and HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import InvalidArgument, NotFound, OperationDenied, Unavailable
from arp.runtime.contract.services import EventSubscription
from arp.runtime.named import named_runtime
from arp.runtime.remote.grpc_runtime import GrpcRuntime
from arp.runtime.remote.http_runtime import HttpRuntime
from tests.runtime.certificates import certificates

START_S = 30.0

AGENT = """
import asyncio
import sys

from arp.runtime.plain.function import FunctionRuntime
from arp.testing import FakeRuntime, Says, Uses, Waits

fake = FakeRuntime(
    {
        "go": [Uses("shell", {"command": "ls"}, "README", asks=True), Says("Ok.")],
        "wait": [Says("One."), Waits()],
    }
)


class Commands(FakeRuntime):
    runs_commands = True


commands = Commands({"go": [Says("Ok.")]})


async def sleeper(turn):
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=-1)
    try:
        yield str(child.pid)
        await child.wait()
    finally:
        child.kill()
        await child.wait()
"""


async def started(place: Path, *words: str, **variables: str) -> Process:
    (place / "agent.py").write_text(AGENT)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("ARP_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "ari", "serve", *words),
        cwd=place,
        env={**environment, **variables},
        stdout=PIPE,
        stderr=PIPE,
    )


@asynccontextmanager
async def serving(
    place: Path, *words: str, addresses: int = 2, **variables: str
) -> AsyncIterator[tuple[Process, list[str]]]:
    """Run the command until the block ends, and give its process and what it listens on."""
    child = await started(place, *words, **variables)
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(START_S):
            lines = [(await child.stdout.readline()).decode() for _ in range(addresses)]
            if not lines[-1]:
                raise AssertionError((await child.stderr.read()).decode())
        yield child, [line.removeprefix("ARI on ").strip() for line in lines]
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGTERM)
        async with asyncio.timeout(START_S):
            out, log = await child.communicate()
        assert (child.returncode, out, log) == (0, b"", b"")


async def refused(place: Path, *words: str, **variables: str) -> str:
    """Return the one line with which the command ends."""
    child = await started(place, *words, **variables)
    async with asyncio.timeout(START_S):
        out, log = await child.communicate()
    assert out == b""
    assert child.returncode in (1, 2)
    (line,) = log.decode().splitlines()
    return line


async def some(events: EventSubscription, count: int) -> list[ari.Event]:
    async with asyncio.timeout(10):
        return [await anext(events) for _ in range(count)]


BOTH = ("--grpc", ":0", "--http", ":0")


async def test_one_runtime_over_grpc_and_http(tmp_path: Path) -> None:
    async with serving(tmp_path, "--runtime", "agent:fake", *BOTH) as (_, (grpc, http)):
        assert grpc.startswith("grpc://127.0.0.1:")
        assert http.startswith("http://127.0.0.1:")
        one, other = GrpcRuntime(grpc.removeprefix("grpc://")), HttpRuntime(http)
        created = await one.create_session(ari.CreateSessionRequest(title="T"))
        session_id = created.session.session_id
        request = ari.SessionEventsRequest(session_id, 0)
        streams = [await one.session_events(request), await other.session_events(request)]
        message = ari.RuntimeMessage(content="go")
        await one.send_message(ari.SendMessageRequest(session_id, message))
        seen = [await some(events, 4) for events in streams]
        assert seen[0] == seen[1]
        asked = seen[0][-1]
        assert asked.permission is not None
        allow = ari.PermissionResponse("allow", updated_input={"command": "pwd"})
        answer = ari.RespondPermissionRequest(session_id, asked.request_id, allow)
        await other.respond_permission(answer)
        rest = [await some(events, 4) for events in streams]
        assert rest[0] == rest[1]
        assert (rest[0][-1].done, rest[0][-1].content) == (True, "Ok.")
        for remote in (one, other):
            with pytest.raises(NotFound, match="there is no session 'none'"):
                await remote.get_session(ari.GetSessionRequest("none"))
            got = await remote.get_session(ari.GetSessionRequest(session_id))
            assert (got.session.title, got.session.turn_count) == ("T", 1)
            with pytest.raises(InvalidArgument, match="not below the directory"):
                await remote.create_session(ari.CreateSessionRequest(cwd="/"))
        for remote in (one, other):
            await remote.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_sessions_and_processes(tmp_path: Path, number: signal.Signals) -> None:
    words = ("--runtime", "agent:sleeper", *BOTH)
    async with serving(tmp_path, *words) as (child, (grpc, http)):
        one, other = GrpcRuntime(grpc.removeprefix("grpc://")), HttpRuntime(http)
        created = await one.create_session(ari.CreateSessionRequest())
        session_id = created.session.session_id
        request = ari.SessionEventsRequest(session_id, 1)
        streams = [await one.session_events(request), await other.session_events(request)]
        message = ari.RuntimeMessage(content="sleep")
        await one.send_message(ari.SendMessageRequest(session_id, message))
        seen = [await some(events, 2) for events in streams]
        process_id = int(seen[0][-1].content)
        os.kill(process_id, 0)
        child.send_signal(number)
        async with asyncio.timeout(10):
            for events in streams:
                last = [event async for event in events]
                assert last[-1].lifecycle == ari.Lifecycle.CLOSED
                assert [event.done for event in last].count(True) == 1
            assert await child.wait() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(process_id, 0)
        for remote in (one, other):
            await remote.close()


async def test_who_may_not_come_in(tmp_path: Path) -> None:
    words = ("--runtime", "agent:fake", "--grpc", "0.0.0.0:0", "--http", "0.0.0.0:0")
    async with serving(tmp_path, *words, ARP_TOKEN="s3cret") as (_, (grpc, http)):
        ports = [address.rpartition(":")[2] for address in (grpc, http)]
        for token in (None, "other", "s3cret"):
            remotes = (
                GrpcRuntime(f"127.0.0.1:{ports[0]}", token=token),
                HttpRuntime(f"http://127.0.0.1:{ports[1]}", token=token),
            )
            for remote in remotes:
                if token == "s3cret":
                    version = await remote.version(ari.VersionRequest())
                    assert version.runtime_name == "fake"
                else:
                    with pytest.raises(OperationDenied, match="a valid token is needed"):
                        await remote.version(ari.VersionRequest())
                await remote.close()


async def test_name_that_others_can_reach_needs_a_token(tmp_path: Path) -> None:
    """As with `arp serve`: a proxy on this machine makes everybody local."""
    words = ("--runtime", "agent:fake", "--http", ":0", "--allow-host", "agents.example")
    line = await refused(tmp_path, *words)
    assert "agents.example can be reached by others: set --token" in line


async def test_grpc_and_http_with_tls(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    tls = ("--tls-cert", files.certificate, "--tls-key", files.key)
    async with serving(tmp_path, "--runtime", "agent:fake", *BOTH, *tls) as (_, addresses):
        assert [address.partition("127")[0] for address in addresses] == ["grpcs://", "https://"]
        session_ids = []
        for address in addresses:
            remote = named_runtime(address, environment={"ARP_RUNTIME_CA": files.ca})
            created = await remote.create_session(ari.CreateSessionRequest())
            session_ids.append(created.session.session_id)
            request = ari.SessionEventsRequest(session_ids[-1], 0)
            (event,) = await some(await remote.session_events(request), 1)
            assert event.lifecycle == ari.Lifecycle.CREATED
            await remote.close(ari.CloseRequest())
            unknown = named_runtime(address)
            with pytest.raises(Unavailable, match=r"(?i)version: .*certificate"):
                await unknown.version(ari.VersionRequest())
            await unknown.close(ari.CloseRequest())
        assert len(set(session_ids)) == 2


async def test_files_for_tls_that_cannot_be_used_are_told_in_one_line(tmp_path: Path) -> None:
    words = ("--runtime", "agent:fake", "--http", ":0", "--tls-cert", "none.pem")
    assert "--tls-cert and --tls-key go together" in await refused(tmp_path, *words)
    line = await refused(tmp_path, *words, "--tls-key", "none.pem")
    assert "--tls-cert: none.pem and none.pem are no certificate and its key" in line


async def test_a_mode_of_the_operator_is_for_sessions_that_ask_for_none(tmp_path: Path) -> None:
    begin = ("--mode", "free", "--runtime-model", "fake-2")
    words = ("--runtime", "agent:fake", "--grpc", ":0", *begin)
    async with serving(tmp_path, *words, addresses=1) as (_, (grpc,)):
        remote = GrpcRuntime(grpc.removeprefix("grpc://"))
        for asked, mode in (("", "free"), ("ask", "ask")):
            created = await remote.create_session(ari.CreateSessionRequest(mode=asked))
            assert (created.session.mode, created.session.model) == (mode, "fake-2")
        await remote.close()


async def test_runtime_that_runs_commands_has_a_token_at_each_start(tmp_path: Path) -> None:
    words = ("--runtime", "agent:commands", *BOTH)
    tokens = ["", "x" * 43]
    for _ in range(2):
        async with serving(tmp_path, *words, addresses=3) as (_, (grpc, http, said)):
            tokens.append(said.removeprefix("ARI token: "))
            for token in tokens:
                for remote in (
                    GrpcRuntime(grpc.removeprefix("grpc://"), token=token or None),
                    HttpRuntime(http, token=token or None),
                ):
                    if token in tokens[2:]:
                        await remote.create_session(ari.CreateSessionRequest())
                    else:
                        with pytest.raises(OperationDenied, match="a valid token is needed"):
                            await remote.create_session(ari.CreateSessionRequest())
                    await remote.close()
    assert len(set(tokens)) == 4


async def test_without_a_token_commands_come_in_and_a_warning_says_so(tmp_path: Path) -> None:
    child = await started(
        tmp_path, "--runtime", "agent:commands", "--http", ":0", "--no-token", "--grpc", ":0"
    )
    assert child.stdout is not None
    async with asyncio.timeout(START_S):
        await child.stdout.readline()
        http = (await child.stdout.readline()).decode().removeprefix("ARI on ").strip()
        remote = HttpRuntime(http)
        await remote.create_session(ari.CreateSessionRequest())
        await remote.close()
        child.send_signal(signal.SIGTERM)
        _, log = await child.communicate()
    assert b"Commands that its agents run can use this server" in log


async def test_what_is_wrong_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        lines = await asyncio.gather(
            refused(tmp_path, "--runtime", "agent:fake"),
            refused(tmp_path, "--runtime", "agent:fake", "--grpc", "0.0.0.0:0"),
            refused(tmp_path, "--runtime", "agent:fake", "--http", "here"),
            refused(tmp_path, "--runtime", "agent:fake", "--grpc", port),
            refused(tmp_path, "--runtime", "agent:fake", "--http", port),
            refused(tmp_path, "--runtime", "nothing", "--http", ":0"),
            refused(tmp_path, "--runtime", "agent:fake", "--http", ":0", "--cwd", "none"),
            refused(tmp_path, "--runtime", "agent:fake", "--http", ":0", "--token", "a b"),
        )
    for line, words in zip(
        lines,
        (
            "Give --grpc, --http or both",
            "0.0.0.0:0 can be reached by others: set --token (or ARP_TOKEN)",
            "--http here: expected [HOST]:PORT",
            f"cannot listen on 127.0.0.1:{port}",
            f"cannot listen on 127.0.0.1:{port}",
            "--runtime nothing: there is no runtime 'nothing'",
            "--cwd: there is no directory none",
            "expected a text without spaces",
        ),
        strict=True,
    ):
        assert line.startswith("arp: ")
        assert words.lower() in line.lower()
