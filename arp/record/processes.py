"""A process that an agent runs: its output, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from arp.ledger.payload_fields import Stream
from arp.protocol.json_value import Json
from arp.record.outputs import Kept, Outputs, preview_of
from arp.record.recorder import Recorder
from arp.record.wording import PREVIEW_CHARACTERS, well_formed

MARGIN = 4_096
"""Characters behind a preview that are looked at with it: half a secret does not look like one."""


class Process:
    """A process; given by `turn.runtime.process(command)`."""

    __slots__ = ("_outputs", "_recorder", "id")

    def __init__(self, recorder: Recorder, outputs: Outputs, process_id: str) -> None:
        self.id = process_id
        self._recorder = recorder.within(process_id=process_id)
        self._outputs = outputs.within(self._recorder)

    def started(
        self, command: str | Sequence[str], cwd: str | None = None, pid: int | None = None
    ) -> None:
        """Notes what runs, and where."""
        line: Json = command if isinstance(command, str) else list(command)
        self._record("process.started", command=line, cwd=cwd, pid=pid)

    async def output(
        self, data: bytes | str, stream: Stream = "stdout", mime: str | None = None
    ) -> Kept:
        """Notes what the process wrote; much of it is kept beside the ledger.

        Returns:
            The preview, and the `output_ref` under which the whole is read again.
        """
        kept = await self._outputs.keep(data, mime)
        payload = {"stream": stream, "preview": kept.preview, "bytes": kept.bytes}
        self._recorder.record("process.output", payload, output_ref=kept.output_ref)
        return kept

    def input(self, data: bytes | str, *, secret: bool = False) -> None:
        """Notes what the process was given; of a secret only its size."""
        whole = data if isinstance(data, bytes) else well_formed(data).encode()
        preview = None if secret else self._recorder.clean(preview_of(whole, MARGIN))[0]
        shown = preview and preview[:PREVIEW_CHARACTERS]
        self._record("process.input", bytes=len(whole), preview=shown)

    def completed(self, exit_code: int, duration_ms: float | None = None) -> None:
        """Notes that it ended by itself, as it should."""
        self._record("process.completed", exitCode=exit_code, durationMs=duration_ms)

    def failed(
        self, reason: str, *, exit_code: int | None = None, duration_ms: float | None = None
    ) -> None:
        """Notes that it could not start, or ended by itself as it should not."""
        payload = {"reason": reason, "exitCode": exit_code, "durationMs": duration_ms}
        self._record("process.failed", **payload)

    def terminated(
        self, signal: str, reason: str | None = None, duration_ms: float | None = None
    ) -> None:
        """Notes that it was ended from outside, by which signal and why."""
        payload = {"signal": signal, "reason": reason, "durationMs": duration_ms}
        self._record("process.terminated", **payload)

    def _record(self, type_name: str, **payload: Json) -> None:
        self._recorder.record(type_name, payload)
