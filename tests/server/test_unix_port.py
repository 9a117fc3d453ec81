"""Renderers over Unix sockets: who comes in, files, either side that dials, restarts."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arp import Access, App, HubSettings, IncomingConnection, Limits, Turn
from arp.client.client import ArpClient, connect
from arp.client.events import Disconnected
from arp.client.options import Backoff, Options
from arp.protocol.codec import encode
from arp.protocol.errors import InvalidMessage, PermissionDenied, ResourceLimit, Unauthenticated
from arp.protocol.framing.length_prefix import FrameSplitter, prefixed
from arp.protocol.messages import Input
from arp.server.ports.unix_port import UnixDialler, UnixPort, UnixSettings
from arp.unix.framed_socket import FramedSocket
from arp.unix.socket_path import connect_to
from tests.server.files_agent import agent
from tests.server.processes import start
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

MOST_UPLOAD = 100_000

SCRIPTED = Path(__file__).with_name("scripted.py")

AT_ONCE = Backoff(first_s=0.01, most_s=0.05)

app = App(
    title="Unix",
    settings=HubSettings(limits=Limits(max_upload_bytes=MOST_UPLOAD)),
)
app.agent(agent)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("unix") / "s"
    with serving(app, ports=[lambda state: UnixPort(state, str(path), UnixSettings())]) as running:
        yield running


def at(server: Serving) -> str:
    return server.addresses[0].removeprefix("unix:")


# -- files -----------------------------------------------------------------------------------------


async def test_files_go_as_descriptors_and_are_stored_as_they_are(server: Serving) -> None:
    content = os.urandom(MOST_UPLOAD)
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        sent = await client.send_files([("a.bin", content), ("b.txt", b"b")], "both")
        turn = await client.turn_done(await client.turn_of(sent))
        said = client.screen.text(turn.id)
    assert said == "[a.bin|application/octet-stream|100000|True][b.txt|text/plain|1|True]both"


async def test_files_go_in_the_object_dialect_too(tmp_path: Path) -> None:
    """An input that is sent meanwhile keeps its place: the numbers of messages must rise."""
    settings = UnixSettings(dialect="object")
    ports = [lambda state: UnixPort(state, str(tmp_path / "o"), settings)]
    content = os.urandom(MOST_UPLOAD)
    with serving(app, ports=ports) as running:
        url = running.addresses[0]
        async with asyncio.timeout(20), connect(url, dialect="object") as client:
            before = await client.send_text("before")
            sent = await client.send_files([("a.bin", content), ("b.txt", b"b")], "both")
            after = await client.send_text("after")
            turns = [await client.turn_done(await client.turn_of(one)) for one in (before, after)]
            assert [client.screen.text(turn.id) for turn in turns] == ["before", "after"]
            turn = await client.turn_done(await client.turn_of(sent))
            said = client.screen.text(turn.id)
    assert said == "[a.bin|application/octet-stream|100000|True][b.txt|text/plain|1|True]both"


async def test_a_file_answers_a_field_of_a_form(server: Serving) -> None:
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        turn_id = await client.turn_of(await client.send_text("form"))
        await becomes(lambda: client.screen.turns[turn_id].status == "waiting")
        fields = {"report": {"descriptor": 0, "name": "../r.csv", "mime": "text/csv"}}
        await passed(client, {"fields": fields}, [a_file(b"1,2")], "form_submit", "form")
        turn = await client.turn_done(turn_id)
        assert client.screen.text(turn.id) == "r.csv"


async def test_more_files_than_a_message_may_have_descriptors_are_not_taken(
    server: Serving,
) -> None:
    async with asyncio.timeout(20), connect(server.addresses[0], backoff=AT_ONCE) as client:
        assert (await client.ask("first")).status == "completed"
        with pytest.raises(ResourceLimit, match="at most"):
            await client.send_files([(f"{n}", b"x") for n in range(21)])
        assert (await client.ask("second")).status == "completed"


def a_file(content: bytes) -> int:
    """Return the descriptor of a file without a name."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by who gets the descriptor
    file.write(content)
    file.flush()
    with file:
        return os.dup(file.fileno())


