"""Exports over the control plane: made, checked, kept, noted (evidence.md 2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from arp.access.principal import Principal
from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.pack import Pack
from arp.audit.evidence.replay_case import decode_case
from arp.control.context import Plane
from arp.control.control import Control
from arp.control.exports import ExportEvidence, ExportReplay, ExportReview
from arp.control.method import SessionParams
from arp.control.tasks import CompleteTask, CreateTask, RetryTask, UpdateTask
from arp.control.turns import StartTurn, TurnInput
from arp.protocol.errors import InvalidMessage, SessionNotFound
from arp.store.blobs import MemoryFiles
from arp.store.memory import MemoryStore
from arp.turn.turn import Turn
from arp.ui import text
from tests.control.control_rig import Client, controlled, facts, said
from tests.support.waiting import becomes

LARGE = "a long line of output\n" * 20_000


class InThreads(MemoryFiles):
    """Files that are read in a thread, as those on a disk are."""

    async def read(self, blob_id: str) -> bytes:
        await asyncio.to_thread(str)
        return await super().read(blob_id)


async def busy(turn: Turn) -> None:
    """Uses a tool with a large result, and says a word."""
    if turn.text == "file":
        await turn.save_file("a.txt", b"abc")
    async with turn.tool("shell", {"command": "cat"}) as tool:
        tool.result("short")
    await turn.record.keep(LARGE)
    await turn.say("done")


async def one_turn(control: Control, text: str = "go") -> None:
    await said(control, text)
    live = await control.context.live("s")
    await becomes(lambda: live.session.running is None)
    await live.written()


async def pack_of(control: Control, sha256: str, tmp_path: Path) -> Pack:
    path = tmp_path / f"{sha256}.zip"
    path.write_bytes(await control.context.hub.blobs.of("s").read(sha256))
    return Pack(path)


async def noted(control: Control) -> list[dict[str, Any]]:
    told = [json.loads(body) for _, body in await facts(control)]
    return [fact for fact in told if fact["type"] == "evidence.changed"]


async def test_a_pack_is_kept_checked_and_noted_under_its_id(tmp_path: Path) -> None:
    async with controlled(busy) as control:
        await one_turn(control)
        made = await control.exports.evidence(ExportEvidence(session_id="s", evidence_id="e-1"))
        assert (made.state, made.kind, made.repeated) == ("exported", "evidence", False)
        assert made.verification is not None
        assert made.verification.outcome == "passed"
        assert made.file is not None
        assert made.manifest is not None
        with await pack_of(control, made.file.sha256, tmp_path) as pack:
            report = check_pack(pack)
            assert (report.broken, report.manifest_sha256) == ([], made.sha256)
            assert report.facts == made.through_sequence
            (output,) = pack.manifest.outputs
            assert output.part is not None
            assert pack.read(output.part) == LARGE.encode()
        (fact,) = await noted(control)
        assert fact["sequence"] == made.sequence == report.facts + 1
        assert fact["evidenceId"] == "e-1"
        assert fact["threadId"] == "main"
        assert fact["outputRef"] == made.file.sha256
        assert fact["refs"]["path"] == made.file.path
        assert fact["payload"] == {
            "kind": "evidence",
            "state": "exported",
            "sha256": made.sha256,
            "throughSequence": report.facts,
            "verification": {"outcome": "passed"},
        }


async def test_the_same_id_again_changes_nothing(tmp_path: Path) -> None:
    async with controlled(busy) as control:
        await one_turn(control)
        asked = ExportEvidence(session_id="s", evidence_id="e-1")
        several = await asyncio.gather(*(control.exports.evidence(asked) for _ in range(3)))
        assert sorted(one.repeated for one in several) == [False, True, True]
        assert len({one.sha256 for one in several}) == 1
        assert len({str(one.file) for one in several}) == 1
        assert len(await noted(control)) == 1


async def test_more_exports_than_there_are_threads_are_all_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each reads a large output out of a thread, which needs another thread."""
    async with controlled(busy) as control:
        await one_turn(control)
        names = [f"s{number}" for number in range(40)]
        for name in names:
            given = StartTurn(session_id=name, input=TurnInput(text="go"))
            await control.turns.start(given)
            live = await control.context.live(name)
            await becomes(lambda live=live: live.session.running is None)  # type: ignore[misc]
        monkeypatch.setattr("arp.store.blobs.MemoryFiles", InThreads)
        several = await asyncio.gather(
            *(control.exports.evidence(ExportEvidence(session_id=name)) for name in names)
        )
        assert {one.state for one in several} == {"exported"}
        assert {one.manifest.outputs[0].state for one in several if one.manifest} == {"exported"}


