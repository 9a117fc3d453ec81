"""A use of a tool in a terminal: arguments, progress, result, duration."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from textwrap import indent

import pytest

from arp import App, Turn
from arp.protocol.components import Component
from arp.protocol.connection.screen import ToolRun
from arp.protocol.json_value import Json
from arp.protocol.messages import ToolProgressPayload
from arp_terminal.drawing.tool_run import draw_tool
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from tests.renderers.terminal.drawing import painted, picture, widest
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command
from tests.support.serving import serving

SQL = "SELECT region, SUM(amount) AS total\nFROM sales\nGROUP BY region"


def run(args: Json = None, **known: object) -> ToolRun:
    one = ToolRun("c", "query", json.dumps(args) if args is not None else "{}")
    for name, value in known.items():
        setattr(one, name, value)
    return one


def below(text: str) -> str:
    """Return a picture as the agent's part stands: two cells in."""
    return indent(picture(text), "  ")


def drawn(one: ToolRun, width: int = 60, *, unicode: bool = True) -> str:
    options = Options(width=width, colour=False, unicode=unicode)
    lines = Painter(options).lines(draw_tool(one, options))
    assert widest(lines) <= width
    return "\n".join(lines)


def test_short_arguments_stand_behind_the_name_and_a_duration_at_the_end() -> None:
    one = run({"table": "sales", "limit": 3}, ok=True, duration_ms=1_840)
    assert drawn(one) == "  ✓ query  table: sales, limit: 3  1.8 s"


def test_code_keeps_its_lines_and_is_no_escaped_json() -> None:
    assert drawn(run({"sql": SQL, "limit": 3}, ok=True)) == below("""
      ✓ query
        sql:
          SELECT region, SUM(amount) AS total
          FROM sales
          GROUP BY region
        limit: 3
    """)


def test_a_long_argument_is_cut_and_says_so() -> None:
    text = drawn(run({"script": "\n".join(f"line {n}" for n in range(40))}))
    assert "line 11\n" in text
    assert "line 12" not in text
    assert "… 28 more lines" in text


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (ToolProgressPayload("c", "reading"), "reading"),
        (ToolProgressPayload("c", "reading", 1, 4), "reading  ███░░░░░░░░░ 1 of 4"),
        (ToolProgressPayload("c", "", 4_000, 4_000), "████████████ 4,000 of 4,000"),
        (ToolProgressPayload("c", "rows", 12), "rows  12"),
        (ToolProgressPayload("c", "odd", 3, 0), "odd  3"),
    ],
)
def test_progress_stands_below_as_text_and_bar(progress: ToolProgressPayload, line: str) -> None:
    assert drawn(run(progress=progress)) == f"  ◌ query\n    {line}"


def test_a_result_is_laid_out_and_the_whole_is_named() -> None:
    rows = [{"region": "north", "total": 12.5}, {"region": "south", "total": 7}]
    assert drawn(run(ok=True, result=json.dumps(rows[:1]))) == below("""
      ✓ query
        → [{"region": "north", "total": 12.5}]
    """)
    assert drawn(run(ok=True, result=json.dumps(rows), result_ref="/_api/blobs/s/1/q.txt")) == (
        below("""
      ✓ query
        → [
            {
              "region": "north",
              "total": 12.5
            },
            {
              "region": "south",
              "total": 7
          … 2 more lines
        Whole result: /_api/blobs/s/1/q.txt
    """)
    )


def test_a_result_that_was_cut_is_text() -> None:
    assert drawn(run(ok=True, result='[{"region":"nor…')).endswith('→ [{"region":"nor…')


def whole(one: ToolRun, width: int = 60, server: str = "") -> str:
    options = Options(width=width, colour=False, server=server)
    drawing = draw_tool(one, options, number=3, detail="whole")
    lines = Painter(options).lines(drawing)
    assert widest(lines) <= width
    return "\n".join(lines)


def test_a_whole_call_loses_no_character_of_its_arguments_and_its_result() -> None:
    script = "\n".join(f"line {n}" for n in range(40))
    result = "\n".join(f"row {n} " + "x" * 80 for n in range(30))
    text = whole(run({"script": script, "n": 1}, ok=True, result=result))
    assert text.startswith("  ✓ #3 query\n    script:\n      line 0\n")
    assert "      line 39\n    n: 1\n    → row 0\n" in text
    assert text.count("x") == 30 * 80
    assert "more lines" not in text


def test_a_whole_call_says_where_the_rest_of_a_cut_result_is() -> None:
    one = run({"n": 1}, ok=True, result="[1, 2", result_ref="/_api/blobs/s/1/q.txt")
    assert whole(one, 80, "https://host").split("\n")[-2:] == [
        "    The result is cut after 5 characters. Whole result:",
        "    https://host/_api/blobs/s/1/q.txt",
    ]


@pytest.mark.parametrize("levels", [300, 900, 5_000])
def test_a_whole_call_that_is_nested_too_deep_is_drawn_as_it_came(levels: int) -> None:
    nested = "[" * levels + "]" * levels
    assert "[" in whole(ToolRun("c", "query", f'{{"a": {nested}}}', ok=True, result=nested))


