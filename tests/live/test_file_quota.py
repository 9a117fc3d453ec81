"""What the files of one user's sessions may hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.live.settings import HubSettings
from arp.protocol.errors import ErrorCode
from arp.protocol.messages import ErrorMessage, FileRef, Input, InputAck
from arp.store.blobs import Blobs, BlobStore, MemoryBlobs
from arp.store.memory import MemoryStore
from arp.turn.turn import Turn
from tests.hub.rig import AT

ADA, BOB = Principal("ada"), Principal("bob")

SETTINGS = HubSettings(max_stored_bytes_per_user=1000, stop_grace_s=0.05)


class Sent:
    """A file that has come."""

    def __init__(self, content: bytes) -> None:
        digest = sha256(content).hexdigest()
        self.ref = FileRef(digest, "f", len(content), "text/plain", digest)
        self._content = content

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._content


@pytest.fixture(params=["memory", "disk"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return MemoryBlobs() if request.param == "memory" else BlobStore(tmp_path / "blobs")


async def keep(turn: Turn) -> None:
    """Keeps a file of its own."""
    if turn.text == "keep":
        await turn.save_file("own.txt", b"o" * 600)


async def started(store: MemoryStore, blobs: Blobs) -> Hub:
    await store.open()
    hub = Hub(store, blobs, HubApp({"agent": keep}), SETTINGS, now=lambda: AT)
    await hub.start()
    return hub


async def code_of(hub: Hub, session_id: str, who: Principal, *contents: bytes) -> int | None:
    """Uploads; gives the code of the refusal, if it is one."""
    refs = [Sent(content) for content in contents]
    data = {"files": [{**_plain(one.ref)} for one in refs]}
    said = Input(input_type="file", data=data, session_id=session_id)
    answer = await hub.submit(said, who, "agent", refs)
    assert isinstance(answer, InputAck | ErrorMessage)
    return answer.payload.code if isinstance(answer, ErrorMessage) else None


def _plain(ref: FileRef) -> dict[str, object]:
    return {
        "id": ref.id,
        "name": ref.name,
        "size": ref.size,
        "mime": ref.mime,
        "sha256": ref.sha256,
    }


async def test_upload_beyond_the_quota_is_refused_and_a_deleted_session_gives_room(
    blobs: Blobs,
) -> None:
    """It counts over all sessions of a user, and for nobody else."""
    hub = await started(MemoryStore(), blobs)
    full = int(ErrorCode.RESOURCE_LIMIT)
    assert await code_of(hub, "a", ADA, b"1" * 600) is None
    assert await code_of(hub, "b", ADA, b"2" * 401) == full
    assert await code_of(hub, "b", ADA, b"2" * 400) is None
    assert await code_of(hub, "b", ADA, b"3") == full
    assert await code_of(hub, "c", BOB, b"3" * 1000) is None
    await hub.delete("b", ADA)
    assert await code_of(hub, "a", ADA, b"4" * 300, b"5" * 100) is None
    assert await code_of(hub, "a", ADA, b"6") == full
    await hub.aclose()


async def test_same_file_in_the_same_session_counts_once(blobs: Blobs) -> None:
    hub = await started(MemoryStore(), blobs)
    for _ in range(5):
        assert await code_of(hub, "a", ADA, b"1" * 600, b"1" * 600) is None
    assert await code_of(hub, "b", ADA, b"1" * 600) == 4
    await hub.aclose()


async def test_what_is_held_counts_after_a_restart_and_whoever_put_it_there(blobs: Blobs) -> None:
    """An agent's files are kept beyond the quota; then uploads are refused."""
    store = MemoryStore()
    hub = await started(store, blobs)
    assert await code_of(hub, "a", ADA, b"1" * 600) is None
    data = {"text": "keep"}
    await hub.submit(Input(input_type="text", data=data, session_id="b"), ADA, "agent")
    while hub.runner.tasks:
        await hub.sessions["b"].written()
    assert await code_of(hub, "a", ADA, b"2") == 4
    await hub.aclose()
    again = await started(store, blobs)
    assert await code_of(again, "c", ADA, b"2") == 4
    assert await code_of(again, "d", BOB, b"2") is None
    await again.aclose()


async def test_upload_that_fails_gives_its_room_back(blobs: Blobs) -> None:
    """The stream ends with an error; nothing is kept."""

    class Torn(Sent):
        async def chunks(self) -> AsyncIterator[bytes]:
            raise ConnectionResetError
            yield b""

    hub = await started(MemoryStore(), blobs)
    for number in range(5):
        torn = Torn(str(number).encode() * 900)
        said = Input(input_type="file", data={"files": [_plain(torn.ref)]}, session_id="a")
        with pytest.raises(ConnectionResetError):
            await hub.submit(said, ADA, "agent", [torn])
    assert await code_of(hub, "a", ADA, b"1" * 1000) is None
    await hub.aclose()
