"""JSON-RPC over the pipes of a child process: one JSON object a line, both sides may ask.

`JsonRpcPeer` is the protocol without a process: bytes in, bytes out. What the child sends can never
make it raise: what is no JSON-RPC is logged and skipped. `JsonRpcChild` starts a process and runs a
peer over its pipes until it ends.

A child that ends, or closes its output, closes the peer: every call that waits fails with
`PeerClosed`, and `closed` is called once, behind the last message.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from arp.protocol.json_value import Json, JsonObject

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 2**20
"""A file or an image in a tool's result is one line."""
MAX_ERROR_LINES = 20
"""Lines of standard error that are kept, to say why a child ended."""
READ_BYTES = 2**16
EXIT_S = 1.0
"""How long to wait for the end of a process whose output has ended."""

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
"""Codes of JSON-RPC 2.0."""

RequestId = int | str

_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class JsonRpcError(Exception):
    """The other side answered a call with an error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class PeerClosed(Exception):
    """The other side is gone; the text says why."""


class JsonRpcHandler(Protocol):
    """Who is told what the other side says, in order."""

    def notified(self, method: str, params: JsonObject) -> None:
        """Take a notification."""

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Take a request; it is answered with `answer` or `refuse`, then or later."""

    def closed(self, reason: str) -> None:
        """Take that the other side is gone; called once."""


class JsonRpcPeer:
    """One side of a JSON-RPC connection.

    Args:
        write: Gets the bytes of each message.
        handler: Is told what the other side says.
        has_version: Whether messages say `"jsonrpc": "2.0"`; what comes in may or may not.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        handler: JsonRpcHandler,
        *,
        has_version: bool = True,
    ) -> None:
        self.closed_because = ""
        """Empty as long as it is open."""
        self._write = write
        self._handler = handler
        self._version: JsonObject = {"jsonrpc": "2.0"} if has_version else {}
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._last_id = 0
        self._buffer = bytearray()
        self._searched = 0
        """So many bytes of the buffer have no line end."""

    async def call(self, method: str, params: JsonObject | None = None) -> Json:
        """Return the result of a call.

        Raises:
            JsonRpcError: The other side answered with an error.
            PeerClosed: It is gone, or goes before it answers.

        Cancel: Safe; the answer is dropped.
        """
        future = self.begin(method, params)
        try:
            return await future
        finally:
            future.cancel()

    def begin(self, method: str, params: JsonObject | None = None) -> asyncio.Future[Json]:
        """Send a call at once, before anything that is sent after it; return its result to come.

        Raises:
            PeerClosed: The other side is gone.
        """
        self._check_open()
        self._last_id += 1
        call_id = self._last_id
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._send({"id": call_id, "method": method, "params": params or {}})
        self._waiting[call_id] = future
        future.add_done_callback(lambda _: self._waiting.pop(call_id, None))
        return future

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification.

        Raises:
            PeerClosed: The other side is gone.
        """
        self._send({"method": method, "params": params} if params else {"method": method})

    def answer(self, request_id: RequestId, result: Json) -> None:
        """Answer a request.

        Raises:
            PeerClosed: The other side is gone.
        """
        self._send({"id": request_id, "result": result})

    def refuse(self, request_id: RequestId, code: int, message: str) -> None:
        """Answer a request with an error.

        Raises:
            PeerClosed: The other side is gone.
        """
        self._send({"id": request_id, "error": {"code": code, "message": message}})

    def receive(self, data: bytes) -> None:
        """Take bytes of the other side; what is not JSON-RPC is skipped."""
        self._buffer += data
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            self._take_line(line)
        if start:
            del self._buffer[:start]
        self._searched = len(self._buffer)
        if len(self._buffer) > MAX_LINE_BYTES:
            # An answer may be in it: whoever waits for it must not wait for ever.
            self.close(f"it sent a line of more than {MAX_LINE_BYTES} bytes")

    def end_of_file(self) -> str:
        """Return what the other side left unfinished, for the reason; its output has ended."""
        return "in the middle of a line" if self._buffer.strip() else ""

    def close(self, reason: str) -> None:
        """Fail what waits, and take nothing more; may be called again."""
        if self.closed_because:
            return
        self.closed_because = reason
        self._buffer.clear()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerClosed(reason))
        self._waiting.clear()
        self._handler.closed(reason)

    def _check_open(self) -> None:
        if self.closed_because:
            raise PeerClosed(self.closed_because)

    def _send(self, message: JsonObject) -> None:
        self._check_open()
        self._write(msgspec.json.encode(self._version | message) + b"\n")

    def _take_line(self, line: bytes) -> None:
        if self.closed_because or not line.strip():
            return
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            logger.debug("not JSON, skipped: %.75r", line)
            return
        if not isinstance(message, dict):
            logger.debug("no object, skipped: %.75r", line)
            return
        method, params = message.get("method"), message.get("params")
        request_id = message.get("id")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            self._take_call(request_id, method, params)
        elif type(request_id) is int and request_id in self._waiting:
            self._take_answer(self._waiting.pop(request_id), message)
        else:
            logger.debug("no method and no call that waits, skipped: %.75r", line)

    def _take_call(self, request_id: object, method: str, params: JsonObject) -> None:
        try:
            if isinstance(request_id, int | str):
                self._handler.requested(request_id, method, params)
            else:
                self._handler.notified(method, params)
        except Exception:
            # One message that is not understood must not end the sessions of all others.
            logger.warning("%s: not understood", method, exc_info=True)
            if isinstance(request_id, int | str):
                with suppress(PeerClosed):
                    self.refuse(request_id, INTERNAL_ERROR, "the client did not understand it")

    def _take_answer(self, future: asyncio.Future[Json], message: JsonObject) -> None:
        if future.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            code, text = error.get("code"), error.get("message")
            number = code if isinstance(code, int) else INTERNAL_ERROR
            future.set_exception(JsonRpcError(number, str(text or "no reason"), error.get("data")))
        else:
            future.set_result(message.get("result"))


