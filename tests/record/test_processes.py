"""A process: what it was given, what it wrote, how it ended."""

from __future__ import annotations

from hashlib import sha256

from tests.record.rig import Notes

P = {"process_id": "process-1"}


async def test_a_process_is_noted_from_its_start_to_its_end() -> None:
    notes = Notes()
    process = notes.runtime.process(["ls", "-l"], cwd="src", pid=7)
    process.input("yes\n")
    process.input(b"hunter2", secret=True)
    await process.output("a.py\n")
    await process.output(b"warning", "stderr")
    process.completed(0, 12.5)
    assert notes.told() == [
        ("process.started", {"command": ["ls", "-l"], "cwd": "src", "pid": 7}, P),
        ("process.input", {"bytes": 4, "preview": "yes\n"}, P),
        ("process.input", {"bytes": 7}, P),
        ("process.output", {"stream": "stdout", "preview": "a.py\n", "bytes": 5}, P),
        ("process.output", {"stream": "stderr", "preview": "warning", "bytes": 7}, P),
        ("process.completed", {"exitCode": 0, "durationMs": 12.5}, P),
    ]


async def test_ten_mebibytes_leave_a_preview_and_a_ref() -> None:
    notes = Notes()
    data = b"x" * (10 << 20)
    ref = sha256(data).hexdigest()
    kept = await notes.runtime.process("cat big").output(data)
    assert kept.output_ref == ref
    spilled = {"bytes": 10_485_760, "sha256": ref, "preview": "x" * 2_000}
    output = {"stream": "stdout", "preview": "x" * 2_000, "bytes": 10_485_760}
    assert notes.told()[1:] == [
        ("output.spilled", spilled, {**P, "output_ref": ref}),
        ("process.output", output, {**P, "output_ref": ref}),
    ]
    assert notes.kept[ref] == data


def test_a_process_may_fail_or_be_ended_from_outside() -> None:
    notes = Notes()
    process = notes.runtime.process("sleep 9")
    process.failed("no such program", exit_code=127, duration_ms=1.0)
    process.terminated("SIGTERM", "cancelled", 2.0)
    assert notes.told()[1:] == [
        ("process.failed", {"reason": "no such program", "exitCode": 127, "durationMs": 1.0}, P),
        ("process.terminated", {"signal": "SIGTERM", "reason": "cancelled", "durationMs": 2.0}, P),
    ]