@pytest.mark.parametrize(
    "args",
    [
        '{"path": "/tmp/a", "path": "/etc/passwd"}',
        '{"o": {"n": 1, "n": 2}}',
        '{"n": 1e3}',
        '{"n": 0.10000000000000000001}',
        '{"n": -0}',
    ],
)
def test_a_whole_call_that_decoding_would_change_is_drawn_as_it_came(args: str) -> None:
    assert args in whole(ToolRun("c", "query", args), 100)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"n": 1}', '{"n": "1"}'),
        ('{"n": "1"}', json.dumps({"n": '"1"'})),
        ('{"n": null}', '{"n": "null"}'),
        ('{"n": [1]}', '{"n": ["1"]}'),
        ('{"n": [1]}', '{"n": "[1]"}'),
        ('{"n": ""}', '{"n": " "}'),
        ('{"n": "a"}', '{"n": "a "}'),
        (json.dumps({"n": "a\nb"}), json.dumps({"n": "a\nb\n"})),
        ('{"n: a": "b"}', '{"n": "a: b"}'),
    ],
)
def test_different_arguments_of_a_whole_call_look_different(one: str, other: str) -> None:
    assert whole(ToolRun("c", "query", one)) != whole(ToolRun("c", "query", other))


def test_quotes_are_only_where_they_are_needed() -> None:
    args = {"sql": "SELECT 1", "name": "é", "limit": 3, "share": 0.5, "id": "3", "json": "{\n}"}
    assert whole(run(args)).split("\n")[1:] == [
        "    sql: SELECT 1",
        "    name: é",
        "    limit: 3",
        "    share: 0.5",
        '    id: "3"',
        "    json:",
        "      {",
        "      }",
    ]


def test_ascii_has_signs_of_its_own() -> None:
    one = run({"n": 1}, progress=ToolProgressPayload("c", "reading", 1, 2))
    assert drawn(one, unicode=False) == "  * query  n: 1\n    reading  ######...... 1 of 2"


@pytest.mark.parametrize("levels", [300, 900, 5_000])
def test_json_that_is_nested_too_deep_is_drawn_as_it_came(levels: int) -> None:
    nested = "[" * levels + "]" * levels
    assert "[" in drawn(ToolRun("c", "query", nested, ok=True, result=nested))


def test_many_and_large_arguments_are_bounded() -> None:
    many = drawn(run({f"name{number}": "x" * 30 for number in range(200)}))
    assert len(many.split("\n")) == 22
    assert many.endswith("… 180 more")
    large = drawn(run({f"name{number}": "x" * 30 for number in range(20_000)}))
    assert len(large.split("\n")) == 2


def test_nothing_of_a_tool_moves_the_cursor() -> None:
    evil = "\x1b[2J\x9b5A\u202e"
    one = run({evil: evil}, ok=False, error=evil, result=evil, result_ref=evil)
    for text in (drawn(one), whole(one)):
        assert not set(text) & set("\x1b\x9b\u202e")
        assert all(shown.startswith("  ") for shown in text.split("\n"))


app = App(title="Tools")


@app.agent
async def queries(turn: Turn) -> None:
    """Runs a query."""
    async with turn.tool("query", {"sql": SQL}) as tool:
        tool.progress("reading", done=1, total=4)
        await asyncio.sleep(1.2)
        tool.result([{"region": "north", "total": 12.5}])
    await turn.say("There it is.")


def test_a_person_sees_progress_then_the_result_and_how_long_it_took(tmp_path: Path) -> None:
    with (
        serving(app) as server,
        PseudoTerminal(command(server.http), tmp_path, size=(40, 100)) as terminal,
    ):
        terminal.until_at_rest()
        terminal.type("go\r")
        terminal.until_shown("reading  ███░░░░░░░░░ 1 of 4")
        terminal.until_at_rest("There it is.")
        paper = "\n".join(terminal.paper)
    assert "reading" not in paper
    assert "\n      GROUP BY region\n" in paper
    assert '    → [{"region": "north", "total": 12.5}]' in paper
    assert "✓ #1 query  1." in paper


OUTPUT = (
    "\x1b[31mred\x1b[0m 10%\r100%\n\x1b[2K\x1b[1G\x1b[?25lspinner\r\x1b[Kok\n"
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\"
)


def test_what_a_program_printed_is_read_as_a_terminal_would() -> None:
    """Results, texts within them, progress and errors; what a tool is called with hides nothing."""
    assert drawn(run(ok=True, result=OUTPUT)).splitlines()[1:] == [
        "    → 100%",
        "      ok",
        "      link",
    ]
    inner = json.dumps({"out": ["\x1b[1mok\x1b[0m", "1%\r2%"]})
    assert '→ {"out": ["ok", "2%"]}' in drawn(run(ok=True, result=inner))
    progress = ToolProgressPayload("query", text="10%\r\x1b[32m20%\x1b[0m")
    assert drawn(run(progress=progress)).splitlines()[1].strip() == "20%"
    assert "✗ 20%" not in drawn(run(ok=False, error="\x1b[31mno disk\x1b[0m"))
    assert "No disk." in drawn(run(ok=False, error="\x1b[31mno disk\x1b[0m"))
    assert "rm -rf /␍echo hi" in drawn(run({"command": "rm -rf /\recho hi"}))


def test_code_that_a_program_printed_is_read_so_too() -> None:
    block = Component("c", "code-block", {"code": OUTPUT, "tabs": [{"name": "t", "code": OUTPUT}]})
    lines = painted(block, colour=False)
    assert lines == ["  100%", "  ok", "  link", "t", "  100%", "  ok", "  link"]
    fenced = Component("m", "markdown", {"content": f"```\n{OUTPUT}\n```\n\n- ```\n  {OUTPUT}"})
    assert painted(fenced, colour=False)[:3] == ["  100%", "  ok", "  link"]
    text = Component("m", "markdown", {"content": "```\nGET ␍ ␛[x\n```"})
    assert painted(text, colour=False) == ["  GET ␍ ␛[x"]
