"""Frames and descriptors on a socket that does not block."""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import uvloop

from arp.protocol.framing.length_prefix import Farewell, farewell, prefixed
from arp.unix.framed_socket import MAX_WAITING_FRAMES, FramedSocket
from tests.support.waiting import becomes

MOST = 100_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


class AnyNumber:
    """Room for any number of descriptors; counts those that are held."""

    held = 0

    def acquire(self, count: int) -> bool:
        self.held += count
        return True

    def release(self, count: int) -> None:
        self.held -= count


@pytest.fixture
async def framed(pair: tuple[socket.socket, socket.socket]) -> AsyncIterator[FramedSocket]:
    made = FramedSocket(pair[0], MOST, room=AnyNumber())
    yield made
    made.abort()


@pytest.fixture
def peer(pair: tuple[socket.socket, socket.socket]) -> socket.socket:
    return pair[1]


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def a_file() -> Iterator[int]:
    """Opens a file, and closes it behind the block."""
    with open(os.devnull) as file:
        yield file.fileno()


def pass_files(peer: socket.socket, data: bytes, *files: int) -> None:
    rights = array.array("i", files)
    peer.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


async def received(framed: FramedSocket) -> bytes:
    async with asyncio.timeout(5):
        frame = await framed.receive()
    assert frame is not None
    return frame.data


async def test_frames_come_out_as_they_went_in(framed: FramedSocket, peer: socket.socket) -> None:
    peer.sendall(prefixed([b"one", b"two" * 1000]) + prefixed([b"three"])[:5])
    assert await received(framed) == b"one"
    assert await received(framed) == b"two" * 1000
    peer.sendall(prefixed([b"three"])[5:])
    assert await received(framed) == b"three"
    framed.send([b"a", b"b"])
    framed.send_first(b"c")
    assert peer.recv(100) == prefixed([b"a", b"b", b"c"])


async def test_the_end_says_what_happened(framed: FramedSocket, peer: socket.socket) -> None:
    peer.sendall(prefixed([b"last"]) + farewell(1012, "restarting"))
    peer.close()
    assert await received(framed) == b"last"
    assert await framed.receive() is None
    assert framed.ended == Farewell(1012, "restarting")
    assert framed.is_closed_by_peer


async def test_an_end_within_a_frame_is_no_frame(framed: FramedSocket, peer: socket.socket) -> None:
    peer.sendall(prefixed([b"never whole"])[:9])
    peer.close()
    assert await framed.receive() is None
    assert framed.ended == Farewell(1006, "the connection ended within a frame")
    assert not framed.is_closed_by_peer


async def test_a_frame_that_is_too_long_ends_the_connection(
    framed: FramedSocket, peer: socket.socket
) -> None:
    peer.sendall(prefixed([b"good"]) + b"\xff\xff\xff\xff")
    assert await received(framed) == b"good"
    assert await framed.receive() is None
    assert framed.ended is not None
    assert framed.ended.code == 1009
    assert "4294967295 bytes; at most 100000" in framed.ended.reason


async def test_a_flood_that_nobody_takes_is_not_read(
    framed: FramedSocket, peer: socket.socket
) -> None:
    """What the kernel holds makes the sender wait."""
    peer.setblocking(False)
    sent = 0
    data = prefixed([b"x" * 10])
    for _ in range(200):
        with suppress(BlockingIOError):
            while True:
                sent += peer.send(data * 50) // len(data)
        await asyncio.sleep(0)
    assert len(framed._received) < MAX_WAITING_FRAMES + 65_536 // len(data)
    for _ in range(sent - 50):
        await received(framed)


async def test_what_a_reader_does_not_take_waits_as_it_is(
    framed: FramedSocket, peer: socket.socket
) -> None:
    """Then it comes whole and in order, a frame that was put first before those that wait."""
    frames = [bytes([n]) * 50_000 for n in range(20)]
    told: list[int] = []
    framed.on_sent = lambda: told.append(framed.buffered)
    for frame in frames:
        framed.send([frame])
    assert framed.buffered > 0
    assert all(any(one is frame for frame in frames) for one in framed.waiting())
    framed.send_first(b"old")
    framed.send_first(b"first")
    assert framed.waiting()[0] == b"first"
    reading = asyncio.ensure_future(asyncio.to_thread(read_frames, peer, 21))
    async with asyncio.timeout(10):
        await framed.drained()
        got = await reading
    assert framed.buffered == 0
    assert told[-1] == 0
    got.remove(b"first")
    assert got == frames


