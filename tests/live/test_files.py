"""Files that an agent keeps: what names them, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp import Turn
from arp.live.settings import HubSettings
from arp.protocol.errors import ResourceLimit
from arp.protocol.limits import Limits
from arp.protocol.messages import FileRef
from tests.hub.rig import HeldStore, Renderer, running

SHA = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
"""Of `hello`."""


async def test_saved_file_can_be_read_again_by_a_later_turn(tmp_path: Path) -> None:
    """From bytes, or copied from the disk; both under the hash of what is in them."""
    (tmp_path / "hello.csv").write_bytes(b"hello")
    refs: list[FileRef] = []

    async def agent(turn: Turn) -> None:
        if turn.text == "save":
            refs.append(await turn.save_file("a/b/plot.png", b"hello"))
            refs.append(await turn.save_file("table", tmp_path / "hello.csv", "text/csv"))
        else:
            await turn.say((await turn.read_file(refs[0])).decode())

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("save")
        await renderer.ended("t1")
        await renderer.say("read")
        await renderer.ended("t2")
    assert refs == [
        FileRef(SHA, "plot.png", 5, "image/png", SHA),
        FileRef(SHA, "table", 5, "text/csv", SHA),
    ]
    assert renderer.screen.text("t2") == "hello"


async def test_saved_file_belongs_to_the_session_also_after_a_restart() -> None:
    """One truth: the ledger."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.save_file("x.txt", b"hello")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        renderer.leave()
        await hub.directory.sessions["s"].written()
        facts = [fact for fact in await store.facts() if fact.type == "output.spilled"]
        hub.lifetimes.evict(float("inf"))
        live = await hub.find("s", renderer.principal)
        assert list(live.session.input_log.files) == [SHA]
    assert [fact.output_ref for fact in facts] == [SHA]


async def test_file_that_is_too_large_is_refused_and_nothing_is_kept() -> None:
    """`max_upload_bytes` holds for agents too."""

    async def agent(turn: Turn) -> None:
        with pytest.raises(ResourceLimit, match="larger than 4 bytes"):
            await turn.save_file("x", b"hello")
        with pytest.raises(TypeError, match=r"expected bytes or a pathlib\.Path, got str"):
            await turn.save_file("x", "text")  # type: ignore[arg-type]
        with pytest.raises(FileNotFoundError):
            await turn.save_file("x", Path("/nothing/there"))
        await turn.say("refused")

    settings = HubSettings(limits=Limits(max_upload_bytes=4))
    async with running(agent, settings=settings) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
    assert renderer.screen.text("t1") == "refused"
