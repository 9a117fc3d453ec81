"""Files that come as descriptors over a Unix socket."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import pytest

from arp.access.settings import Bounds
from arp.protocol.limits import Limits
from arp.server.ports import descriptor_uploads
from arp.server.uploads import Intake


async def test_no_copy_is_left_open_when_its_sender_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The task that waits for the copy is cancelled while a thread makes it."""
    made: list[Any] = []
    begun, released = threading.Event(), threading.Event()

    def spooled(**options: Any) -> Any:
        made.append(SpooledTemporaryFile(**options))  # noqa: SIM115 - what the test is about
        return made[-1]

    def read(descriptor: int, at: int, most: int) -> bytes:
        begun.set()
        released.wait(30)
        return b""

    monkeypatch.setattr(descriptor_uploads, "SpooledTemporaryFile", spooled)
    monkeypatch.setattr(descriptor_uploads, "_read", read)
    path = tmp_path / "a.txt"
    path.write_bytes(b"text")
    with path.open("rb") as file:

        async def receive() -> None:
            intake = Intake(Bounds(), Limits())
            async with descriptor_uploads.copy_files(intake, (), [file.fileno()]):
                pass

        task = asyncio.create_task(receive())
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        released.set()
    assert [one.closed for one in made] == [True]
