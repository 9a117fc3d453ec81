"""A process: what it was given, what it wrote, how it ended."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.protocol.errors import SurfaceDestroyed
from arp.protocol.messages import Input
from arp.redact.redactor import MARK
from arp.session.input.receive import submit
from arp.session.turn_end import end_turn
from tests.record.rig import Recording
from tests.redact.test_redactor import ORDINARY, SECRETS

P = {"process_id": "process-1"}


async def test_a_process_is_recorded_from_its_start_to_its_end() -> None:
    recording = Recording()
    process = recording.record.process(["ls", "-l"], cwd="src", pid=7)
    process.input("yes\n")
    process.input(b"hunter2", secret=True)
    await process.output("a.py\n")
    await process.output(b"warning", "stderr")
    process.completed(0, 12.5)
    assert recording.told() == [
        ("process.started", {"command": ["ls", "-l"], "cwd": "src", "pid": 7}, P),
        ("process.input", {"bytes": 4, "preview": "yes\n"}, P),
        ("process.input", {"bytes": 7}, P),
        ("process.output", {"stream": "stdout", "preview": "a.py\n", "bytes": 5}, P),
        ("process.output", {"stream": "stderr", "preview": "warning", "bytes": 7}, P),
        ("process.completed", {"exitCode": 0, "durationMs": 12.5}, P),
    ]


async def test_ten_mebibytes_leave_a_preview_and_a_ref() -> None:
    recording = Recording()
    data = b"x" * (10 << 20)
    ref = sha256(data).hexdigest()
    kept = await recording.record.process("cat big").output(data)
    assert kept.output_ref == ref
    spilled = {"bytes": 10_485_760, "sha256": ref, "preview": "x" * 2_000}
    output = {"stream": "stdout", "preview": "x" * 2_000, "bytes": 10_485_760}
    assert recording.told()[1:] == [
        ("output.spilled", spilled, {**P, "output_ref": ref}),
        ("process.output", output, {**P, "output_ref": ref}),
    ]
    assert recording.kept[ref] == data


def test_a_process_may_fail_or_be_ended_from_outside() -> None:
    recording = Recording()
    process = recording.record.process("sleep 9")
    process.failed("no such program", exit_code=127, duration_ms=1.0)
    process.terminated("SIGTERM", "cancelled", 2.0)
    assert recording.told()[1:] == [
        ("process.failed", {"reason": "no such program", "exitCode": 127, "durationMs": 1.0}, P),
        ("process.terminated", {"signal": "SIGTERM", "reason": "cancelled", "durationMs": 2.0}, P),
    ]


def outputs(recording: Recording, stream: str = "stdout") -> str:
    """What the ledger has of a stream, joined."""
    return "".join(
        payload["preview"]
        for name, payload, _ in recording.told()
        if name == "process.output" and payload["stream"] == stream
    )


@pytest.mark.parametrize(("whole", "cleaned", "rule"), SECRETS)
async def test_secret_in_two_pieces_of_an_output_is_taken_out_wherever_it_is_cut(
    whole: str, cleaned: str, rule: str
) -> None:
    for place in range(len(whole) + 1):
        recording = Recording()
        process = recording.record.process("x")
        await process.output(whole[:place])
        await process.output("other ", "stderr")
        await process.output(whole[place:].encode())
        process.completed(0)
        told = recording.told()
        findings = [payload["findings"] for name, payload, _ in told if name == "output.redacted"]
        assert findings == [[{"rule": rule, "count": 1}]]
        read = [
            payload["preview"]
            for name, payload, _ in told
            if name == "process.output" and payload["stream"] == "stdout"
        ]
        assert "".join(read) == cleaned, place


@pytest.mark.parametrize("content", ORDINARY)
async def test_ordinary_output_in_pieces_stays_as_it_is(content: str) -> None:
    recording = Recording()
    process = recording.record.process("x")
    for start in range(0, len(content), 3):
        await process.output(content[start : start + 3])
    process.terminated("SIGTERM")
    assert outputs(recording) == content


async def test_what_is_held_of_an_output_is_recorded_when_its_turn_ends() -> None:
    """Also if nobody says that the process ended; and of a process that failed."""
    recording = Recording()
    session = recording.session
    submit(session, Input(input_type="text", data={"text": "hi"}))
    process = recording.record.process("x")
    kept = await process.output("token: abc")
    assert (kept.preview, kept.bytes) == ("token: ", 7)
    kept = await process.output("def")
    assert (kept.preview, kept.bytes, kept.output_ref) == ("", 0, None)
    failed = recording.record.process("y")
    await failed.output("password=hunt")
    failed.failed("it broke")
    end_turn(session, "t1", "completed")
    told = [payload for name, payload, _ in recording.told() if name == "process.output"]
    assert [one["preview"] for one in told] == ["token: ", "password=", "hunt", "abcdef"]
    assert [one["bytes"] for one in told] == [7, 9, 4, 6]


async def test_turn_ends_although_nothing_more_may_be_recorded() -> None:
    recording = Recording()
    submit(recording.session, Input(input_type="text", data={"text": "hi"}))
    process = recording.record.process("x")
    await process.output("token: abc")
    recording.over = SurfaceDestroyed("turn t1 is over")
    end_turn(recording.session, "t1", "completed")
    assert recording.session.running is None


async def test_large_piece_is_looked_through_beside_the_loop_and_what_it_holds_goes_on() -> None:
    recording = Recording()
    process = recording.record.process("x")
    begin = "word " * 20_000 + "token: abc"
    await process.output(begin)
    await process.output("def123 end")
    process.completed(0)
    (data,) = recording.kept.values()
    assert data.decode() == begin[:-3]
    assert outputs(recording).endswith(f"{MARK} end")


async def test_bytes_that_are_no_text_let_go_of_what_is_held() -> None:
    recording = Recording()
    process = recording.record.process("x")
    await process.output("token: abc")
    await process.output(b"\0\1\2")
    process.completed(0)
    assert outputs(recording) == "token: abc\0\1\2"


async def test_output_that_is_cancelled_keeps_what_was_held_before() -> None:
    recording = Recording()
    process = recording.record.process("x")
    await process.output("token: abc")
    writing = asyncio.ensure_future(process.output("word " * 20_000))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.wait([writing])
    await process.output("def123 end")
    assert outputs(recording) == f"token: {MARK} end"


async def test_long_text_that_was_held_is_recorded_in_previews() -> None:
    """A token that never ends is looked at for 2,048 characters, a preview has 2,000."""
    recording = Recording()
    process = recording.record.process("x")
    token = "eyJ" + "a" * 2_040
    await process.output(token)
    process.completed(0)
    told = [payload for name, payload, _ in recording.told() if name == "process.output"]
    assert "".join(one["preview"] for one in told) == token
    assert sum(one["bytes"] for one in told) == len(token)
    assert max(len(one["preview"]) for one in told) == 2_000


async def test_stream_that_there_is_none_of_is_refused_and_nothing_is_held_for_it() -> None:
    recording = Recording()
    process = recording.record.process("x")
    with pytest.raises(ProfileViolation):
        await process.output("token: abc", "nowhere")  # type: ignore[arg-type]  # an author may
    process.completed(0)
    assert outputs(recording) == ""
