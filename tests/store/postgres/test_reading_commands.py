"""The commands that read a ledger read it from a database, and a server serves it."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from arp import App, Turn
from arp.cli import main
from arp.commands.ledger.file_reader import FileReader
from arp.store.postgres.location import PostgresLocation
from arp.store.postgres.store import PostgresStore
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite, append_all, facts
from tests.commands.ledgers import ledger
from tests.store.samples import fact, meta
from tests.store.samples import facts as sample_facts
from tests.support.postgres import PASSWORD
from tests.support.serving import serving


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments])


async def copied(file: Path, location: str) -> None:
    """Copy session `s` of a file into a database."""
    source, target = SqliteStore(file), PostgresStore(location)
    await source.open()
    await target.open()
    found = [fact async for _, fact in facts(source, "s")]
    await append_all(target, [SessionWrite("s", 0, found, await source.session("s"))])
    await source.aclose()
    await target.aclose()


async def test_commands_read_a_database_like_a_file(tmp_path: Path, location: str) -> None:
    file = await asyncio.to_thread(ledger, tmp_path / "l.db", "s")
    await copied(file, location)

    def compare() -> None:
        for command in (
            ("events", "s", "--json"),
            ("sessions",),
            ("events", "s", "--type", "turn"),
        ):
            from_file = run(*command, "--ledger", str(file))
            from_database = run(*command, "--ledger", location)
            assert from_database.exit_code == 0
            assert from_database.output == from_file.output
        checked = run("events", "s", "--ledger", location, "--verify")
        assert checked.exit_code == 0
        pack = str(tmp_path / "pack.zip")
        exported = run("evidence", "export", "s", "--ledger", location, "--to", pack)
        assert exported.exit_code == 0, exported.stderr
        verified = run("evidence", "verify", pack, "--ledger", location)
        assert verified.exit_code == 0, verified.stderr

    await asyncio.to_thread(compare)


def test_a_ledger_that_cannot_be_read_is_named_without_credentials(location: str) -> None:
    result = run("sessions", "--ledger", location)
    assert result.exit_code == 1
    shown = PostgresLocation(location).shown
    assert result.stderr == f"arp: Ledger {shown}: the database has no ledger.\n"


def test_a_followed_database_yields_new_facts(location: str) -> None:
    async def add(first: int, last: int) -> None:
        store = PostgresStore(location)
        await store.open()
        new = SessionWrite("s1", first - 1, sample_facts(first, last), meta("s1"))
        await append_all(store, [new])
        await store.aclose()

    asyncio.run(add(1, 2))
    with closing(FileReader(location)) as reader:
        following = reader.follow("s1", 0, ())
        assert [next(following), next(following)] == sample_facts(1, 2)
        asyncio.run(add(3, 3))
        assert next(following) == fact(3)


def test_a_server_keeps_its_sessions_in_a_database(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App()

    @app.agent
    async def echo(turn: Turn) -> None:
        """Repeat what was said."""
        await turn.say(f"You said {turn.text}")

    for number in (1, 2):
        with serving(app, ledger=location) as server:
            body = {"message": f"hello {number}", "session_id": "s"}
            httpx.post(f"{server.http}/echo", json=body).raise_for_status()
    result = run("sessions", "--ledger", location)
    assert result.exit_code == 0
    assert result.output.splitlines()[1].startswith("s ")
    events = run("events", "s", "--ledger", location, "--json")
    types = [json.loads(line)["type"] for line in events.output.splitlines()]
    assert types.count("turn.completed") == 2
    assert PASSWORD not in "".join(path.name for path in tmp_path.rglob("*"))
