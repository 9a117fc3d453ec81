"""A process that an agent runs: its output, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from msgspec import Struct

from arp.ledger.payload_fields import Finding, Stream
from arp.protocol.json_value import Json, JsonObject
from arp.record.outputs import IN_A_THREAD, Aside, Cleaned, Kept, Outputs, preview_of
from arp.record.scope import FactScope
from arp.record.wording import PREVIEW_CHARACTERS, well_formed
from arp.redact.redactor import Found
from arp.redact.stream import GROWN_CONTEXT, Grown

MARGIN = 4_096
"""Characters behind a preview that are looked at with it: half a secret does not look like one."""


class _Flow(Struct):
    """One stream of a process."""

    held: str = ""
    """What has come and may be the beginning of a secret."""
    told: str = ""
    """The end of what was noted."""


class Process:
    """A process; given by `turn.record.process(command)`."""

    __slots__ = ("_aside", "_flows", "_is_watched", "_outputs", "_scope", "id")

    def __init__(self, scope: FactScope, outputs: Outputs, aside: Aside, process_id: str) -> None:
        self.id = process_id
        self._scope = scope.within(process_id=process_id)
        self._outputs = outputs.within(self._scope)
        self._aside = aside
        self._flows: dict[Stream, _Flow] = {}
        self._is_watched = False
        """What is held is noted before the turn ends."""

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

        It may come in pieces. What a piece ends with may be the beginning of a secret: that is
        noted with the next piece of the same stream, or when the process or the turn ends.

        Returns:
            The preview, and the `output_ref` under which the whole is read again, of what is noted
            now.
        """
        whole = data if isinstance(data, bytes) else well_formed(data).encode()
        if stream not in get_args(Stream):
            return await self._note(whole, stream, mime)  # which says what is wrong
        if b"\0" in whole[:8192]:  # no text
            self._let_go(stream)
            return await self._note(whole, stream, mime)
        flow = self._flows.setdefault(stream, _Flow())
        piece = whole.decode("utf-8", "surrogateescape")
        held, flow.held = flow.held, ""
        try:
            grown = await self._grown(held, piece, flow.told)
        except BaseException:
            flow.held = held
            raise
        out, flow.held, found = grown
        flow.told = (flow.told + out)[-GROWN_CONTEXT:]
        if flow.held and not self._is_watched:
            self._is_watched = True
            self._scope.before_end(self._let_go_all)
        if not out and whole:
            return Kept("", 0)
        kept = await self._note(out.encode("utf-8", "surrogateescape"), stream, mime)
        self._tell(found)
        return kept

    async def _grown(self, held: str, piece: str, before: str) -> Grown:
        """Takes secrets out of a piece; out of a large one, beside the loop."""
        if len(piece) < IN_A_THREAD:
            return self._scope.grow(held, piece, before)
        grown: list[Grown] = []

        def work() -> Cleaned:
            grown.append(self._scope.grow(held, piece, before))
            return "", {}

        await self._aside(work)
        return grown[0]

    async def _note(self, data: bytes, stream: Stream, mime: str | None) -> Kept:
        kept = await self._outputs.keep(data, mime)
        payload = {"stream": stream, "preview": kept.preview, "bytes": kept.bytes}
        self._scope.record("process.output", payload, output_ref=kept.output_ref)
        return kept

    def _tell(self, found: Found) -> None:
        if found:
            self._outputs.redacted(
                [Finding(rule=rule, count=found[rule]) for rule in sorted(found)]
            )

    def _let_go_all(self) -> None:
        """Notes what is held: the process writes no more, or nothing more may be noted."""
        self._is_watched = False
        for stream in self._flows:
            self._let_go(stream)

    def _let_go(self, stream: Stream) -> None:
        flow = self._flows.get(stream)
        if flow is None or not flow.held:
            return
        held, flow.held = flow.held, ""
        out, _, found = self._scope.let_go(held, flow.told)
        flow.told = (flow.told + out)[-GROWN_CONTEXT:]
        for start in range(0, len(out), PREVIEW_CHARACTERS):
            part = out[start : start + PREVIEW_CHARACTERS].encode("utf-8", "surrogateescape")
            payload: JsonObject = {
                "stream": stream,
                "preview": preview_of(part),
                "bytes": len(part),
            }
            self._scope.record("process.output", payload)
        self._tell(found)

    def input(self, data: bytes | str, *, secret: bool = False) -> None:
        """Notes what the process was given; of a secret only its size."""
        whole = data if isinstance(data, bytes) else well_formed(data).encode()
        preview = None if secret else self._scope.clean(preview_of(whole, MARGIN))[0]
        shown = preview and preview[:PREVIEW_CHARACTERS]
        self._record("process.input", bytes=len(whole), preview=shown)

    def completed(self, exit_code: int, duration_ms: float | None = None) -> None:
        """Notes that it ended by itself, as it should."""
        self._let_go_all()
        self._record("process.completed", exitCode=exit_code, durationMs=duration_ms)

    def failed(
        self, reason: str, *, exit_code: int | None = None, duration_ms: float | None = None
    ) -> None:
        """Notes that it could not start, or ended by itself as it should not."""
        payload = {"reason": reason, "exitCode": exit_code, "durationMs": duration_ms}
        self._let_go_all()
        self._record("process.failed", **payload)

    def terminated(
        self, signal: str, reason: str | None = None, duration_ms: float | None = None
    ) -> None:
        """Notes that it was ended from outside, by which signal and why."""
        payload = {"signal": signal, "reason": reason, "durationMs": duration_ms}
        self._let_go_all()
        self._record("process.terminated", **payload)

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, payload)
