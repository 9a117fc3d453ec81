"""The manifest of a pack is read as it was written, and anything else is refused."""

from __future__ import annotations

import msgspec
import pytest

from arp.audit.evidence.manifest import (
    Chain,
    Gap,
    Manifest,
    NoManifest,
    Output,
    Part,
    Scope,
    decode_manifest,
    encode_manifest,
)

HASH = "a" * 64
MANIFEST = Manifest(
    kind="evidence",
    evidence_id="e-1",
    created_at="2026-02-03T04:05:06.000Z",
    scope=Scope(turn_id="t1"),
    runtime_correlation={"sessionId": "s"},
    correlation_states={"sessionId": "exported"},
    chain=Chain("s", "e1", 1, 2, HASH, HASH),
    sections={"tool_calls.json": "exported"},
    outputs=[Output("o1", "exported", 3, "outputs/o1")],
    gaps=[Gap("facts.jsonl", "unsupported", "not known", 1, (2,))],
    parts=[Part("facts.jsonl", 7, HASH)],
)


def test_it_is_read_as_it_was_written() -> None:
    assert decode_manifest(encode_manifest(MANIFEST)) == MANIFEST
    assert MANIFEST.gaps[0].sentence == "facts.jsonl: not known"


def test_a_scope_is_all_of_a_session_or_what_an_id_stands_for() -> None:
    assert Scope().is_all
    assert not Scope(thread_id="main").is_all
    assert not Scope(turn_id="t1").is_all
    assert not Scope(task_id="k1").is_all


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "manifest.json: "),
        (b"\xff", "manifest.json: "),
        (b"{}", "manifest.json: Object missing required field"),
        (
            encode_manifest(msgspec.structs.replace(MANIFEST, format="arp-pack-9")),
            "manifest.json: a pack of format 'arp-pack-9', not arp-pack-1",
        ),
    ],
)
def test_anything_else_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(NoManifest, match=reason):
        decode_manifest(data)