def read_frames(peer: socket.socket, count: int) -> list[bytes]:
    file = peer.makefile("rb")
    return [file.read(int.from_bytes(file.read(4), "big")) for _ in range(count)]


async def test_close_says_why_behind_what_waits(framed: FramedSocket, peer: socket.socket) -> None:
    framed.send([b"x" * 90_000])
    framed.send([b"y" * 90_000])
    framed.send([b"z" * 90_000])
    closing = asyncio.ensure_future(framed.close(1012, "restarting", flush_s=5))
    got = await asyncio.to_thread(peer.makefile("rb").read)
    await closing
    assert got.endswith(b"z" + farewell(1012, "restarting"))
    assert len(got) == 3 * 90_004 + len(farewell(1012, "restarting"))


async def test_close_does_not_wait_for_who_reads_nothing(
    framed: FramedSocket, peer: socket.socket
) -> None:
    for _ in range(20):
        framed.send([b"x" * 90_000])
    async with asyncio.timeout(5):
        await framed.close(1012, "restarting", flush_s=0.01)
    assert framed.buffered == 0


async def test_who_takes_nothing_is_cut_and_who_reads_slowly_is_not(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    framed = FramedSocket(ours, MOST, stall_s=0.2)
    framed.send([b"x" * 60_000] * 20)
    for _ in range(8):
        await asyncio.sleep(0.06)
        theirs.recv(60_000)
    assert framed.ended is None
    async with asyncio.timeout(5):
        assert await framed.receive() is None
    assert framed.ended is not None
    assert "read nothing" in framed.ended.reason


async def test_a_peer_that_is_gone_ends_sending_and_its_last_words_are_read(
    framed: FramedSocket, peer: socket.socket
) -> None:
    peer.sendall(prefixed([b"last"]) + farewell(1008, "no"))
    peer.close()
    for _ in range(3):
        framed.send([b"x" * 90_000])
    assert framed.buffered == 0
    assert await received(framed) == b"last"
    assert await framed.receive() is None
    assert framed.ended == Farewell(1008, "no")


# -- descriptors -----------------------------------------------------------------------------------


async def test_descriptors_come_with_the_frame_that_they_were_sent_with(
    framed: FramedSocket, peer: socket.socket, tmp_path: Path
) -> None:
    """Also where the frame before arrives in the same piece, and the frame is longer than one."""
    (tmp_path / "f").write_bytes(b"content")
    with (tmp_path / "f").open("rb") as file:
        peer.sendall(prefixed([b"before"]))
        pass_files(peer, prefixed([b"with" * 10]), file.fileno())
        peer.sendall(prefixed([b"after"]))
        long = prefixed([b"long" * 20_000])
        pass_files(peer, long[:1], file.fileno(), file.fileno())
        sending = asyncio.ensure_future(asyncio.to_thread(peer.sendall, long[1:]))
        got = []
        async with asyncio.timeout(5):
            for _ in range(4):
                frame = await framed.receive()
                assert frame is not None
                got.append((frame.data[:6], len(frame.descriptors)))
                for descriptor in frame.descriptors:
                    assert os.pread(descriptor, 100, 0) == b"content"
                    os.close(descriptor)
        await sending
    assert got == [(b"before", 0), (b"withwi", 1), (b"after", 0), (b"longlo", 2)]


async def test_sent_descriptors_stay_the_senders(framed: FramedSocket, peer: socket.socket) -> None:
    reading, writing = os.pipe()
    framed.send_with(b"frame", [writing])
    data, messages, _, _ = peer.recvmsg(100, socket.CMSG_SPACE(4))
    (theirs,) = array.array("i", messages[0][2])
    os.write(theirs, b"1")
    os.write(writing, b"2")
    assert data == prefixed([b"frame"])
    assert os.read(reading, 2) == b"12"
    for one in (reading, writing, theirs):
        os.close(one)


@pytest.mark.parametrize("count", [21, 200])
async def test_more_descriptors_than_are_taken_are_closed_and_end_the_connection(
    framed: FramedSocket, peer: socket.socket, count: int
) -> None:
    before = open_descriptors()
    with a_file() as file:
        pass_files(peer, prefixed([b"frame"]), *[file] * count)
    async with asyncio.timeout(5):
        assert await framed.receive() is None
    assert framed.ended is not None
    assert framed.ended.code == 1002
    assert open_descriptors() == before


async def test_descriptors_without_a_frame_are_closed_and_end_the_connection(
    framed: FramedSocket, peer: socket.socket
) -> None:
    before = open_descriptors()
    peer.sendall(prefixed([b"frame"])[:6])
    await becomes(lambda: framed._splitter.begun == 1)
    with a_file() as file:
        pass_files(peer, b"m", file)
    async with asyncio.timeout(5):
        assert await framed.receive() is None
    assert open_descriptors() == before


async def test_descriptors_that_nobody_took_are_closed_with_the_connection(
    framed: FramedSocket, peer: socket.socket
) -> None:
    """While a frame with descriptors waits, nothing more is read: so few can wait."""
    before = open_descriptors()
    with a_file() as file:
        for _ in range(10):
            pass_files(peer, prefixed([b"frame"]), *[file] * 20)
        await becomes(lambda: bool(framed._received))
    assert open_descriptors() - before <= 20
    framed.abort()
    framed.abort()
    assert open_descriptors() == before - 1  # with the socket itself


async def test_descriptors_for_which_there_is_no_room_are_closed_and_end_the_connection(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """Those of an unfinished frame count until it is received, or the connection is gone."""

    class Two(AnyNumber):
        def acquire(self, count: int) -> bool:
            return self.held + count <= 2 and super().acquire(count)

    room, peer = Two(), pair[1]
    framed = FramedSocket(pair[0], MOST, room=room)
    with a_file() as one:
        before = open_descriptors()
        pass_files(peer, prefixed([b"abc"])[:5], one, one)
        await becomes(lambda: room.held == 2)
        assert framed.is_unfinished
        peer.send(b"bc")
        got = await framed.receive()
        assert got is not None
        assert (len(got.descriptors), room.held, framed.is_unfinished) == (2, 0, False)
        for descriptor in got.descriptors:
            os.close(descriptor)
        pass_files(peer, b"\0\0", one, one)
        await becomes(lambda: room.held == 2)
        framed.abort()
        assert (room.held, open_descriptors()) == (0, before - 1)
    other, third = socket.socketpair()
    other.setblocking(False)
    with other, third, a_file() as one:
        full, before = FramedSocket(other, MOST, room=room), open_descriptors()
        pass_files(third, b"\0\0", one, one, one)
        assert await full.receive() is None
        assert full.ended is not None
        assert (full.ended.code, room.held, open_descriptors()) == (1013, 0, before)
        full.abort()


async def test_who_takes_no_descriptors_never_gets_one(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    framed = FramedSocket(ours, MOST)
    before = open_descriptors()
    with a_file() as file:
        pass_files(theirs, prefixed([b"frame"]), file)
    assert await received(framed) == b"frame"
    assert open_descriptors() == before
    framed.abort()


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("writes", [False, True])
def test_the_end_is_noticed_of_a_peer_that_has_not_read_everything(loop: str, writes: bool) -> None:
    """The system reports that as an error of the socket, of which uvloop tells only once."""

    async def talk() -> Farewell | None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        framed = FramedSocket(ours, MOST)
        framed.send([b"unread"])
        theirs.send(prefixed([b"last words"]) + farewell(1013, "busy"))
        if not writes:
            theirs.close()
        assert await received(framed) == b"last words"
        if writes:
            theirs.close()
            framed.send([b"nobody reads this"])
        async with asyncio.timeout(5):
            assert await framed.receive() is None
        framed.abort()
        return framed.ended

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(talk()) == Farewell(1013, "busy")


@pytest.mark.parametrize("loop", LOOPS)
def test_the_end_is_noticed_without_a_farewell_too(loop: str) -> None:
    async def talk() -> Farewell | None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        framed = FramedSocket(ours, MOST)
        framed.send([b"unread"])
        theirs.send(prefixed([b"last words"]))
        assert await received(framed) == b"last words"
        theirs.close()
        async with asyncio.timeout(5):
            assert await framed.receive() is None
        framed.abort()
        return framed.ended

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(talk()) == Farewell(1006, "Connection reset by peer")
