"""`arp render`: messages in, text out."""

from __future__ import annotations

import io
import json

import pytest
from msgspec.structs import replace

from arp.protocol.components import Component
from arp_terminal import pipe
from arp_terminal.programs.terminal import options_for
from tests.renderers.terminal.drawing import PROMPT, picture


def message(kind: str, **fields: object) -> str:
    return json.dumps({"v": 1, "type": kind, "session_id": "s", "turn_id": "t1", **fields})


def render(*lines: str | bytes, level: str = "standard") -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    code = pipe.draw(lines, out, errors, options_for(out, level=level, width=40))
    return code, out.getvalue(), errors.getvalue()


def delta(text: str) -> str:
    return message("delta", payload={"delta": text})


TABLE = {"id": "t", "type": "table", "props": {"headers": ["a", "n"], "rows": [["x", 1]]}}


def test_parts_are_printed_in_order() -> None:
    code, out, errors = render(
        message("input", input_type="text", data={"text": "show"}),
        delta("Let me **look**. "),
        message("tool_start", payload={"tool": "query", "args": "{}", "call_id": "c"}),
        message("tool_end", payload={"tool": "query", "ok": True, "call_id": "c"}),
        delta("Here:"),
        message("render", components=[TABLE]),
        message("commit", final=True),
    )
    assert (code, errors) == (0, "")
    assert (
        out
        == picture(
            f"""
        {PROMPT} show

          Let me look.

          ✓ query

          Here:

          a  n
          ─  ─
          x  1
        """
        )
        + "\n"
    )


def test_a_render_without_its_commit_shows_nothing() -> None:
    code, out, _ = render(message("render", components=[TABLE]))
    assert (code, out) == (0, "")


def test_text_that_never_ends_is_printed_at_the_end() -> None:
    assert render(delta("half")) == (0, "  half\n", "")


def test_bad_lines_are_told_by_number_and_passed_over() -> None:
    code, out, errors = render(
        delta("one"), "oops\n", b"\xff\n", "\n", '{"v":1,"type":"delta","payload":5}', delta(" two")
    )
    assert code == 1
    assert out == "  one two\n"
    numbers = [line.split(":")[1] for line in errors.splitlines()]
    assert numbers == [" line 2", " line 3", " line 5"]


def test_what_is_told_of_a_bad_line_is_harmless() -> None:
    _, _, errors = render(
        '{"v":1,"type":"delta","payload":{"delta":"\\u001b[2J"},"seq":"\\u001b[2J"}'
    )
    assert "\x1b" not in errors


def test_a_message_of_a_newer_protocol_is_passed_over_in_silence() -> None:
    assert render(message("hologram", data=1), delta("x")) == (0, "  x\n", "")


def test_a_line_may_hold_a_batch() -> None:
    assert render(f"[{delta('a')}, {delta('b')}]") == (0, "  ab\n", "")


def test_a_level_shows_fallbacks() -> None:
    fallback = {"id": "", "type": "text", "props": {"content": "a: x, n: 1"}}
    lines = message("render", components=[{**TABLE, "fallback": fallback}]), message("commit")
    assert render(*lines, level="minimal")[1] == "  a: x, n: 1\n"


def test_a_level_is_obeyed_as_an_agent_side_would_do_it() -> None:
    """Whoever draws says what takes a component's place; the rest is drawn as ever."""
    words = Component("t", "text", {"content": "a: x, n: 1"})
    options = replace(
        options_for(io.StringIO(), level="minimal", width=40), simplify=lambda _: [words]
    )
    out = io.StringIO()
    lines = delta("So:"), message("render", components=[TABLE]), message("commit")
    assert pipe.draw(lines, out, io.StringIO(), options) == 0
    assert out.getvalue() == "  So:\n\n  a: x, n: 1\n"


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "MAX_LINE_BYTES", 50)
    code, _, errors = render(delta("x" * 100))
    assert code == 1
    assert "at most 50 are read" in errors


def test_run_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert pipe.run([delta("hello")], level="standard") == 0
    assert capsys.readouterr().out == "  hello\n"