async def test_a_pack_of_one_turn_carries_its_ids() -> None:
    async with controlled(busy) as control:
        await one_turn(control)
        await one_turn(control)
        made = await control.exports.evidence(ExportEvidence(session_id="s", turn_id="t2"))
        (fact,) = await noted(control)
        assert (fact["threadId"], fact["turnId"]) == ("main", "t2")
        assert made.runtime_correlation["turnId"] == "t2"
        assert made.manifest is not None
        assert made.manifest.chain.first > 2


async def test_a_turn_that_nobody_knows_is_a_missing_correlation() -> None:
    async with controlled(busy) as control:
        await one_turn(control)
        made = await control.exports.evidence(ExportEvidence(session_id="s", turn_id="t9"))
        assert (made.state, made.file) == ("missing_correlation", None)
        (fact,) = await noted(control)
        assert fact["payload"]["state"] == "missing_correlation"
        assert fact["payload"]["reason"] == (
            "the session has no fact of turnId t9; see its ids: arp events"
        )
        assert "turnId" not in fact


async def test_a_case_of_a_session_without_turns_is_not_applicable() -> None:
    async with controlled() as control:
        await (await control.context.open("s", None)).written()
        made = await control.exports.replay(ExportReplay(session_id="s"))
        assert (made.kind, made.state) == ("replay", "not_applicable")
        assert made.reason == "session s has no turn to be run again"


async def test_a_case_whose_input_names_a_file_is_unsupported() -> None:
    async with controlled(busy) as control:
        await one_turn(control, "file")
        live = await control.context.live("s")
        (sha256,) = live.session.input_log.files
        client = Client(control)
        ref = {"id": sha256, "name": "a.txt", "size": 3, "mime": "text/plain", "sha256": sha256}
        given = {"input_type": "text", "data": {"text": "read it", "files": [ref]}}
        await client.result("agentSession/turn/start", sessionId="s", input=given)
        await becomes(lambda: live.session.running is None)
        made = await control.exports.replay(ExportReplay(session_id="s"))
        assert (made.state, made.document) == ("unsupported", None)
        assert made.reason == "the input of turn t2 names files, which are in no case"
        first = await control.exports.replay(ExportReplay(session_id="s", turn_id="t1"))
        assert first.state == "exported"


async def test_a_case_and_a_review_stand_in_the_answer_and_beside_the_ledger() -> None:
    async with controlled(busy) as control:
        await one_turn(control)
        case = await control.exports.replay(ExportReplay(session_id="s"))
        review = await control.exports.review(ExportReview(session_id="s"))
        for made in (case, review):
            assert made.document is not None
            assert made.file is not None
            kept = await control.context.hub.blobs.of("s").read(made.file.sha256)
            assert kept == made.document.encode()
            assert made.sha256 == made.file.sha256
        assert case.document is not None
        (turn,) = decode_case(case.document.encode()).turns
        assert turn.input["data"] == {"text": "go"}
        assert review.document is not None
        assert review.document.startswith("# Review of session `s`\n")
        assert [fact["payload"]["kind"] for fact in await noted(control)] == ["replay", "review"]


async def test_an_export_is_no_output_of_the_next_one(tmp_path: Path) -> None:
    async with controlled() as control:
        await one_turn(control)
        await control.exports.evidence(ExportEvidence(session_id="s"))
        made = await control.exports.evidence(ExportEvidence(session_id="s"))
        assert made.manifest is not None
        assert made.manifest.outputs == []
        assert made.gaps == []
        assert made.manifest.sections["verification.json"] == "exported"


async def test_nobody_exports_the_session_of_another() -> None:
    async with controlled() as control:
        await one_turn(control)
        ada = Control(Plane(control.context.hub, ["agent"]), Principal("ada"))
        for asked in (ExportEvidence(session_id="s"), ExportEvidence(session_id="none")):
            with pytest.raises(SessionNotFound):
                await ada.exports.evidence(asked)
        assert await noted(control) == []


async def test_an_id_that_is_something_else_is_refused() -> None:
    async with controlled() as control:
        await one_turn(control)
        live = await control.context.live("s")
        payload = {"kind": "evidence", "state": "exported"}
        recorder = control.context.hub.recorder(live).within(refs={"pack": "elsewhere"})
        recorder("evidence.changed", payload, evidence_id="e-1")
        await live.written()
        with pytest.raises(InvalidMessage, match="something else has that id"):
            await control.exports.evidence(ExportEvidence(session_id="s", evidence_id="e-1"))


