"""The shared cases of a renderer's screen, run here by our own renderer.

Other languages run the same file; `schemas/README.md` says how a case is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import ErrorMessage, RendererHello

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "schemas" / "cases" / "screen.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_screen_is_what_the_case_says(case: dict[str, Any]) -> None:
    renderer = RendererConnection(RendererHello())
    faults = 0
    for step in case["steps"]:
        ((kind, given),) = step.items()
        if kind in ("receive", "raw"):
            frame = given if kind == "raw" else json.dumps(given)
            heard = renderer.receive(frame)
            faults += sum(isinstance(m, ErrorMessage) and m.session_id is None for m in heard)
        elif kind == "hello":
            hello = json.loads(renderer.hello())
            assert hello.get("resume") == given["resume"]
        else:
            check(renderer, given, faults)


def check(renderer: RendererConnection, expected: dict[str, Any], faults: int) -> None:
    shown = renderer.screen.canonical()
    for name, turn in expected["screen"]["turns"].items():
        if "story" not in turn:
            shown["turns"].get(name, {}).pop("story", None)
    assert shown == expected["screen"]
    assert faults == expected.get("faults", 0)
    if "place" in expected:
        here = {"epoch": renderer.epoch, "seq": renderer.seq}
        assert (None if renderer.epoch is None else here) == expected["place"]


def test_every_case_says_what_it_proves_and_what_would_break_it() -> None:
    assert len(CASES) >= 30
    assert all(case["spec"] and case["kill"] for case in CASES)
    assert len({case["name"] for case in CASES}) == len(CASES)
