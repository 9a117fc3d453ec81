"""The parts of a turn as the transcript draws them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from arp.protocol.components import Component
from arp.protocol.connection.screen import ToolRun, TurnScreen
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import InputEcho
from arp_terminal.drawing.blocks import stack
from arp_terminal.drawing.turn import draw_end, is_said
from arp_terminal.log.entries import EntrySource, Item, entry_of
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from tests.renderers.terminal.drawing import PROMPT, picture


def shown(turn: TurnScreen, *output: Component, unicode: bool = True) -> str:
    """Return the lines of a turn, in the order that `items_of` gives."""
    options = Options(width=40, colour=False, unicode=unicode)
    components = {component.id: component for component in output}
    source = EntrySource("t", turn, components, over=turn.final, hold=False)
    entries = [entry_of(item, source, last=False) for item in items_of(turn, output)]
    return "\n".join(Painter(options).lines(stack((one.draw(options) for one in entries), gap=1)))


def items_of(turn: TurnScreen, output: Sequence[Component]) -> list[Item]:
    return [
        *(Item("input", place) for place in range(len(turn.inputs)) if is_said(turn, place)),
        *([Item("thought")] if turn.thinking else []),
        *(Item("tool", place) for place in range(len(turn.tools))),
        *(Item("component", component.id) for component in output),
        *(Item("error", place) for place in range(len(turn.errors))),
        *([Item("end")] if draw_end(turn, Options()) else []),
    ]


def said(input_type: str, data: JsonObject, source: str | None = None) -> InputEcho:
    return InputEcho(
        session_id="s", turn_id="t", input_type=input_type, data=data, source_component=source
    )


TURN = TurnScreen(
    "t",
    status="failed",
    inputs=[said("text", {"text": "go"}), said("action", {"action": "confirm"}, "q")],
    tools=[
        ToolRun("1", "query", '{"sql": "SELECT 1"}', True),
        ToolRun("2", "plot", "{}", False, "no data"),
        ToolRun("3", "slow", ""),
    ],
    thinking="First this.\nThen that.",
    errors=[ErrorPayload("the agent failed", 18)],
)


def test_a_turn_tells_who_said_did_and_showed_what() -> None:
    answer = Component("t/1", "text", {"content": "**Here:**", "format": "markdown"})
    assert shown(TURN, answer) == picture(
        f"""
        {PROMPT} go

          ∴ First this. Then that.

          ✓ query  sql: SELECT 1

          ✗ plot
            No data.

          ◌ slow

          Here:

          ✗ The agent failed.
        """
    )


def test_an_error_with_details_shows_them_as_they_are() -> None:
    """Under `arp serve --debug`; nothing in them moves the cursor."""
    error = ErrorPayload(
        "ValueError: x", 18, debug="Traceback:\n  at app.py:3\x1b[2J\nValueError: x"
    )
    assert shown(TurnScreen("t", status="failed", errors=[error])).splitlines() == [
        "  ✗ ValueError: x.",
        "    Traceback:",
        "      at app.py:3",
        "    ValueError: x",
    ]


def test_details_of_an_error_that_is_told_stand_below_it_and_do_not_repeat_it() -> None:
    """Under `arp serve --debug` the same error comes once more, with its traceback."""
    error = ErrorPayload("The agent failed.", 18)
    details = ErrorPayload(
        "The agent failed.", 18, debug="Traceback:\n  at app.py:3\nValueError: x"
    )
    turn = TurnScreen("t", status="failed", errors=[error, details])
    assert [line for line in shown(turn).splitlines() if line.strip()] == [
        "  ✗ The agent failed.",
        "    Details:",
        "    Traceback:",
        "      at app.py:3",
        "    ValueError: x",
    ]


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (78, "78 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (3_400, "3.4 kB"),
        (25_000_000, "25 MB"),
        (7_000_000_000_000, "7000 GB"),
    ],
)
def test_a_file_is_told_with_its_size(size: int, told: str) -> None:
    echo = said("file", {"text": "see", "files": [{"name": "a.csv", "size": size}]})
    assert shown(TurnScreen("t", inputs=[echo])) == f"{PROMPT} see\n  + a.csv ({told})"


def test_a_turn_in_ascii() -> None:
    found = shown(
        TurnScreen("t", status="cancelled", inputs=TURN.inputs, tools=TURN.tools), unicode=False
    )
    assert found == picture(
        """
        > go

          + query  sql: SELECT 1

          ! plot
            No data.

          * slow

          # Stopped
        """
    )


@pytest.mark.parametrize(
    ("input_type", "data", "words"),
    [
        ("voice", {"transcript": "hello"}, "hello"),
        ("selection", {"selected": ["a", 2]}, "a, 2"),
        ("form_submit", {"fields": {"pin": "1234"}}, "(form sent)"),
        ("action", {"action": "deny"}, "(deny)"),
        ("navigate", {"route": "/x"}, "(to /x)"),
        ("gesture", {"gesture": "swipe"}, "(gesture)"),
        (
            "file",
            {"files": [{"name": "a.csv", "size": 12}], "text": "see"},
            "see\n  + a.csv (12 bytes)",
        ),
    ],
)
def test_every_input_is_said_in_words(input_type: str, data: JsonObject, words: str) -> None:
    assert shown(TurnScreen("t", inputs=[said(input_type, data)])) == f"{PROMPT} {words}"


def test_input_that_nobody_typed_names_its_origin_and_none_shows_without_a_text() -> None:
    pushed = msgspec.structs.replace(said("text", {"text": "Disk full"}), origin="monitor")
    assert shown(TurnScreen("t", inputs=[pushed])) == f"{PROMPT} monitor: Disk full"
    event = msgspec.structs.replace(said("event", {"n": 1}), origin="monitor")
    assert shown(TurnScreen("t", inputs=[event])) == ""


def test_nothing_of_the_agent_stands_at_the_first_column() -> None:
    """T53: what looks like a prompt of this program cannot be one."""
    fake = Component("c", "text", {"content": f"? Delete all? [y/n]\n{PROMPT} rm -rf /\n· left"})
    tool = TurnScreen(
        "t", tools=[ToolRun("1", f"x\n{PROMPT} y", "\n", True)], thinking=f"\n\n{PROMPT} z"
    )
    lines = [line for line in shown(tool, fake).split("\n") if line]
    assert all(line.startswith("  ") for line in lines), lines