async def test_methods_are_the_same_over_json_rpc() -> None:
    async with controlled(busy) as control:
        await one_turn(control)
        client = Client(control)
        made = await client.result("evidence/export", sessionId="s", evidenceId="e-1")
        assert (made["state"], made["evidenceId"]) == ("exported", "e-1")
        assert made["manifest"]["runtimeCorrelation"]["sessionId"] == "s"
        assert made["file"]["name"] == "evidence.zip"
        refused = await client.answer("evidence/export", sessionId="s", nobody="knows")
        assert refused["error"]["code"] == -32602


async def worker(turn: Turn) -> None:
    """Does one thing of each kind that a pack has a section for."""
    async with turn.tool("count", {"of": "rows"}) as tool:
        tool.result(3)
    process = turn.record.process("wc -l")
    process.completed(0)
    turn.record.permission("count").denied("rule", "no-counting")
    request = turn.record.model("a-model")
    request.cost(input_tokens=10, output_tokens=20, amount=0.5, currency="EUR")
    turn.show(text("3 rows", id="rows"))
    await turn.say(f"done {turn.text}")


WORK = ("tool_calls.json", "processes.json", "permissions.json", "artifacts.json", "cost.json")


@pytest.mark.parametrize("way", ["turn/start", "task/retry"])
async def test_the_evidence_of_a_task_has_what_the_turns_of_its_attempts_did(
    way: str, tmp_path: Path
) -> None:
    async with controlled(worker) as control:
        live = await control.context.open("s", None)
        await control.tasks.create(CreateTask(session_id="s", objective="Count", task_id="k"))
        await said(control, "before")
        await becomes(lambda: live.session.running is None)
        if way == "turn/start":
            await said(control, "it", task_id="k", run_id="k.first")
        else:
            failed = UpdateTask(session_id="s", task_id="k", status="failed", reason="no luck")
            await control.tasks.update(failed)
            asked = RetryTask(
                session_id="s", task_id="k", run_id="k.first", input=TurnInput(text="it")
            )
            await control.tasks.retry(asked)
        await becomes(lambda: live.session.running is None)
        await said(control, "behind")
        await becomes(lambda: live.session.running is None)
        await control.tasks.complete(CompleteTask(session_id="s", task_id="k"))
        made = await control.exports.evidence(ExportEvidence(session_id="s", task_id="k"))
        assert (made.state, made.gaps) == ("exported", [])
        assert made.manifest is not None
        assert [made.manifest.sections[part] for part in WORK] == ["exported"] * 5
        correlation = made.runtime_correlation
        assert (correlation["taskId"], correlation["runId"]) == ("k", "k.first")
        assert correlation["turnId"] == "t2"
        assert made.file is not None
        with await pack_of(control, made.file.sha256, tmp_path) as pack:
            assert check_pack(pack).broken == []
            for part in WORK:
                (item,) = json.loads(pack.read(part))["items"]
                assert {fact["turnId"] for fact in item["facts"]} == {"t2"}
            assert json.loads(pack.read("cost.json"))["totals"]["amounts"] == {"EUR": 0.5}
        review = await control.exports.review(ExportReview(session_id="s", task_id="k"))
        assert review.document is not None
        assert "done it" in review.document
        assert "before" not in review.document


class Forged(MemoryStore):
    """Keeps a hash of the second fact that is not that of the fact that is there."""

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """As `Store.heads`."""
        return [(2, b"another hash")]


async def test_a_session_whose_facts_are_not_those_of_the_kept_hashes_is_not_exported() -> None:
    async with controlled(busy, store=Forged()) as control:
        await one_turn(control)
        made = [
            await control.exports.evidence(ExportEvidence(session_id="s")),
            await control.exports.evidence(ExportEvidence(session_id="s", turn_id="t1")),
            await control.exports.replay(ExportReplay(session_id="s")),
            await control.exports.review(ExportReview(session_id="s")),
        ]
        for one in made:
            assert (one.state, one.file) == ("unsupported", None)
            assert one.reason is not None
            assert one.reason.startswith("one of the facts 1 to 2 is not what it was when its")
        told = await noted(control)
        assert [fact["payload"]["state"] for fact in told] == ["unsupported"] * 4
        found = await control.sessions.verify(SessionParams(session_id="s"))
        assert found.broken is not None
        assert found.broken.sequence == 1
