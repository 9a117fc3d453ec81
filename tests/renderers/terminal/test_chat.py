"""The chat at a real pseudo terminal, looked at as a person would."""

from __future__ import annotations

import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest

from tests.renderers.terminal.drawing import PROMPT
from tests.renderers.terminal.pseudo_terminal import SCRIPTED, PseudoTerminal

CLEARS = (b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h", b"\x1b[6n")


class Chat(PseudoTerminal):
    """A scripted chat, begun."""

    def begin(self, words: str) -> Chat:
        self.until(lambda: self.shown.endswith(PROMPT))
        self.type(f"{words}\r")
        return self


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def chat(script: str, state: Path, **env: str) -> Chat:
    return Chat([*SCRIPTED, script], state, env)


@pytest.fixture
def streaming(state: Path) -> Iterator[Chat]:
    with chat("streaming", state) as found:
        yield found


def test_text_streams_above_the_prompt_and_every_line_is_printed_once(streaming: Chat) -> None:
    """T4, T5: no line twice, none lost, the screen never cleared, no alternate screen."""
    streaming.begin("go").until_at_rest("Line 30 of thirty.")
    numbers = [
        int(found.group(1))
        for line in streaming.paper
        if (found := re.fullmatch(r"  Line (\d+) of thirty\.", line))
    ]
    assert numbers == list(range(1, 31))
    assert [line for line in streaming.paper if line == f"{PROMPT} go"] == [f"{PROMPT} go"]
    assert not any(clear in streaming.output for clear in CLEARS)


def test_what_is_printed_comes_in_whole_frames(streaming: Chat) -> None:
    """At the end of each the prompt is there, and nothing is erased outside of them."""
    streaming.begin("go").until_at_rest("Line 30 of thirty.")
    frames = streaming.output.split(b"\x1b[?2026h")[1:]
    assert len(frames) > 1
    seen: Any = pyte.Screen(80, 24)
    stream: Any = pyte.ByteStream(seen)
    stream.feed(streaming.output.split(b"\x1b[?2026h")[0])
    for frame in frames:
        whole, end, behind = frame.partition(b"\x1b[?2026l")
        stream.feed(whole)
        assert end
        assert PROMPT in "".join(seen.display)
        assert b"\x1b[J" not in behind.split(PROMPT.encode())[0]
        stream.feed(behind)


def test_a_resize_in_mid_stream_doubles_nothing(streaming: Chat) -> None:
    """T3."""
    streaming.begin("go").until(lambda: "  Line 5 of thirty." in streaming.paper)
    streaming.resize(30, 100)
    streaming.until_at_rest("Line 30 of thirty.")
    for number in range(6, 31):
        line = f"  Line {number} of thirty."
        assert streaming.paper.count(line) == 1, line


def test_a_table_is_live_until_its_turn_ends(state: Path) -> None:
    with chat("table", state) as terminal:
        terminal.begin("show").until_shown("July")
        assert "Ctrl-C stops" in terminal.shown
        terminal.process.send_signal(signal.SIGUSR1)
        terminal.until_at_rest("August")
        assert terminal.shown.split("\n") == [
            "· fake  session s1  /help",
            "",
            f"{PROMPT} show",
            "",
            "  Rain",
            "  month       mm",
            "  ───────  ─────",
            "  January  173.3",
            "  July      26.3",
            "  August    21",
            "",
            PROMPT,
        ]


def test_a_confirmation_is_asked_and_answered(state: Path) -> None:
    with chat("confirm", state) as terminal:
        terminal.begin("export").until_shown(f"? Write out.csv? [y/n] {PROMPT}")
        assert "  ┃ [y] Write   [n] No" in terminal.shown
        assert "waiting for your answer" in terminal.shown
        terminal.type("\r")
        terminal.until_shown("✗ Type y or n.")
        terminal.type("y\r")
        terminal.until_at_rest("Got ('action', {'action': 'confirm'}, 'ok')")
        assert "  ✓ Write out.csv? → Write" in terminal.paper
        assert "  ┃ Write out.csv?" not in terminal.paper


def test_what_was_being_typed_is_not_taken_for_an_answer_and_comes_back(state: Path) -> None:
    """T53: a line begun before the question appeared was not meant for it."""
    with chat("late_confirm", state) as terminal:
        terminal.begin("export").until_shown("wait for it")
        terminal.type("yes, and th")
        terminal.until_shown(f"{PROMPT} yes, and th")
        terminal.process.send_signal(signal.SIGUSR1)
        terminal.until_shown(f"? Sure? [y/n] {PROMPT}")
        assert not terminal.shown.endswith("th")
        terminal.type("n\r")
        terminal.until_shown(f"{PROMPT} yes, and th")
        assert "  ✗ Sure? → No" in terminal.paper


def test_ctrl_c_stops_the_turn_and_twice_leaves(state: Path) -> None:
    with chat("endless", state) as terminal:
        terminal.begin("count").until_shown("7 8 9 10")
        terminal.type("\x03")
        terminal.until_shown("■ Stopped")
        # Two, since a loaded machine may need longer to stop than the two seconds that count.
        terminal.type("\x03\x03")
        terminal.until_ended()
        assert terminal.paper[-1] == "left: interrupted"


def test_the_word_of_how_to_leave_goes_when_it_is_no_longer_true(streaming: Chat) -> None:
    """A second Ctrl-C leaves within two seconds only."""
    streaming.until(lambda: streaming.shown.endswith(PROMPT))
    streaming.type("\x03")
    streaming.until_shown("Press Ctrl-C again or Ctrl-D to leave.")
    streaming.until(lambda: "Press Ctrl-C again or Ctrl-D to leave." not in streaming.shown)
    assert streaming.process.poll() is None


def test_ctrl_d_leaves_and_the_terminal_is_as_it_was(streaming: Chat) -> None:
    """T28: echo, line editing, cursor, bracketed paste."""
    streaming.begin("go").until_at_rest("Line 30 of thirty.")
    streaming.type("\x04")
    assert streaming.until_ended() == 0
    assert streaming.paper[-1] == "left: quit"
    assert streaming.modes_now() == streaming.modes
    assert streaming.output.rfind(b"\x1b[?2004l") > streaming.output.rfind(b"\x1b[?2004h")
    assert streaming.output.rfind(b"\x1b[?25h") > streaming.output.rfind(b"\x1b[?25l")


def test_the_terminal_is_as_it_was_also_when_the_program_is_told_to_stop(streaming: Chat) -> None:
    """T28."""
    streaming.begin("go").until_at_rest("Line 30 of thirty.")
    streaming.process.terminate()
    assert streaming.until_ended() == 0
    assert streaming.modes_now() == streaming.modes
    assert streaming.output.rfind(b"\x1b[?2004l") > streaming.output.rfind(b"\x1b[?2004h")


def test_a_fault_of_ours_ends_the_chat_with_the_terminal_as_it_was(state: Path) -> None:
    """T28: no screen that stands still."""
    with chat("broken", state) as terminal:
        terminal.begin("go")
        assert terminal.until_ended() == 1
        assert "ZeroDivisionError: a fault of ours" in terminal.shown
        assert terminal.modes_now() == terminal.modes


def test_what_was_said_is_remembered_for_its_owner_and_answers_are_not(state: Path) -> None:
    with chat("confirm", state) as terminal:
        terminal.begin("export").until_shown("[y/n]")
        terminal.type("y\r")
        terminal.until_shown("Got")
        terminal.type("\x04")
        terminal.until_ended()
    history = state / "arp" / "history"
    lines = [line for line in history.read_text().splitlines() if line.startswith("+")]
    assert lines == ["+export"]
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    with chat("confirm", state) as terminal:
        terminal.until(lambda: terminal.shown.endswith(PROMPT))
        terminal.type("\x1b[A")
        terminal.until_shown(f"{PROMPT} export")


@pytest.mark.timeout(90)
def test_ten_thousand_deltas_are_few_bytes(state: Path) -> None:
    """T7: 42 kB of markdown cost less than twelve times as many bytes."""
    with chat("flood", state) as terminal:
        terminal.begin("flood").until_at_rest("The end.", wait_s=60)
        assert len(terminal.output) < 12 * 42_000
        assert not any(clear in terminal.output for clear in CLEARS)
        headings = [line for line in terminal.paper if line == "  Weather in Seattle"]
        assert len(headings) == 100


def test_no_color_is_obeyed(state: Path) -> None:
    """T9."""
    with chat("table", state, NO_COLOR="1") as terminal:
        terminal.begin("show").until_shown("July")
        assert re.search(rb"\x1b\[[0-9;]*[349][0-7]m", terminal.output) is None


def test_a_dumb_terminal_gets_lines_without_escapes(state: Path) -> None:
    with chat("table", state, TERM="dumb") as terminal:
        terminal.type("show\r")
        terminal.until_shown("July")
        terminal.process.send_signal(signal.SIGUSR1)
        terminal.until_shown("August")
        terminal.type("\x04")
        assert terminal.until_ended() == 0
        assert b"\x1b" not in terminal.output
        assert terminal.paper[-1] == "left: quit"
