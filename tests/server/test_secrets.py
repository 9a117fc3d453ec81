"""50 planted secrets, a real server, its real files: none is in any of them (threats.md T75)."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import secrets
import string
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from arp.ledger.fact import Fact, decode
from arp.store.sqlite import SqliteStore
from tests.server.processes import Process
from tests.server.rpc import rpc

AGENT = Path(__file__).with_name("leaky.py")
START_S = 15.0
CAPABILITIES = {
    "components": ["text", "form"],
    "features": ["streaming", "input", "thinking", "tool-detail", "patch-append"],
}
WAYS = ("said", "split", "thought", "shown", "arguments", "results", "errors", "raised", "typed")


class Plants:
    """50 secrets: what must stand nowhere, and the texts in which each is let slip."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.secrets: list[str] = []
        self.environment: dict[str, str] = {}
        kinds = [self.github, self.openai, self.aws, self.url, self.bearer]
        self.leaks: dict[str, list[str]] = {way: [kind() for kind in kinds] for way in WAYS}
        self.leaks["fields"] = [self.known("DB_PASSWORD")]
        self.leaks["split"] += [self.known("MAIL_SECRET"), self.key()]
        self.leaks["raised"].append(self.known("SIGNING_KEY"))
        self.leaks["said"].append(self.known("SERVICE_TOKEN"))

    def letters(self, count: int, characters: str = string.ascii_letters + string.digits) -> str:
        made = "".join(self._chance.choice(characters) for _ in range(count - 2))
        made = f"Q7{made}"
        self.secrets.append(made)
        return made

    def github(self) -> str:
        return f"ghp_{self.letters(36)}"

    def openai(self) -> str:
        return f"sk-proj-{self.letters(48)}"

    def aws(self) -> str:
        return f"AKIA{self.letters(16, string.ascii_uppercase + string.digits)}"

    def url(self) -> str:
        return f"https://ann:{self.letters(14)}@db.example/sales"

    def bearer(self) -> str:
        return f"Authorization: Bearer {self.letters(40)}"

    def known(self, name: str) -> str:
        self.environment[name] = self.letters(24, string.ascii_lowercase)
        return self.environment[name]

    def key(self) -> str:
        body = "\n".join(self.letters(64) for _ in range(2))
        return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