async def passed(
    client: ArpClient,
    data: dict[str, Any],
    descriptors: list[int],
    input_type: Any = "file",
    source: str | None = None,
) -> None:
    """Sends an input with descriptors beside the client's own inputs, and closes them."""
    link = client._dial.unix_link
    assert link is not None
    message = Input(
        input_type=input_type,
        data=data,
        source_component=source,
        session_id=client.session_id,
        id="by-hand",
    )
    link._framed.send_with(encode(message, "msgpack"), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("data", "count", "why"),
    [
        ({"files": [{"descriptor": 1, "name": "x"}]}, 1, "1 is not a file of this input"),
        ({"files": [{"descriptor": -1}]}, 1, "-1 is not a file of this input"),
        ({"files": [{"descriptor": True}]}, 1, "True is not a file of this input"),
        ({"files": [{"descriptor": "0"}]}, 1, "'0' is not a file of this input"),
        ({"files": [{"descriptor": 0}, {"descriptor": 0}]}, 1, "or is used twice"),
        ({"files": [{"descriptor": 0}]}, 2, "2 files were sent, and 1 are named"),
        ({"text": "nothing named"}, 1, "1 files were sent, and 0 are named"),
    ],
)
async def test_descriptors_that_the_input_does_not_name_are_refused(
    server: Serving, data: dict[str, Any], count: int, why: str
) -> None:
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        events = client.events()
        await passed(client, data, [a_file(b"x") for _ in range(count)])
        payload = await refused(events)
        assert (await client.ask("still here")).status == "completed"
    assert payload.code == 11
    assert payload.id == "by-hand"
    assert why in payload.error


async def refused(events: Any) -> Any:
    async for event in events:
        if getattr(event, "type", "") == "error" or hasattr(event, "payload"):
            return event.payload
    raise AssertionError("no answer came")


async def test_what_is_no_regular_file_is_refused_at_once(server: Serving) -> None:
    """Spec: T4. A pipe would never end, a directory has no bytes, a device no size."""
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        for make in (pipe_end, lambda: os.open("/", os.O_RDONLY), lambda: os.open("/dev/zero", 0)):
            events = client.events()
            await passed(client, {"files": [{"descriptor": 0}]}, [make()])
            payload = await refused(events)
            assert (payload.code, payload.error) == (11, "descriptor 0: not a regular file")


def pipe_end() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


async def test_a_file_that_is_too_large_is_refused_before_it_is_read(server: Serving) -> None:
    """Also a sparse one of a terabyte, and one of which only the beginning could be read."""
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        for size in (MOST_UPLOAD + 1, 1 << 40):
            descriptor = a_file(b"")
            os.truncate(descriptor, size)
            events = client.events()
            await passed(client, {"files": [{"descriptor": 0}]}, [descriptor])
            assert (await refused(events)).code == 4


async def test_a_descriptor_that_cannot_be_read_is_refused(server: Serving) -> None:
    with tempfile.NamedTemporaryFile() as file:
        async with asyncio.timeout(20), connect(server.addresses[0]) as client:
            events = client.events()
            descriptor = os.open(file.name, os.O_WRONLY)
            await passed(client, {"files": [{"descriptor": 0}]}, [descriptor])
            assert (await refused(events)).code == 11


# -- who comes in ----------------------------------------------------------------------------------


def authenticate(connection: IncomingConnection) -> str | None:
    """Lets in who is known by the user of the machine, or by a token."""
    assert connection.kind == "unix"
    assert connection.client == ""
    if connection.token:
        return {"a": "ada"}.get(connection.token)
    return "me" if connection.uid == os.geteuid() else None


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_without_the_token_of_the_app_nobody_comes_in(
    tmp_path: Path, token: str | None
) -> None:
    locked = App(title="Locked", access=Access(token="secret"))
    locked.agent(agent)
    port = [lambda state: UnixPort(state, str(tmp_path / "s"), UnixSettings())]
    with serving(locked, ports=port) as running:
        async with asyncio.timeout(20):
            with pytest.raises(Unauthenticated):
                async with connect(running.addresses[0], token=token):
                    pass
            async with connect(running.addresses[0], token="secret") as client:
                assert client.screen.text((await client.ask("in")).id) == "in"


async def test_a_hook_gets_the_user_of_the_machine_and_the_token_of_a_hello(tmp_path: Path) -> None:
    who = App(title="Who", access=Access(authenticate=authenticate))

    @who.agent
    async def tell(turn: Turn) -> None:
        await turn.say(turn.user.name)

    port = [lambda state: UnixPort(state, str(tmp_path / "s"), UnixSettings())]
    with serving(who, ports=port) as running:
        async with asyncio.timeout(20), connect(running.addresses[0]) as client:
            assert client.screen.text((await client.ask("who?")).id) == "me"


