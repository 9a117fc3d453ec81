"""A process that an agent runs: its output, and how it ended.

Theory of operation. Output arrives in pieces, and a secret may be split between two pieces. The end
of a piece that may be the beginning of a secret is *held*. It is recorded with the next piece of
the same stream, or when the process or the turn ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from msgspec import Struct

from arp.ledger.payload_fields import Stream
from arp.protocol.json_value import Json
from arp.record.outputs import IN_A_THREAD, Cleaned, KeptOutput, Outputs, OutputStore, preview_of
from arp.record.scope import FactScope
from arp.record.wording import PREVIEW_CHARACTERS, well_formed
from arp.record.work import Entity
from arp.redact.stream import GROWN_CONTEXT, RedactedPiece

MARGIN = 4_096
"""Characters after a preview that are searched for secrets with it. A secret that the preview cuts
would not be recognised by its beginning."""


class _Flow(Struct):
    """One stream of a process."""

    held: str = ""
    """Output that may be the beginning of a secret."""
    recorded: str = ""
    """End of the output that was recorded."""


class RecordedProcess(Entity):
    """A process of an agent."""

    __slots__ = ("_flows", "_is_release_registered", "_outputs", "id")

    def __init__(
        self,
        scope: FactScope,
        store: OutputStore,
        command: str | Sequence[str],
        cwd: str | None,
        pid: int | None,
    ) -> None:
        self.id = scope.new_id("process")
        super().__init__(scope.within(process_id=self.id), "process")
        self._outputs = Outputs(self._scope, store)
        self._flows: dict[Stream, _Flow] = {}
        self._is_release_registered = False
        """Whether the held output will be recorded before the turn ends."""
        line: Json = command if isinstance(command, str) else list(command)
        self._record("started", command=line, cwd=cwd, pid=pid)

    async def output(
        self, data: bytes | str, stream: Stream = "stdout", mime: str | None = None
    ) -> KeptOutput:
        """Record output of the process; a large output is stored beside the ledger.

        The output may arrive in pieces; the end of a piece may be recorded with the next piece.

        Returns:
            The preview of what was recorded now, and the `output_ref` to read all of it.
        """
        content = data if isinstance(data, bytes) else well_formed(data).encode()
        if stream not in get_args(Stream):
            return await self._keep(content, stream, mime)  # raises for the invalid stream
        if b"\0" in content[:8192]:  # not text
            self._release(stream)
            return await self._keep(content, stream, mime)
        flow = self._flows.setdefault(stream, _Flow())
        piece = content.decode("utf-8", "surrogateescape")
        held, flow.held = flow.held, ""
        try:
            grown = await self._clean_piece(held, piece, flow.recorded)
        except BaseException:  # a cancelled call must not lose the held output
            flow.held = held
            raise
        out, flow.held, found = grown
        flow.recorded = (flow.recorded + out)[-GROWN_CONTEXT:]
        if flow.held and not self._is_release_registered:
            self._is_release_registered = True
            self._scope.before_end(self._release_all)
        # All of the piece is held. A fact now would record an output of no bytes.
        if not out and content:
            return KeptOutput("", 0)
        kept = await self._keep(out.encode("utf-8", "surrogateescape"), stream, mime)
        self._outputs.redacted(found)
        return kept

    async def _clean_piece(self, held: str, piece: str, before: str) -> RedactedPiece:
        """Remove secrets from a piece; from a large piece in a thread."""
        if len(piece) < IN_A_THREAD:
            return self._scope.grow(held, piece, before)
        grown: list[RedactedPiece] = []

        def work() -> Cleaned:
            grown.append(self._scope.grow(held, piece, before))
            return "", {}

        await self._outputs.store.aside(work)
        return grown[0]

    async def _keep(self, data: bytes, stream: Stream, mime: str | None) -> KeptOutput:
        kept = await self._outputs.keep(data, mime)
        payload = {"stream": stream, "preview": kept.preview, "bytes": kept.bytes}
        self.record("process.output", payload, output_ref=kept.output_ref)
        return kept

    def _release_all(self) -> None:
        """Record the held output, because the process or the turn ends."""
        self._is_release_registered = False
        for stream in self._flows:
            self._release(stream)

    def _release(self, stream: Stream) -> None:
        flow = self._flows.get(stream)
        if flow is None or not flow.held:
            return
        held, flow.held = flow.held, ""
        out, _, found = self._scope.flush(held, flow.recorded)
        flow.recorded = (flow.recorded + out)[-GROWN_CONTEXT:]
        for start in range(0, len(out), PREVIEW_CHARACTERS):
            part = out[start : start + PREVIEW_CHARACTERS].encode("utf-8", "surrogateescape")
            self._record("output", stream=stream, preview=preview_of(part), bytes=len(part))
        self._outputs.redacted(found)

    def input(self, data: bytes | str, *, secret: bool = False) -> None:
        """Record the input of the process; if it is secret, only its size."""
        content = data if isinstance(data, bytes) else well_formed(data).encode()
        preview = None if secret else self._scope.clean(preview_of(content, MARGIN))[0]
        self._record("input", bytes=len(content), preview=preview and preview[:PREVIEW_CHARACTERS])

    def completed(self, exit_code: int, duration_ms: float | None = None) -> None:
        """Record that the process ended by itself, as intended."""
        self._release_all()
        self._record("completed", exitCode=exit_code, durationMs=duration_ms)

    def failed(
        self, reason: str, *, exit_code: int | None = None, duration_ms: float | None = None
    ) -> None:
        """Record that the process could not start, or ended by itself with a failure."""
        self._release_all()
        self._record("failed", reason=reason, exitCode=exit_code, durationMs=duration_ms)

    def terminated(
        self, signal: str, reason: str | None = None, duration_ms: float | None = None
    ) -> None:
        """Record that a signal from outside ended the process, and why it was sent."""
        self._release_all()
        self._record("terminated", signal=signal, reason=reason, durationMs=duration_ms)
