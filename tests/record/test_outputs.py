"""A large output leaves a preview and a ref; nothing of a small one is cut."""

from __future__ import annotations

from hashlib import sha256

import pytest

from arp.protocol.errors import ResourceLimit
from arp.record.outputs import KeptOutput
from tests.record.rig import Recording

LARGE = "é" * 2_001
REF = sha256(LARGE.encode()).hexdigest()


async def test_a_large_output_is_kept_beside_the_ledger() -> None:
    """ledger.md 6: a large result leaves a preview and an `outputRef`."""
    recording = Recording()
    kept = await recording.record.keep(LARGE, "text/plain")
    assert kept == KeptOutput("é" * 2_000, 4_002, REF)
    assert recording.kept == {REF: LARGE.encode()}
    assert await recording.record.read(REF) == LARGE.encode()
    payload = {"bytes": 4_002, "sha256": REF, "preview": "é" * 2_000, "mime": "text/plain"}
    assert recording.told() == [("output.spilled", payload, {"output_ref": REF})]


@pytest.mark.parametrize("data", ["", "small", "é" * 2_000, b"bytes"])
async def test_a_small_output_is_its_own_preview(data: str | bytes) -> None:
    recording = Recording()
    whole = data if isinstance(data, bytes) else data.encode()
    kept = await recording.record.keep(data)
    assert (kept.preview.encode(), kept.bytes, kept.output_ref) == (whole, len(whole), None)
    assert recording.facts() == []


async def test_bytes_that_are_no_text_are_kept_whole_however_few() -> None:
    """Their preview is not what they are."""
    recording = Recording()
    kept = await recording.record.keep(b"\xff\x00")
    assert (kept.preview, kept.bytes) == ("\ufffd\x00", 2)
    assert recording.kept == {kept.output_ref: b"\xff\x00"}


async def test_half_a_character_is_kept_as_the_sign_for_it() -> None:
    recording = Recording()
    assert await recording.record.keep("a\ud800") == KeptOutput("a\ufffd", 4)


@pytest.mark.parametrize("size", [3_000, 300_000])
async def test_what_is_kept_beside_the_ledger_has_no_secret(size: int) -> None:
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    recording = Recording()
    kept = await recording.record.keep(b"\xff" + b"x" * size + f" {token} ".encode() + b"y")
    assert kept.output_ref is not None
    assert recording.kept[kept.output_ref] == b"\xff" + b"x" * size + b" ghp_[redacted] y"
    spilled, taken_out = recording.told()
    findings = {"findings": [{"rule": "github-token", "count": 1}]}
    assert taken_out == ("output.redacted", findings, {})
    assert spilled[0] == "output.spilled"


async def test_bytes_that_are_no_text_are_kept_as_they_are() -> None:
    data = b"\x89PNG\0 password=abcdefghijklmnop" + bytes(3_000)
    recording = Recording()
    kept = await recording.record.keep(data)
    assert recording.kept == {kept.output_ref: data}


async def test_secret_at_the_end_of_what_a_process_was_given_is_not_cut_in_half() -> None:
    recording = Recording()
    process = recording.record.process("sh")
    process.input("x" * 1_980 + " ghp_abcdefghijklmnopqrstuvwxyz0123456789 ")
    (preview,) = [payload["preview"] for kind, payload, _ in recording.told() if "input" in kind]
    assert preview == "x" * 1_980 + " ghp_[redacted] "


async def test_what_cannot_be_kept_is_cut_and_the_ledger_says_so() -> None:
    recording = Recording()
    recording.refusal = ResourceLimit("the disk is full")
    assert await recording.record.keep(LARGE) == KeptOutput("é" * 2_000, 4_002, None)
    payload = {"bytes": 4_002, "keptBytes": 4_000, "reason": "the disk is full"}
    assert recording.told() == [("output.truncated", payload, {})]