FOREIGN = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX) as own:
    own.connect(sys.argv[1])
    data = b""
    while (more := own.recv(65536)):
        data += more
        if b"hello" in data:
            break
sys.stdout.buffer.write(data)
"""


@pytest.mark.root
@pytest.mark.parametrize("uids", [(), (65534,)])
async def test_another_user_of_the_machine_is_refused_unless_listed(uids: tuple[int, ...]) -> None:
    """Spec: T2. Even where the file would let them in, the kernel says who they are."""
    opened = App(title="Ours", access=Access(uids=uids))
    opened.agent(agent)
    with tempfile.TemporaryDirectory(prefix="arp-") as folder:
        os.chmod(folder, 0o711)
        path = Path(folder) / "s"
        port = [lambda state: UnixPort(state, str(path), UnixSettings("json"))]
        with serving(opened, ports=port):
            path.chmod(0o666)
            command = [sys.executable, "-c", FOREIGN, str(path)]
            got = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=20)
    assert got.returncode == 0, got.stderr
    if uids:
        (hello,) = FrameSplitter(1 << 20).feed(got.stdout)
        assert hello.startswith(b'{"type":"hello"')
    else:
        assert got.stdout == bytes(4) + b"\x03\xf0" + (
            b"user 65534 may not connect; the server's Access(uids=\xe2\x80\xa6) lists more"
        )


async def test_the_client_refuses_a_server_of_another_user(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token would be shown to them."""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(PermissionDenied, match="runs as user"):
        async with asyncio.timeout(20), connect(server.addresses[0]):
            pass


async def test_who_sends_rubbish_is_disconnected_and_the_others_are_not(server: Serving) -> None:
    """A length bomb, and more than a thousand bad frames; with the reason, as a close code."""
    bad = prefixed([b"\xc1"]) * 1100
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        for data, code in ((b"\xff\xff\xff\xff", 1009), (bad, 1008)):
            framed = FramedSocket(connect_to(at(server)), 1 << 20)
            framed._socket.setblocking(True)
            await asyncio.to_thread(framed._socket.sendall, data)
            framed._socket.setblocking(False)
            while await framed.receive() is not None:
                pass
            assert framed.is_closed_by_peer
            assert framed.ended is not None
            assert framed.ended.code == code
            framed.abort()
        assert (await client.ask("still here")).status == "completed"


async def test_a_message_above_the_limit_gets_a_coded_error_and_the_connection_stays(
    server: Serving,
) -> None:
    async with asyncio.timeout(20), connect(server.addresses[0]) as client:
        events = client.events()
        link = client._dial.unix_link
        assert link is not None
        await link.send(b"\xc4" * (2 << 20))
        assert (await refused(events)).code == 4
        assert (await client.ask("still here")).status == "completed"


# -- either side dials, and comes back -------------------------------------------------------------


async def test_an_agent_dials_a_renderer_that_listens(tmp_path: Path) -> None:
    """And again, after either side was gone; the renderer resumes where it was."""
    path = str(tmp_path / "screen")
    port = [lambda state: UnixDialler(state, path, UnixSettings(), draw=lambda: 0.0)]
    async with asyncio.timeout(60):
        with serving(app, ledger=f"sqlite:{tmp_path / 'ledger.db'}", ports=port):
            options: Options = {"listen": True, "session_id": "s", "backoff": AT_ONCE}
            async with ArpClient(f"unix:{path}", **options) as client:
                assert (await client.ask("first")).status == "completed"
            async with ArpClient(f"unix:{path}", **options) as client:
                events = client.events()
                await client.ready()
                assert client.screen.text("t1") == "first"
                await client.ask("second")
                link = client._dial.unix_link
                assert link is not None
                link._framed.abort()
                while not isinstance(await anext(events), Disconnected):
                    pass
                assert (await client.ask("third")).status == "completed"
                assert client.screen.text("t2") == "second"
    assert "screen" not in os.listdir(tmp_path)


ECHO = """
from arp import App, Turn

app = App()


@app.agent
async def agent(turn: Turn) -> None:
    await turn.say(f"you said {turn.text}")
"""


