from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from arp.client.address import parse_address
from arp.client.errors import LinkLost, ServerRefused
from arp.client.links.stdio_link import StdioLink, open_stdio

HELLO = b'{"v":1,"type":"hello"}'

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


async def child(program: str, grace_s: float = 5.0) -> StdioLink:
    """A Python child that runs `program`."""
    address = parse_address("stdio:", [sys.executable, "-c", program])
    return await open_stdio(address, HELLO, grace_s)


def is_running(link: StdioLink) -> bool:
    try:
        os.kill(link._process.pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_frames_are_lines_both_ways() -> None:
    link = await child(ECHO)
    async with asyncio.timeout(10):
        assert await link.receive() == HELLO + b"\n"
        await link.send('{"text":"ä"}'.encode())
        assert await link.receive() == '{"text":"ä"}\n'.encode()
    await link.aclose()
    assert not is_running(link)


async def test_empty_lines_are_no_frames() -> None:
    link = await child("print('\\n  \\r\\n{}', flush=True); input(); input()")
    async with asyncio.timeout(10):
        assert await link.receive() == b"{}\n"
    await link.aclose()


async def test_line_longer_than_a_pipe_arrives_whole() -> None:
    link = await child("print('x' * 1_000_000, flush=True); input(); input()")
    async with asyncio.timeout(10):
        assert len(await link.receive()) == 1_000_001
    await link.aclose()


async def test_child_that_dies_is_told_with_its_exit_code() -> None:
    link = await child("input(); raise SystemExit(7)")
    with pytest.raises(LinkLost, match="ended with exit code 7") as lost:
        async with asyncio.timeout(10):
            await link.receive()
    assert lost.value.error is None
    await link.aclose()


async def test_child_that_closes_its_stdout_is_told() -> None:
    link = await child("import os, signal\nos.close(1)\nsignal.pause()", grace_s=0.05)
    with pytest.raises(LinkLost, match="closed its stdout"):
        async with asyncio.timeout(10):
            await link.receive()
    await link.aclose()
    assert link._process.returncode == -signal.SIGTERM


async def test_half_a_line_at_the_end_is_no_frame() -> None:
    link = await child("input(); print('{\"v\":1', end='', flush=True)")
    with pytest.raises(LinkLost, match="ended with exit code 0"):
        async with asyncio.timeout(10):
            await link.receive()
    await link.aclose()


async def test_sending_to_a_dead_child_is_a_lost_link() -> None:
    link = await child("input()")
    async with asyncio.timeout(10):
        await link._process.wait()
        with pytest.raises(LinkLost, match="ended with exit code 0"):
            await send_on(link)
    await link.aclose()


async def send_on(link: StdioLink) -> None:
    """Sends until that fails: the first writes after an end may still succeed."""
    while True:
        await link.send(b"{}")


async def test_child_that_cannot_be_told_hello_is_not_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[StdioLink] = []

    async def fail(self: StdioLink, frame: bytes) -> None:
        left.append(self)
        raise LinkLost("no")

    monkeypatch.setattr(StdioLink, "send", fail)
    with pytest.raises(LinkLost, match="no"):
        await child(ECHO)
    assert not is_running(left[0])


async def test_line_beyond_all_bounds_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.client.links.stdio_link.MAX_FRAME_BYTES", 1000)
    link = await child("print('x' * 10_000, flush=True); input(); input()")
    with pytest.raises(LinkLost, match="a line of more than 1000 bytes") as lost:
        async with asyncio.timeout(10):
            await link.receive()
    assert isinstance(lost.value.error, ServerRefused)
    await link.aclose()


async def test_program_that_there_is_not_ends_it() -> None:
    with pytest.raises(LinkLost, match="no-such-program --x cannot be started") as lost:
        await open_stdio(parse_address("stdio:", ["no-such-program", "--x"]), HELLO)
    assert isinstance(lost.value.error, ServerRefused)


async def test_child_ends_by_itself_when_its_stdin_ends() -> None:
    link = await child(ECHO)
    await link.receive()
    await link.aclose()
    assert link._process.returncode == 0


async def test_child_that_ignores_the_end_of_its_input_is_terminated() -> None:
    link = await child("import signal\nprint(flush=True)\nwhile True: signal.pause()", grace_s=0.1)
    await link._stdout.readline()
    await link.aclose()
    assert link._process.returncode == -signal.SIGTERM


async def test_child_that_ignores_sigterm_is_killed() -> None:
    link = await child(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\n"
        "while True: signal.pause()",
        grace_s=0.1,
    )
    await link._stdout.readline()
    await link.aclose()
    assert link._process.returncode == -signal.SIGKILL
    assert not is_running(link)


async def test_child_that_still_writes_can_come_to_its_end() -> None:
    link = await child(
        "import sys\nsys.stdin.readline()\nsys.stdin.read()\nprint('x' * 3_000_000, flush=True)"
    )
    await link.aclose()
    assert link._process.returncode == 0


GRANDPARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
input(); input()
"""


async def test_grandchild_that_holds_the_pipe_does_not_hold_us() -> None:
    link = await child(GRANDPARENT, grace_s=0.2)
    grandchild = int(await link.receive())
    try:
        async with asyncio.timeout(30):
            await link.aclose()
    finally:
        os.kill(grandchild, signal.SIGKILL)
    assert link._process.returncode is not None


async def test_child_is_in_a_session_of_its_own() -> None:
    """So that Ctrl-C in the application's terminal does not reach it."""
    link = await child(
        "import os; print(os.getsid(0) == os.getpid(), flush=True); input(); input()"
    )
    assert await link.receive() == b"True\n"
    await link.aclose()
