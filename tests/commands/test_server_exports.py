"""`arp evidence export` from a server that runs: it makes the export and notes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arp import Access, App
from arp.access.principal import Principal
from arp.audit.evidence.pack import Pack
from arp.cli import main
from arp.commands.ledger.reader import ReaderError
from arp.commands.ledger.server_reader import ServerFile, ServerReader
from arp.protocol.messages import Input
from tests.server import worker
from tests.support.serving import Serving, serving

TOKEN = "letmein"
DONE_S = 10.0


def run(server: Serving | str, *words: str, token: str = TOKEN) -> Result:
    url = server if isinstance(server, str) else server.http
    return CliRunner().invoke(main, ["evidence", *words, "--url", url, "--token", token])


async def work(server: Serving) -> None:
    """Lets a turn with a large result run in session `s`."""
    hub = await server.application.hub()
    message = Input(input_type="text", data={"text": "large"}, session_id="s")
    await hub.submit(message, Principal(), "worker")
    live = hub.sessions["s"]
    while live.session.running is not None:
        await live.beyond(live.stored)


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    app = App(title="Worker", access=Access(token=TOKEN))
    app.agent(worker.worker)
    with serving(app) as running:
        asyncio.run_coroutine_threadsafe(work(running), running.loop).result(DONE_S)
        yield running


def test_a_pack_has_the_large_outputs_and_its_hash_is_in_the_ledger(
    server: Serving, tmp_path: Path
) -> None:
    target = tmp_path / "deep" / "s.zip"
    made = run(server, "export", "s", "-o", str(target), "--json")
    assert made.exit_code == 0, made.output
    (output,) = json.loads(made.stdout)["outputs"]
    with Pack(target) as pack:
        assert pack.read(output["part"]) == worker.LARGE.encode()
    told = run(server, "export", "s", "-o", str(tmp_path / "again.zip"))
    digest = told.output.partition("manifest sha256 ")[2].split()[0]
    words = ["events", "s", "--type", "evidence", "--json", "--url", server.http]
    events = CliRunner().invoke(main, [*words, "--token", TOKEN]).stdout.splitlines()
    assert json.loads(events[-1])["payload"]["sha256"] == digest
    checked = ["evidence", "verify", str(tmp_path / "again.zip"), "--sha256", digest]
    assert CliRunner().invoke(main, checked).exit_code == 0
    assert [one.name for one in target.parent.iterdir()] == ["s.zip"]


def test_outputs_may_be_left_out(server: Serving, tmp_path: Path) -> None:
    made = run(server, "export", "s", "-o", str(tmp_path / "s.zip"), "--no-outputs", "--json")
    (output,) = json.loads(made.stdout)["outputs"]
    assert output["state"] == "unsupported"


@pytest.mark.parametrize(("form", "begins"), [("case", b"{\n"), ("review", b"# Review of")])
def test_a_case_and_a_review_come_as_they_are(
    server: Serving, tmp_path: Path, form: str, begins: bytes
) -> None:
    target = tmp_path / form
    made = run(server, "export", "s", "--as", form, "-o", str(target))
    assert made.exit_code == 0, made.output
    assert target.read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("s", "-o", "DIR/s"), "a server gives a zip; name it "),
        (("z", "-o", "DIR/z.zip"), "no session 'z'"),
        (("s", "-o", "DIR/s.zip", "--turn", "t9"), "missing_correlation: the session has no fact"),
        (("s", "-o", "DIR"), "a server gives a zip"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence_and_leaves_nothing(
    server: Serving, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    failed = run(server, "export", *(word.replace("DIR", str(tmp_path)) for word in words))
    assert failed.exit_code == 1
    assert sentence in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_already_is_not_touched(server: Serving, tmp_path: Path) -> None:
    target = tmp_path / "s.zip"
    target.write_text("mine")
    failed = run(server, "export", "s", "-o", str(target))
    assert "is there already" in failed.stderr
    assert target.read_text() == "mine"


def test_without_a_server_or_its_token_there_is_a_hint(server: Serving, tmp_path: Path) -> None:
    target = str(tmp_path / "s.zip")
    nobody = run("http://127.0.0.1:9", "export", "s", "-o", target)
    assert "No server answers at http://127.0.0.1:9" in nobody.stderr
    stranger = run(server, "export", "s", "-o", target, token="wrong")
    assert stranger.exit_code == 1
    assert stranger.stderr.startswith("arp: ")
    assert "token" in stranger.stderr


def test_what_is_not_what_was_exported_is_not_kept(server: Serving, tmp_path: Path) -> None:
    wrong = ServerFile(2, sha256(b"other").hexdigest(), "/health")
    with closing(ServerReader(server.http, TOKEN)) as reader:
        with pytest.raises(ReaderError, match="the received file is not the exported one"):
            reader.download(wrong, tmp_path / "s.zip")
        with pytest.raises(ReaderError, match="404"):
            reader.download(ServerFile(2, "", "/nothing"), tmp_path / "s.zip")
    assert list(tmp_path.iterdir()) == []
