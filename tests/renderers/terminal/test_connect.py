"""`arp connect` against a real server: a terminal, two on one session, a pipe, no server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from arp import App, Turn, ui
from arp_terminal import connect
from tests.renderers.terminal.drawing import PROMPT
from tests.renderers.terminal.pseudo_terminal import ROOT, PseudoTerminal
from tests.support.serving import Serving, serving

app = App(title="Exports")


@app.agent
async def export(turn: Turn) -> None:
    if turn.text == "file":
        file = await turn.save_file("out.csv", b"a,b", mime="text/csv")
        await turn.say(f"[out.csv]({turn.file_url(file)})")
        return
    if turn.text == "people":
        rows = [["Ann", 3], ["Bob", 5], ["Cem", 8]]
        asked = ui.table("People", ["name", "age"], rows, selectable="many")
        await turn.say(f"Rows {await turn.ask(asked)}.")
        return
    await turn.say("Let me **look**. ")
    async with turn.tool("query", {"sql": "SELECT 1"}):
        pass
    turn.show(ui.chart("bar", labels=["Jan", "Feb"], datasets=[ui.dataset("Rain", [3, 1])]))
    ok = await turn.confirm("Write out.csv?", confirm_label="Write")
    await turn.say("Written." if ok else "Left.")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as found:
        yield found


def command(
    url: str, session: str | None = None, level: str = "standard", workflow: str | None = None
) -> list[str]:
    call = f"run({url!r}, session={session!r}, level={level!r}, token=None, workflow={workflow!r})"
    paths = [str(ROOT), str(ROOT / "renderers")]
    program = f"import sys; sys.path[:0] = {paths}; from arp_terminal.connect import run; "
    return [sys.executable, "-c", f"{program}raise SystemExit({call})"]


def test_the_address_of_a_file_can_be_opened(server: Serving, tmp_path: Path) -> None:
    with PseudoTerminal(command(server.http), tmp_path, size=(40, 200)) as terminal:
        terminal.until_at_rest()
        terminal.type("file\r")
        terminal.until_at_rest("/out.csv)")
        (address,) = re.findall(r"out\.csv \((http\S+)\)", terminal.shown)
    assert httpx.get(address).content == b"a,b"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://a.example/below/", "https://a.example/below"),
        ("wss://a.example/below/_arp/v1", "https://a.example/below"),
        ("stdio:python app.py", ""),
        ("unix:/run/a.sock", ""),
        ("grpc://127.0.0.1:9090", ""),
    ],
)
def test_where_a_server_answers_over_http(url: str, address: str) -> None:
    assert connect.http_address(url) == address


def test_a_session_from_the_first_word_to_the_last(server: Serving, tmp_path: Path) -> None:
    with PseudoTerminal(command(server.http), tmp_path, size=(40, 60)) as terminal:
        terminal.until_at_rest()
        terminal.type("export\r")
        terminal.until_shown(f"? Write out.csv? [y/n] {PROMPT}")
        terminal.type("y\r")
        terminal.until_at_rest("Written.")
        # A machine with other work may take so long for the tool that the duration shows.
        lines = re.sub(r"(SELECT 1)  \d+\.\d s", r"\1", terminal.shown).split("\n")
        begin = lines.index(f"{PROMPT} export")
        assert lines[begin:-2] == [
            f"{PROMPT} export",
            "",
            "  Let me look.",
            "",
            "  ✓ #1 query  sql: SELECT 1",
            "",
            "  █ Rain",
            "  Jan  " + "█" * 51 + " 3",
            "  Feb  " + "█" * 17 + " 1",
            "",
            "  ✓ Write out.csv? → Write",
            "",
            "  Written.",
        ]
        terminal.type("\x04")
        assert terminal.until_ended() == 0
        assert "The session goes on: arp connect" in terminal.shown


def test_rows_of_a_table_are_selected_by_the_numbers_before_them(
    server: Serving, tmp_path: Path
) -> None:
    with PseudoTerminal(command(server.http), tmp_path, size=(40, 60)) as terminal:
        terminal.until_at_rest()
        terminal.type("people\r")
        terminal.until_shown(f"? People [1–3] {PROMPT}")
        assert "  ┃ 2  Bob     5" in terminal.shown
        terminal.type("4\r")
        terminal.until_shown("There is no row 4; type a number from 1 to 3.")
        terminal.type("1,3\r")
        terminal.until_at_rest("Rows [0, 2].")
        assert "  ✓ People → 1 Ann, 3 Cem" in terminal.paper


def test_an_answer_on_one_terminal_closes_the_question_on_the_other(
    server: Serving, tmp_path: Path
) -> None:
    with (
        PseudoTerminal(command(server.http, "shared"), tmp_path / "a", size=(40, 60)) as one,
        PseudoTerminal(command(server.http, "shared"), tmp_path / "b", size=(40, 60)) as other,
    ):
        one.until_at_rest()
        other.until_at_rest()
        one.type("export\r")
        one.until_shown("? Write out.csv?")
        other.until_shown("? Write out.csv?")
        assert f"{PROMPT} export" in other.shown
        other.type("n\r")
        one.until_shown("Answered on another screen.")
        one.until_at_rest("Left.")
        other.until_at_rest("Left.")
        assert "  ✗ Write out.csv? → No" in one.paper
        assert "Answered on another screen." not in other.shown


def test_a_session_that_is_joined_later_shows_what_was_said(
    server: Serving, tmp_path: Path
) -> None:
    done = piped(command(server.http, "later"), "export\ny\n")
    assert done.returncode == 0
    with PseudoTerminal(command(server.http, "later"), tmp_path, size=(40, 60)) as terminal:
        terminal.until_shown("Written.")
        assert terminal.paper.count(f"{PROMPT} export") == 1
        assert terminal.paper[0].endswith("session later  /help")
        assert "  ✓ Write out.csv? → Write" in terminal.paper


office = App(title="Office")


@office.agent("cars", title="Cars \x1b[31m")
async def cars(turn: Turn) -> None:
    await turn.say(f"Cars heard {turn.text}.")


@office.agent("boats", title="Boats")
async def boats(turn: Turn) -> None:
    await turn.say(f"Boats heard {turn.text}.")


def test_the_first_line_names_the_app_and_of_several_agents_the_one_that_answers(
    server: Serving, tmp_path: Path
) -> None:
    with PseudoTerminal(command(server.http), tmp_path, size=(40, 100)) as terminal:
        terminal.until_at_rest()
        assert f"Exports  127.0.0.1:{server.port}  session " in terminal.paper[0]
    with serving(office) as found:
        place = f"127.0.0.1:{found.port}"
        boat = command(found.http, "mine", workflow="boats")
        with PseudoTerminal(boat, tmp_path / "b", size=(40, 100)) as terminal:
            terminal.until_at_rest()
            assert terminal.paper[0].endswith(f"Office  Boats  {place}  session mine  /help")
            terminal.type("ahoy\r")
            terminal.until_at_rest("Boats heard ahoy.")
            terminal.type("/new\r")  # with the same agent
            terminal.until(lambda: terminal.shown.count(f"Office  Boats  {place}  session ") == 2)
        again = command(found.http, "mine", workflow="cars")
        with PseudoTerminal(again, tmp_path / "a", size=(40, 100)) as terminal:
            terminal.until_shown("Boats heard ahoy.")
            assert "Office  Boats" in terminal.paper[0]
        with PseudoTerminal(command(found.http), tmp_path / "c", size=(40, 100)) as terminal:
            terminal.until_at_rest()
            assert f"Office  Cars ␛[31m  {place}" in terminal.paper[0]


@pytest.mark.parametrize("scheme", ["http", "http+sse"])
def test_an_unknown_agent_is_told_with_the_names_of_those_that_there_are(scheme: str) -> None:
    with serving(office) as found:
        done = piped(command(f"{scheme}://127.0.0.1:{found.port}", workflow="planes"), "hello\n")
    told = "arp connect: No agent named 'planes'. Available: cars, boats.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_a_pipe_says_its_lines_one_after_the_other(server: Serving) -> None:
    done = piped(command(server.http), "export\ny\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith(f"{PROMPT} export\n\n  Let me look.\n\n  ✓ #1 query")
    assert done.stdout.endswith("\n\n  Written.\n")


@pytest.mark.parametrize(("level", "answer"), [("standard", "y"), ("minimal", "yes")])
def test_a_pipe_over_server_sent_events_does_so_too(
    server: Serving, level: str, answer: str
) -> None:
    """There an acknowledgement and what comes of the input travel on two connections."""
    address = f"http+sse://127.0.0.1:{server.port}"
    done = piped(command(address, level=level), f"export\n{answer}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n\n  Written.\n" in done.stdout


def test_a_minimal_terminal_answers_in_words(server: Serving) -> None:
    """Questions come as text; the typed line is the answer."""
    done = piped(command(server.http, level="minimal"), "export\nyes\n")
    assert done.returncode == 0
    assert "Jan" in done.stdout
    assert "█" not in done.stdout
    assert "\n\n  Written.\n" in done.stdout
    assert "Answered: yes (Write)." in done.stdout


def test_a_server_that_is_not_there_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert connect.run("http://127.0.0.1:9", session=None, level="basic", token=None) == 1
    error = capsys.readouterr().err
    assert error.startswith("arp connect: Cannot connect: ")
    assert error.count("\n") == 1


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert connect.run("nonsense", session=None, level="basic", token=None) == 1
    assert capsys.readouterr().err.startswith("arp connect: ")


def test_a_level_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert connect.run("http://127.0.0.1:9", session=None, level="full", token=None) == 1
    assert capsys.readouterr().err == (
        "arp connect: No level 'full'; there are minimal, basic, standard.\n"
    )


def piped(arguments: list[str], typed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments, input=typed, capture_output=True, text=True, timeout=15, check=False
    )