async def test_a_terminal_listens_and_an_agent_that_is_started_again_dials_it(
    tmp_path: Path,
) -> None:
    """Both as processes: `arp connect --listen`, `arp serve --dial`, which is killed between."""
    agent, path = tmp_path / "app.py", tmp_path / "run" / "screen"
    agent.write_text(ECHO)
    terminal = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "connect", "--listen", f"unix:{path}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert terminal.stdin is not None
    assert terminal.stdout is not None
    started = []
    try:
        async with asyncio.timeout(60):
            await becomes(path.exists)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            for word in ("hello", "again"):
                started.append(await start(agent, tmp_path / "l.db", "--dial", f"unix:{path}"))
                terminal.stdin.write(f"{word}\n".encode())
                await terminal.stdout.readuntil(f"you said {word}".encode())
                await started[-1].kill()
            terminal.stdin.close()
            assert await terminal.wait() == 0
        assert not path.exists()
    finally:
        for one in started:
            await one.aclose()
        if terminal.returncode is None:
            terminal.kill()
            await terminal.wait()


async def test_a_renderer_that_listens_talks_to_one_agent_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "screen")
    async with asyncio.timeout(20), ArpClient(f"unix:{path}", listen=True):
        await becomes(lambda: os.path.exists(path))
        first, second = connect_to(path), connect_to(path)
        with closing(first), closing(second):
            for one in (first, second):
                one.setblocking(True)
            hello = await asyncio.to_thread(first.recv, 65_536)
            told = await asyncio.to_thread(second.recv, 65_536)
    assert b"hello" in hello
    assert told == bytes(4) + b"\x03\xf5" + b"this renderer has an agent already"


async def test_two_renderers_cannot_listen_at_the_same_path(tmp_path: Path) -> None:
    path = str(tmp_path / "screen")
    async with asyncio.timeout(20), ArpClient(f"unix:{path}", listen=True):
        await becomes(lambda: os.path.exists(path))
        async with ArpClient(f"unix:{path}", listen=True) as second:
            await becomes(lambda: second.failure is not None)
    assert "another server listens there" in str(second.failure)


async def test_after_a_kill_the_stale_socket_is_replaced_and_renderers_resume(
    tmp_path: Path,
) -> None:
    """Nobody removes the file of a process that is killed."""
    path, ledger = tmp_path / "s", tmp_path / "ledger.db"
    options: Options = {"session_id": "s", "backoff": AT_ONCE}
    first = await start(SCRIPTED, ledger, "--unix", str(path))
    try:
        async with asyncio.timeout(60), ArpClient(f"unix:{path}", **options) as client:
            await client.ask("fail")
            await first.kill()
            assert path.exists()
            second = await start(SCRIPTED, ledger, "--unix", str(path))
            try:
                assert (await client.ask("fail")).status == "failed"
                assert list(client.screen.turns) == ["t1", "t2"]
                assert await second.stop(15) == 0
                assert not path.exists()
            finally:
                await second.aclose()
    finally:
        await first.aclose()


async def test_a_server_that_stops_asks_its_renderers_to_come_back(tmp_path: Path) -> None:
    port = [lambda state: UnixPort(state, str(tmp_path / "s"), UnixSettings())]
    with serving(app, ports=port):
        framed = FramedSocket(connect_to(tmp_path / "s"), 1 << 20)
        assert await framed.receive() is not None
    async with asyncio.timeout(10):
        assert await framed.receive() is None
    assert framed.ended == (1012, "restarting")
    framed.abort()


async def test_no_descriptors_left_is_no_busy_loop(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is accepted for a second; then the connection that waited is."""
    calls = 0

    def full(self: socket.socket) -> Any:
        nonlocal calls
        calls += 1
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(socket.socket, "accept", full)
        framed = FramedSocket(connect_to(at(server)), 1 << 20)
        await becomes(lambda: calls > 0)
    async with asyncio.timeout(10):
        assert await framed.receive() is not None
    assert calls == 1
    framed.abort()


async def test_an_answer_with_another_encoding_is_told_to_the_caller(server: Serving) -> None:
    """Nothing in the framing says which it is."""
    with pytest.raises(InvalidMessage):
        async with asyncio.timeout(20), connect(server.addresses[0], encoding="json"):
            pass
