"""No command lets a text that somebody else chose act on the terminal: also not through a pipe.

The table below has each command of `arp`; a new one must be added before these tests pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
import pytest
from click.testing import CliRunner

from arp import App, Turn
from arp.access.principal import Principal
from arp.access.tokens import IssuedToken, TokenFile
from arp.audit.evidence.replay_case import FORMAT, Case, ExpectedFact, TurnCase
from arp.cli import main
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.protocol.errors import ArpError
from arp.protocol.messages import Input
from arp.protocol.safe_text import is_safe
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

RUDE = "a\x1b[31mb\x07\x7f\x9b2J\x85\u202egpj.exe\u2066\U000e0041\u200bz"
"""ESC, BEL, DEL, C1, an override and an isolate of direction, a tag, a space of no width."""

JSON_COMMANDS = (
    "events-json",
    "sessions-json",
    "show-json",
    "show-part",
    "verify-json",
    "replay-json",
    "export-json",
    "case-json",
    "token-list-json",
)

app = App(title=RUDE)


@app.agent
async def rude(turn: Turn) -> None:
    """Says rude things wherever it can, and fails with one."""
    await turn.say(RUDE)
    turn.think(RUDE)
    async with turn.tool(RUDE, {RUDE: RUDE}) as tool:
        tool.result(RUDE)
    turn.record.task(RUDE, task_id=RUDE)
    turn.record("runtime.warning", {"message": RUDE})
    raise ArpError(RUDE)


class Place(NamedTuple):
    """Where the rude things are."""

    server: Serving
    ledger: str
    pack: str
    damaged: str
    case: str
    app: str
    checks: str
    stores: str


async def _written(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"rude": rude}))
    await hub.start()
    await hub.submit(
        Input(input_type="text", data={"text": RUDE}, session_id="s"), Principal(), "rude"
    )
    live = hub.sessions["s"]
    await becomes(lambda: live.session.status_of("t1") == "failed")
    await hub.aclose()


def _case(path: Path) -> str:
    turn = TurnCase("t" + RUDE, {"input_type": "text", "data": {"text": RUDE}})
    turn.facts.append(ExpectedFact("model.delta", {}, {RUDE: RUDE}))
    case = Case(session_id=RUDE, runtime_id="arp", workflow=RUDE, through=1, turns=[turn])
    assert case.format == FORMAT
    path.write_bytes(msgspec.json.encode(case))
    return str(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("rude")
    asyncio.run(_written(folder / "l.db"))
    ledger = f"sqlite:{folder / 'l.db'}"
    tokens = TokenFile(folder / "l.tokens")
    tokens.create(IssuedToken("0" * 12, RUDE, 0.0, roles=(RUDE,), note=RUDE))
    pack, damaged = folder / "pack", folder / "damaged"
    for target in (pack, damaged):
        words = ["evidence", "export", "s", "--ledger", ledger, "-o", str(target)]
        assert CliRunner().invoke(main, words).exit_code == 0
    (damaged / f"m\x7f{RUDE.replace('/', '')}").write_text(RUDE)
    agent = folder / "app.py"
    agent.write_text(
        "from arp import App\napp = App()\n@app.agent\nasync def a(turn):\n"
        f"    await turn.say({RUDE!r})\n"
    )
    checks = folder / "checks.py"
    checks.write_text(
        "from tests.runtime.runtimes_under_test import FakeUnderTest\n"
        "class Rude(FakeUnderTest):\n"
        f"    name = {RUDE!r}\n"
        "def factory(directory):\n    return Rude(directory)\n"
    )
    stores = folder / "stores.py"
    stores.write_text(
        "from arp.conformance.store.own_stores import MemoryUnderTest\n"
        "class Rude(MemoryUnderTest):\n"
        f"    name = {RUDE!r}\n"
        f"    def make(self): raise ValueError({RUDE!r})\n"
        "def factory(directory):\n    return Rude()\n"
    )
    case = _case(folder / "c.json")
    with serving(app) as server:
        named = (
            str(pack),
            str(damaged),
            case,
            str(agent),
            f"{checks}:factory",
            f"{stores}:factory",
        )
        yield Place(server, ledger, *named)


def commands() -> dict[str, list[str]]:
    """Each way to let a command print what somebody else chose."""
    return {
        "events": ["events", "s", "--ledger", "{ledger}"],
        "events-json": ["events", "s", "--ledger", "{ledger}", "--json"],
        "events-error": ["events", RUDE, "--ledger", "{ledger}"],
        "events-verify": ["events", RUDE, "--ledger", "{ledger}", "--verify"],
        "sessions": ["sessions", "--ledger", "{ledger}"],
        "sessions-json": ["sessions", "--ledger", "{ledger}", "--json"],
        "sessions-error": ["sessions", "--ledger", f"sqlite:{RUDE}"],
        "export": ["evidence", "export", "s", "--ledger", "{ledger}", "-o", "{new}"],
        "export-json": ["evidence", "export", "s", "--ledger", "{ledger}", "-o", "{new}", "--json"],
        "export-error": ["evidence", "export", "s", "--ledger", "{ledger}", "--turn", RUDE],
        "verify": ["evidence", "verify", "{damaged}"],
        "verify-json": ["evidence", "verify", "{damaged}", "--json"],
        "show": ["evidence", "show", "{pack}"],
        "show-json": ["evidence", "show", "{pack}", "--json"],
        "show-part": ["evidence", "show", "{pack}", "--part", "tool_calls.json"],
        "show-error": ["evidence", "show", "{pack}", "--part", RUDE],
        "replay": ["replay", "{pack}", "--speed", "0"],
        "replay-json": ["replay", "{pack}", "--speed", "0", "--json"],
        "replay-error": ["replay", RUDE],
        "case": ["replay", "{case}", "--agent", "{app}"],
        "case-json": ["replay", "{case}", "--agent", "{app}", "--json"],
        "serve": ["serve", RUDE],
        "serve-runtime": ["serve", "--runtime", RUDE],
        "ari": ["ari", "serve", "--runtime", RUDE, "--http", "0"],
        "conformance": ["conformance", "runtime", "{checks}", "--case", "create"],
        "conformance-error": ["conformance", "runtime", RUDE],
        "conformance-case": ["conformance", "runtime", "{checks}", "--case", RUDE],
        "conformance-store": ["conformance", "store", "{stores}", "--case", "order"],
        "conformance-store-error": ["conformance", "store", RUDE],
        "conformance-store-case": ["conformance", "store", "{stores}", "--case", RUDE],
        "conformance-ledger": ["conformance", "ledger", "{ledger}"],
        "conformance-ledger-error": ["conformance", "ledger", RUDE],
        "app-server": ["app-server", RUDE],
        "delete": ["delete", RUDE, "--url", "{url}"],
        "delete-error": ["delete", RUDE, "--url", f"http://{RUDE}"],
        "token-create": ["token", "create", "--user", RUDE, "--ledger", "{ledger}"],
        "token-list": ["token", "list", "--ledger", "{ledger}"],
        "token-list-json": ["token", "list", "--ledger", "{ledger}", "--json"],
        "token-revoke": ["token", "revoke", "--user", RUDE, "--ledger", "{ledger}"],
        "token-revoke-error": ["token", "revoke", RUDE, "--ledger", "{ledger}"],
        "feedback": ["feedback", "--ledger", "{ledger}"],
        "feedback-error": ["feedback", "--ledger", f"sqlite:{RUDE}"],
        "tools-list": ["tools", "list", "--url", f"http://{RUDE}"],
        "tools-show": ["tools", "show", RUDE],
        "tools-invoke": ["tools", "invoke", RUDE],
        "tools-request": ["tools", "request", RUDE, "--url", f"http://{RUDE}"],
        "tools-budget": ["tools", "budget", "--settle", RUDE],
        "tools-stop": ["tools", "stop", RUDE],
        "tools-enable": ["tools", "enable", RUDE],
        "tools-disable": ["tools", "disable", RUDE],
        "tools-remove": ["tools", "remove", RUDE],
        "tools-serve": ["tools", "serve", "--coder", RUDE, "--port", "0"],
        "tools-import": ["tools", "import", RUDE, RUDE],
        "usage": ["sessions", f"--{RUDE}"],
    }


NEEDS_PIPES = ("app-server", "connect", "render")
"""Commands that read or write file descriptors; the others run in this process, which is faster."""


def run(place: Place, words: list[str], tmp_path: Path, stdin: bytes = b"") -> tuple[str, str]:
    """Run a command whose output is no terminal; return what it wrote."""
    names = place._asdict() | {"new": str(tmp_path / "new"), "url": place.server.http}
    given = [word.format(**names) if word.startswith("{") else word for word in words]
    environment = {"NO_COLOR": "1", "TOOL_AGENT_DATA_DIR": str(tmp_path / "tools")}
    if words[0] in NEEDS_PIPES:
        return _run_process(given, environment, stdin)
    done = CliRunner(env=environment).invoke(main, given, input=stdin)
    assert isinstance(done.exception, SystemExit | None), done.exc_info
    return done.stdout, done.stderr


def _run_process(words: list[str], environment: dict[str, str], stdin: bytes) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "arp.cli", *words],
        input=stdin,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        check=False,
    )
    return done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("name", commands())
def test_a_command_prints_only_what_can_be_seen(place: Place, name: str, tmp_path: Path) -> None:
    told, errors = run(place, commands()[name], tmp_path)
    assert told or errors
    assert is_safe(told), ascii(told)
    assert is_safe(errors), ascii(errors)
    assert "Traceback" not in errors
    if name in JSON_COMMANDS:
        said = [json.loads(line) for line in ([told] if "show" in name else told.splitlines())]
        assert said
        if name not in ("sessions-json", "show-json", "export-json"):
            assert ascii(RUDE)[1:-1] in ascii(said), "the values stay what they are"


def test_connect_and_render_print_only_what_can_be_seen(place: Place, tmp_path: Path) -> None:
    connected, errors = run(place, ["connect", place.server.http], tmp_path, b"hello\n")
    assert "<U+202E>" in connected
    assert is_safe(connected + errors), ascii(connected + errors)
    lines, _ = run(place, commands()["replay-json"], tmp_path)
    drawn, errors = run(place, ["render"], tmp_path, lines.encode() + RUDE.encode() + b"\n")
    assert "<U+202E>" in drawn
    assert "arp render: line" in errors
    assert is_safe(drawn + errors), ascii(drawn + errors)
    _, refused = run(place, ["connect", f"http://{RUDE}"], tmp_path)
    assert is_safe(refused), ascii(refused)


def test_each_command_is_in_the_table() -> None:
    said = {" ".join(words[:2]) for words in commands().values()} | {
        words[0] for words in commands().values()
    }
    here = {"connect", "render"}
    missing = [name for name in _names(main, "") if name not in said | here]
    assert missing == [], "add each to `commands()` with a text that somebody else chose"


def _names(group: click.Group, before: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _names(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"