async def serve(ledger: Path, log: Path, plants: Plants, *options: str) -> Process:
    """Starts `arp serve` with every log that it has in a file."""
    environment = {**os.environ, **plants.environment, "LEAKS": json.dumps(plants.leaks)}
    with log.open("ab") as errors:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0", "-vv"),
            *("--ledger", f"sqlite:{ledger}", *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
    assert child.stdout is not None
    async with asyncio.timeout(START_S):
        line = (await child.stdout.readline()).decode()
    assert line.startswith("ARP on http://127.0.0.1:"), line
    return Process(child, int(line.rpartition(":")[2]))


async def talk(server: Process, text: str, answer: str | None = None) -> list[Any]:
    """One turn of session `s`; gives every message that the renderer saw."""
    seen: list[Any] = []
    async with asyncio.timeout(15), connect(server.ws, compression=None) as socket:
        hello = {"v": 1, "type": "hello", "session_id": "s", "capabilities": CAPABILITIES}
        await socket.send(json.dumps(hello))
        said = {"v": 1, "type": "input", "id": secrets.token_hex(8), "input_type": "text"}
        await socket.send(json.dumps({**said, "data": {"text": text}}))
        turn_id = None
        async for frame in socket:
            message = json.loads(frame)
            seen.append(message)
            if message["type"] == "ack" and turn_id is None:
                turn_id = message["turn_id"]
            if message["type"] == "turn" and message["status"] == "waiting" and answer:
                filled = {"input_type": "form_submit", "data": {"fields": {"token": answer}}}
                await socket.send(json.dumps({"v": 1, "type": "input", **filled}))
            if message["type"] == "commit" and message["final"] and message["turn_id"] == turn_id:
                return seen
    raise AssertionError("the connection ended before the turn")


async def pages(server: Process) -> str:
    """Everything that the HTTP routes tell of the session."""
    paths = ("/_api/chats", "/_api/chats/s", "/_api/runs", "/_api/runs/s.t1", "/", "/_inspect")
    async with httpx.AsyncClient(base_url=server.http) as http:
        return "\n".join([(await http.get(path)).text for path in paths])


async def read_facts(ledger: Path) -> list[Fact]:
    store = SqliteStore(ledger)
    await store.open()
    facts = [decode(body) for _, body in await store.read("s", 0, 10_000)]
    await store.aclose()
    return facts


def files_of(directory: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in directory.rglob("*") if each.is_file()}


async def exports(server: Process) -> dict[str, bytes]:
    """Every part of a pack, a case and a review of the session, made by the server."""
    parts: dict[str, bytes] = {}
    async with asyncio.timeout(60), rpc(server.port) as program:
        for kind in ("evidence", "replay", "review"):
            made = await program.call(f"{kind}/export", sessionId="s")
            assert made["state"] == "exported"
            parts[f"answer of {kind}/export"] = json.dumps(made).encode()
            async with httpx.AsyncClient(base_url=server.http) as http:
                parts[made["file"]["name"]] = (await http.get(made["file"]["path"])).content
    with zipfile.ZipFile(io.BytesIO(parts["evidence.zip"])) as pack:
        parts |= {f"pack: {name}": pack.read(name) for name in pack.namelist()}
    return parts


def leaked(plants: Plants, where: dict[str, bytes]) -> list[str]:
    """Each secret that stands somewhere, and any half of one."""
    return [
        f"{secret} in {name}"
        for secret in plants.secrets
        for name, content in where.items()
        for part in (secret, secret[: len(secret) // 2], secret[len(secret) // 2 :])
        if len(part) >= 8 and part.encode() in content
    ]


@pytest.mark.timeout(120)
async def test_no_planted_secret_stands_in_file_log_page_frame_or_export(tmp_path: Path) -> None:
    ledger, log = tmp_path / "ledger.db", tmp_path / "log.txt"
    plants = Plants(seed=7)
    assert len(plants.secrets) >= 50
    typed = " and ".join(plants.leaks["typed"])
    server = await serve(ledger, log, plants)
    try:
        seen = await talk(server, typed, answer=plants.letters(20))
        seen += await talk(server, "fail")
        shown = await pages(server)
        running = {f"{name} while it runs": data for name, data in files_of(tmp_path).items()}
        await server.kill()
        again = await serve(ledger, log, plants)
        try:
            seen += await talk(again, "fail")
            shown += await pages(again)
            exported = await exports(again)
            assert await again.stop(10) == 0
        finally:
            await again.aclose()
    finally:
        await server.aclose()
    files = files_of(tmp_path)
    assert {"case.json", "review.md", "pack: facts.jsonl", "pack: timeline.jsonl"} <= set(exported)
    everywhere = {
        **running,
        **files,
        **exported,
        "pages": shown.encode(),
        "frames": json.dumps(seen).encode(),
    }
    assert not leaked(plants, everywhere)
    text = "".join(m["payload"]["delta"] for m in seen if m["type"] == "delta")
    assert f"typed: {len(typed)} characters. " in text, "the agent gets what was typed"
    assert "answered: 20 characters. " in text, "the agent gets what was answered"
    assert b"RuntimeError: ghp_[redacted] and sk-proj-[redacted]" in files["log.txt"]


async def test_facts_tell_what_was_taken_out_and_rebuild_the_screen(tmp_path: Path) -> None:
    ledger, plants = tmp_path / "ledger.db", Plants(seed=8)
    server = await serve(ledger, tmp_path / "log.txt", plants)
    try:
        await talk(server, "go", answer=plants.letters(20))
        before = await pages(server)
        assert await server.stop(10) == 0
        again = await serve(ledger, tmp_path / "log.txt", plants)
        try:
            assert await pages(again) == before
        finally:
            await again.aclose()
    finally:
        await server.aclose()
    facts = await read_facts(ledger)
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    told = [fact for fact in facts if fact.type == "output.redacted"]
    rules = {one["rule"] for fact in told for one in fact.payload["findings"]}
    assert rules >= {
        *("api-key", "authorization", "aws-key-id", "github-token", "known-secret"),
        *("private-key", "secret-field", "url-credentials"),
    }
    for fact in told:
        assert "[redact" in str(facts[fact.sequence - 2].payload), "it is about the fact before"


async def test_without_redaction_the_secrets_are_kept(tmp_path: Path) -> None:
    """So the tests above do find what there is to find."""
    ledger, plants = tmp_path / "ledger.db", Plants(seed=9)
    server = await serve(ledger, tmp_path / "log.txt", plants, "--no-redact")
    try:
        await talk(server, " and ".join(plants.leaks["typed"]), answer="x")
        assert await server.stop(10) == 0
    finally:
        await server.aclose()
    facts = await read_facts(ledger)
    assert "output.redacted" not in {fact.type for fact in facts}
    found = leaked(plants, {"ledger": ledger.read_bytes()})
    assert len(found) > 50
