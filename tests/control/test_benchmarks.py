"""Benchmark trials over the control plane: begun, scored, exported, compared (evidence.md 6)."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.pack import Pack
from arp.audit.evidence.trials import decode_trial
from arp.cli import main
from arp.control.benchmarks import (
    CompareTrials,
    ExportTrial,
    RecordReward,
    StartTrial,
    TrialName,
)
from arp.control.control import Control
from arp.control.turns import TurnInput
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.turn.turn import Turn
from tests.control.control_rig import Client, controlled, facts, gate, talker
from tests.support.waiting import becomes

REFS = BenchmarkRefs(
    harbor_job="jobs/7",
    harbor_trial="jobs/7/a",
    task_toml="count/task.toml",
    reward="jobs/7/a/reward.json",
    reward_details="jobs/7/a/details.json",
    artifact_manifest="jobs/7/a/manifest.json",
    qc_report="jobs/7/a/qc.json",
)


async def counting(turn: Turn) -> None:
    """Asks a model, counts with a tool, and says what came of it."""
    request = turn.record.model("example-large")
    async with turn.tool("shell", {"command": "ls"}) as tool:
        tool.result("3 files")
    request.cost(input_tokens=800, output_tokens=64, amount=0.5, currency="USD")
    request.completed()
    await turn.say("3")


def started(trial_id: str, **more: Any) -> StartTrial:
    role = more.pop("role", "candidate")
    configuration_id = "c-2" if role == "candidate" else "c-1"
    changed = "model" if role == "candidate" else None
    asked: dict[str, Any] = {
        "session_id": "s",
        "trial_id": trial_id,
        "benchmark": Benchmark(
            "terminal", "1.0", configuration_id, role=role, changed_variable=changed
        ),
        "task_id": "count",
        "input": TurnInput(text="How many?"),
        "refs": REFS,
    }
    return StartTrial(**{**asked, **more})


async def over(control: Control, session_id: str = "s") -> None:
    live = await control.context.live(session_id)
    await becomes(lambda: live.session.running is None)
    await live.written()


async def benchmark_facts(control: Control) -> list[dict[str, Any]]:
    told = [json.loads(body) for _, body in await facts(control)]
    return [fact for fact in told if fact["type"].startswith("benchmark.")]


async def test_a_trial_is_a_turn_with_the_ids_of_its_benchmark() -> None:
    async with controlled(counting) as control:
        asked = started("a", configuration={"model": "example-large"}, attempt=1, turn_id="work")
        state = await control.benchmarks.start(asked)
        assert (state.trial.status, state.trial.turn_id) == ("running", "work")
        assert state.trial.run_id == "count.a"
        await over(control)
        dataset, configuration, begun = await benchmark_facts(control)
        assert dataset["payload"] == {"tasks": ["count"]}
        assert configuration["payload"] == {"configuration": {"model": "example-large"}}
        assert begun["type"] == "benchmark.trial.started"
        assert begun["payload"] == {"attempt": 1}
        assert (begun["turnId"], begun["taskId"], begun["runId"]) == ("work", "count", "count.a")
        assert begun["benchmark"] == {
            "datasetId": "terminal",
            "datasetVersion": "1.0",
            "configurationId": "c-2",
            "trialId": "a",
            "role": "candidate",
            "singleChangedVariable": "model",
        }
        assert begun["refs"]["harborJobRef"] == "jobs/7"
        submitted = json.loads((await facts(control))[1][1])
        assert (submitted["taskId"], submitted["runId"]) == ("count", "count.a")


async def test_an_exported_trial_names_its_trajectory_and_all_that_the_profile_has() -> None:
    """In the summary of benchmarks as in the pack."""
    harbor = {"harbor_trial_result": "jobs/7/a/result.json", "harbor_verifier_stdout": "jobs/7/out"}
    refs = msgspec.structs.replace(REFS, **harbor)
    asked = started("a", refs=refs)
    benchmark = msgspec.structs.replace(asked.benchmark, dataset_ref="sets/terminal")
    async with controlled(counting) as control:
        await control.benchmarks.start(msgspec.structs.replace(asked, benchmark=benchmark))
        await over(control)
        scored = RecordReward(
            session_id="s", trial_id="a", reward=1.0, criteria=("counted", "no-writes")
        )
        await control.benchmarks.reward(scored)
        made = await control.benchmarks.export(ExportTrial(session_id="s", trial_id="a"))
        assert made.file is not None
        summary = (await control.context.model("s")).snapshot()["benchmarkSummary"]
        pack = await control.context.hub.blobs.of("s").read(made.file.sha256)
    with zipfile.ZipFile(io.BytesIO(pack)) as parts:
        trial = json.loads(parts.read("trial.json"))
    (told,) = summary["trials"]
    assert told["refs"]["trajectoryRef"] == f"{made.file.path}#trajectory.json"
    assert told["refs"]["runtimeTranscriptRef"] == f"{made.file.path}#facts.jsonl"
    assert told["refs"]["harborTrialResultRef"] == "jobs/7/a/result.json"
    assert (told["criteria"], told["datasetRef"]) == (["counted", "no-writes"], "sets/terminal")
    assert trial["benchmark"]["datasetRef"] == "sets/terminal"
    assert trial["refs"]["harborTrialResultRef"] == "jobs/7/a/result.json"
    assert trial["refs"]["harborVerifierStdoutRef"] == "jobs/7/out"
    assert trial["reward"]["criteria"] == ["counted", "no-writes"]
    assert trial["trajectory"]["requiredFieldStatus"] == {
        "schema_version": True,
        "session_id": True,
        "agent": True,
        "steps[].step_id": True,
        "steps[].tool_calls": True,
        "steps[].observation": True,
        "final_metrics": True,
    }


async def test_the_same_trial_twice_is_one_turn() -> None:
    async with controlled(counting) as control:
        await control.benchmarks.start(started("a"))
        again = await control.benchmarks.start(started("a"))
        assert again.repeated
        await over(control)
        live = await control.context.live("s")
        assert list(live.session.screen.turns) == ["t1"]


async def test_a_trial_that_contradicts_itself_is_refused() -> None:
    async with controlled(counting) as control:
        other = Benchmark("terminal", "1.0", trial_id="b")
        with pytest.raises(InvalidMessage, match=r"benchmark\.trialId: 'b' is not trialId"):
            await control.benchmarks.start(started("a", benchmark=other))
        await control.benchmarks.start(started("a", turn_id="work"))
        with pytest.raises(InvalidMessage, match="turnId work: another turn has it"):
            await control.benchmarks.start(started("b", turn_id="work"))


async def test_a_reward_notes_the_end_first_and_is_given_once() -> None:
    async with controlled(counting) as control:
        await control.benchmarks.start(started("a"))
        await over(control)
        asked = RecordReward(session_id="s", trial_id="a", reward=0.75, p0_regressions=1)
        state = await control.benchmarks.reward(asked)
        assert (state.trial.status, state.trial.reward) == ("completed", 0.75)
        assert state.trial.p0_regressions == 1
        types = [fact["type"] for fact in await benchmark_facts(control)]
        assert types[-2:] == ["benchmark.trial.completed", "benchmark.reward.recorded"]
        assert (await control.benchmarks.reward(asked)).repeated
        with pytest.raises(InvalidMessage, match=r"already has the reward 0\.75"):
            await control.benchmarks.reward(RecordReward(session_id="s", trial_id="a", reward=1))


async def test_a_trial_that_runs_gets_no_reward() -> None:
    async with controlled(talker) as control:
        await control.benchmarks.start(started("a", input=TurnInput(text="wait")))
        with pytest.raises(SessionBusy, match="trial a: turn t1 still runs"):
            await control.benchmarks.reward(RecordReward(session_id="s", trial_id="a", reward=1))
        gate(control.context.hub).set()


@pytest.mark.parametrize(("failure", "reason"), [("timeout", "timeout"), (None, "failed")])
async def test_a_trial_fails_as_it_was_told_or_as_its_turn_did(
    failure: str | None, reason: str
) -> None:
    async with controlled(talker) as control:
        await control.benchmarks.start(started("a", input=TurnInput(text="fail")))
        await over(control)
        asked = RecordReward(session_id="s", trial_id="a", reward=0, failure=failure)
        state = await control.benchmarks.reward(asked)
        assert (state.trial.status, state.trial.reason) == ("failed", reason)


async def test_a_trial_that_nobody_began_is_unknown() -> None:
    async with controlled(counting) as control:
        await (await control.context.open("s", None)).written()
        with pytest.raises(UnknownObject, match="no trial 'a' in this session"):
            await control.benchmarks.reward(RecordReward(session_id="s", trial_id="a", reward=1))
        with pytest.raises(UnknownObject, match="no trial 'a' in this session"):
            await control.benchmarks.export(ExportTrial(session_id="s", trial_id="a"))


async def test_the_pack_of_a_trial_has_its_trajectory_and_its_facts(tmp_path: Path) -> None:
    async with controlled(counting) as control:
        await control.benchmarks.start(started("a", refs=REFS))
        await over(control)
        detail = {"passed": 4, "of": 4}
        await control.benchmarks.reward(
            RecordReward(session_id="s", trial_id="a", reward=1, detail=detail)
        )
        made = await control.benchmarks.export(ExportTrial(session_id="s", trial_id="a"))
        assert (made.kind, made.state) == ("benchmark", "exported")
        assert made.file is not None
        path = tmp_path / "pack.zip"
        path.write_bytes(await control.context.hub.blobs.of("s").read(made.file.sha256))
        with Pack(path) as pack:
            assert check_pack(pack).broken == []
            assert pack.manifest.kind == "benchmark"
            trial = json.loads(pack.read("trial.json"))
            trajectory = json.loads(pack.read("trajectory.json"))
        assert decode_trial((json.dumps(trial)).encode()).refs == trial["refs"]
        shown = CliRunner().invoke(main, ["evidence", "show", str(path)])
        assert shown.exit_code == 0, shown.output
        for line in (
            "trial a, completed",
            "benchmark  datasetId: terminal",
            "reward     value: 1",
            "decision   promotionEligible: False",
            "refs       agentQcReportRef: jobs/7/a/qc.json",
        ):
            assert line in shown.output
        printed = CliRunner().invoke(main, ["evidence", "show", str(path), "--part", "trial.json"])
        assert json.loads(printed.output) == trial
        checked = CliRunner().invoke(main, ["evidence", "verify", str(path)])
        assert (checked.exit_code, "good" in checked.output) == (0, True)
        assert trial["benchmark"]["datasetId"] == "terminal"
        assert trial["reward"] == {
            "value": 1,
            "ref": "jobs/7/a/reward.json",
            "detailsRef": "jobs/7/a/details.json",
            "detail": detail,
            "criteria": [],
            "failureCategory": "none",
        }
        assert trial["refs"]["trajectoryRef"] == "trajectory.json"
        assert trial["benchmark"]["harborTrialRef"] == "jobs/7/a"
        assert trial["missing"] == []
        assert trial["runtimeCorrelation"]["runId"] == "count.a"
        assert [step["source"] for step in trajectory["steps"]] == ["user", "agent"]
        assert trajectory["final_metrics"]["total_cost_usd"] == 0.5
        noted = json.loads((await facts(control))[-1][1])
        assert noted["benchmark"]["trialId"] == "a"
        assert noted["payload"]["kind"] == "benchmark"
        again = await control.benchmarks.reward(
            RecordReward(session_id="s", trial_id="a", reward=1)
        )
        assert again.trial.refs["trajectoryRef"] == f"{made.file.path}#trajectory.json"
        assert again.trial.missing == []


async def test_a_trial_that_runs_is_exported_as_far_as_it_is(tmp_path: Path) -> None:
    async with controlled(talker) as control:
        await control.benchmarks.start(started("a", input=TurnInput(text="wait")))
        made = await control.benchmarks.export(ExportTrial(session_id="s", trial_id="a"))
        assert made.gaps == ["facts.jsonl: turns had not ended when this was exported"]
        assert made.file is not None
        path = tmp_path / "pack.zip"
        path.write_bytes(await control.context.hub.blobs.of("s").read(made.file.sha256))
        with Pack(path) as pack:
            trial = json.loads(pack.read("trial.json"))
        assert (trial["status"], trial["missing"]) == ("running", ["end", "reward"])
        gate(control.context.hub).set()


async def test_a_comparison_over_sessions_is_noted_with_what_came_of_it() -> None:
    async with controlled(counting) as control:
        for session_id, role, reward in (("old", "baseline", 0.5), ("new", "candidate", 1.0)):
            asked = started("a", session_id=session_id, role=role)
            await control.benchmarks.start(asked)
            await over(control, session_id)
            rewarded = RecordReward(session_id=session_id, trial_id="a", reward=reward)
            await control.benchmarks.reward(rewarded)
            await control.benchmarks.export(ExportTrial(session_id=session_id, trial_id="a"))
        await (await control.context.open("s", None)).written()
        hub = control.context.hub
        hub.lifetimes.evict(float("inf"))
        state = await control.benchmarks.compare(
            CompareTrials(
                session_id="s",
                baseline=(TrialName("old", "a"),),
                candidate=(TrialName("new", "a"),),
            )
        )
        assert list(hub.sessions) == ["s"], "the trials are only read"
        assert state.comparison.mean_reward_delta == 0.5
        assert state.comparison.decision == "promote"
        (fact,) = await benchmark_facts(control)
        assert fact["type"] == "benchmark.comparison.completed"
        assert fact["comparison"] == {
            "baseline": "c-1",
            "candidate": "c-2",
            "meanRewardDelta": 0.5,
            "timeoutRateDelta": 0,
            "evidenceCompletenessRate": 1.0,
            "p0QcGateRegressionCount": 0,
            "decision": "promote",
        }
        assert fact["refs"] == {"harborJobRef": "jobs/7"}
        assert fact["benchmark"]["singleChangedVariable"] == "model"
        with pytest.raises(UnknownObject, match="no trial 'b'"):
            await control.benchmarks.compare(
                CompareTrials(
                    session_id="s",
                    baseline=(TrialName("old", "b"),),
                    candidate=(TrialName("new", "a"),),
                )
            )


async def test_the_methods_are_the_same_over_json_rpc() -> None:
    async with controlled(counting) as control:
        client = Client(control)
        begun = await client.result(
            "benchmark/trial/start",
            sessionId="s",
            trialId="a",
            taskId="count",
            benchmark={"datasetId": "terminal", "datasetVersion": "1.0"},
            input={"text": "How many?"},
        )
        assert begun["trial"]["refs"] == {"harborJobRef": "unavailable"}
        await over(control)
        rewarded = await client.result(
            "benchmark/reward/record", sessionId="s", trialId="a", reward=1
        )
        assert rewarded["trial"]["status"] == "completed"
        refused = await client.answer("benchmark/compare", sessionId="s", baseline=[], candidate=[])
        assert refused["error"]["code"] == -32602


async def test_a_name_of_before_is_refused_with_the_name_of_now() -> None:
    async with controlled(counting) as control:
        refused = await Client(control).answer(
            "benchmark/trial/start",
            sessionId="s",
            trialId="a",
            taskId="count",
            benchmark={"datasetId": "d", "datasetVersion": "1", "changedVariable": "model"},
            input={"text": "How many?"},
        )
        assert refused["error"]["code"] == -32602
        assert "benchmark.changedVariable: it is now called singleChangedVariable" in str(refused)
