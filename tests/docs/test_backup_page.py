"""The list of files in the docs on backup is the list of files that a busy server writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from arp import App
from arp.cli import main
from arp.client.client import connect
from tests.runtime.test_deletion import say
from tests.runtime.test_framework_sessions import remembering
from tests.support.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
ELSEWHERE = {"app.logins", "app.starts"}
"""Written only where users log in at a provider, and where an open app runs commands of agents:
`test_login_page.py` and `test_own_code.py` have them."""


def listed() -> list[str]:
    """Return the names in the first column of the table of the docs."""
    section = PAGE.read_text().split("### Backup")[1].split("\n#")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def written(place: Path) -> Iterator[str]:
    """Yield the files below a directory, with `/` behind the directories that the docs list."""
    for path in place.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(place))
            name = re.sub(r"^app\.blobs/.*", "app.blobs/", name)
            yield re.sub(r"^app\.db\.runtimes/[^/]+/.*", "app.db.runtimes/NAME/", name)


@pytest.mark.timeout(120)
async def test_docs_on_backup_list_every_file_that_a_server_writes(tmp_path: Path) -> None:
    ledger = f"sqlite:{tmp_path / 'app.db'}"
    made = CliRunner().invoke(main, ["token", "create", "--user", "ann", "--ledger", ledger])
    assert made.exit_code == 0, made.stderr
    token = made.stdout.strip()
    found: set[str] = set()
    app = App()
    app.runtime(remembering())
    with serving(app, ledger=ledger) as server:
        async with connect(server.http, session_id="s", token=token) as client:
            await say(client, "hello")
            await client.send_files([("note.txt", b"hello")], "a file")
            await say(client, "again")
        found |= set(written(tmp_path))
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
            (await http.delete(f"{server.http}/_api/chats/s", timeout=30)).raise_for_status()
        found |= set(written(tmp_path))
    found |= set(written(tmp_path))
    assert found == set(listed()) - ELSEWHERE