class JsonRpcChild:
    """A child process, and the peer over its pipes; made by `start`."""

    def __init__(self, process: Process, name: str) -> None:
        self.process = process
        self.name = name
        self.errors: deque[str] = deque(maxlen=MAX_ERROR_LINES)
        """The newest lines of its standard error."""
        self.peer: JsonRpcPeer
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        handler: JsonRpcHandler,
        *,
        cwd: str | None = None,
        has_version: bool = True,
    ) -> JsonRpcChild:
        """Start a process with exactly this environment, in a process group of its own.

        Raises:
            OSError: It cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
        )
        assert process.stdin is not None
        child = cls(process, os.path.basename(command[0]))
        child.peer = JsonRpcPeer(process.stdin.write, handler, has_version=has_version)
        loop = asyncio.get_running_loop()
        child._tasks = [loop.create_task(child._read()), loop.create_task(child._read_errors())]
        return child

    @property
    def is_running(self) -> bool:
        """Whether it can be called."""
        return not self.peer.closed_because

    async def stop(self, grace_s: float) -> None:
        """End the process: close its input, and kill its group if it does not end in time."""
        self.peer.close(f"{self.name} was ended")
        if self.process.stdin is not None:
            self.process.stdin.close()
        if await self._exit_code(grace_s) is None:
            logger.warning("%s does not end, so it is killed", self.name)
        self.kill()
        # What a grandchild keeps open is not read to its end.
        _, reading = await asyncio.wait(self._tasks, timeout=EXIT_S)
        for task in reading:
            task.cancel()

    def kill(self) -> None:
        """Kill the process, and what is left of its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def _exit_code(self, within_s: float) -> int | None:
        with suppress(TimeoutError):
            return await asyncio.wait_for(self.process.wait(), within_s)
        return self.process.returncode

    async def _read(self) -> None:
        output = self.process.stdout
        assert output is not None
        while self.is_running and (data := await output.read(READ_BYTES)):
            self.peer.receive(data)
        unfinished = self.peer.end_of_file()
        if self.is_running:
            # Its standard error and its exit code say why it ended. One that has closed its output
            # alone is killed.
            await self._exit_code(EXIT_S)
            await asyncio.wait(self._tasks[1:], timeout=EXIT_S)
        self.kill()
        code = await self._exit_code(EXIT_S)
        reason = " ".join(filter(None, (f"{self.name} ended", unfinished, f"(exit code {code})")))
        said = "; ".join(list(self.errors)[-3:])
        self.peer.close(f"{reason}: {said}" if said else reason)

    async def _read_errors(self) -> None:
        errors = self.process.stderr
        assert errors is not None
        rest = b""
        while data := await errors.read(READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-READ_BYTES:]
            for line in lines:
                self._note(line)
        self._note(rest)

    def _note(self, line: bytes) -> None:
        text = _TERMINAL_CODES.sub("", line.decode(errors="replace")).strip()
        if text:
            self.errors.append(text[:500])
            logger.debug("%s: %.75s", self.name, text)
