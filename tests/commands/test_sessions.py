"""`arp sessions`: what there is, from a file and from a server."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from click.testing import CliRunner

from arp import Access, App
from arp.cli import main
from arp.commands.ledger.reader import ListedSession
from arp.commands.ledger.sessions import table
from arp.runtime.contract.errors import Unavailable
from arp.runtime.plain.fake import FakeRuntime
from tests.commands.ledgers import ledger
from tests.server import worker
from tests.support.serving import serving


def test_file_lists_its_sessions(tmp_path: Path) -> None:
    path = ledger(tmp_path / "l.db", "one", "two")
    result = CliRunner().invoke(main, ["sessions", "--ledger", f"sqlite:{path}"])
    assert result.exit_code == 0
    head, first, second = result.output.splitlines()
    assert head.split() == ["SESSION", "UPDATED", "TURNS", "FACTS", "TITLE"]
    assert (first.split()[0], second.split()[0]) == ("two", "one")
    assert first.split()[3:] == ["1", "9", "read␇", "it"]


def test_json_is_one_object_a_line(tmp_path: Path) -> None:
    path = ledger(tmp_path / "l.db", "one")
    result = CliRunner().invoke(main, ["sessions", "--ledger", str(path), "--json"])
    row = json.loads(result.output)
    assert (row["sessionId"], row["turns"], row["sequence"]) == ("one", 1, 9)


def test_server_lists_what_the_token_may_see() -> None:
    app = App(access=Access(token="secret"))
    app.agent(worker.worker)
    with serving(app) as server:
        headers = {"authorization": "Bearer secret"}
        body = {"message": "hello", "session_id": "s"}
        httpx.post(f"{server.http}/worker", json=body, headers=headers).raise_for_status()
        options = ["sessions", "--url", server.http]
        result = CliRunner().invoke(main, [*options, "--token", "secret", "--json"])
        assert json.loads(result.output)["sessionId"] == "s"
        refused = CliRunner().invoke(main, options)
        assert refused.exit_code == 1
        assert "a token is needed" in refused.stderr
        assert "give --token" in refused.stderr


def test_nothing_is_said_to_be_nothing() -> None:
    assert table([], 80) == ["no sessions"]


def test_title_is_cut_to_the_terminal_and_a_busy_session_is_marked() -> None:
    rows = [ListedSession("s", title="word " * 40, updated_at="2026-11-21T08:00:00Z", active=True)]
    lines = table(rows, 80)
    assert "…" in lines[1]
    assert "●" in lines[1]


def test_a_deleted_session_is_gone_and_what_is_still_there_is_named() -> None:
    fake = FakeRuntime()
    app = App()
    app.runtime(fake)
    with serving(app) as server:
        for session in ("one", "two"):
            body = {"message": "hello", "session_id": session}
            httpx.post(f"{server.http}/fake", json=body).raise_for_status()
        options = ["--url", server.http]
        gone = CliRunner().invoke(main, ["delete", "one", *options])
        assert (gone.exit_code, gone.output) == (0, "deleted one\n")
        fake.inject_error("delete_session", Unavailable("the agent is away"))
        left = CliRunner().invoke(main, ["delete", "two", *options])
        assert left.exit_code == 1
        assert "is still there: the agent is away; the server tries again" in left.stderr
        unknown = CliRunner().invoke(main, ["delete", "two", *options])
        assert unknown.exit_code == 1
        assert "no session" in unknown.stderr
