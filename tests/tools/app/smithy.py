"""A Tool Agent with the scripted coding agent of the example, behind a real server."""

from __future__ import annotations

import asyncio
import base64
import io
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec
from PIL import Image

from arp import App, Turn
from arp.control.actions import Respond
from arp.control.control import Control
from arp.control.sessions import ReadEvents, ReadSession
from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.plain.function import FunctionTurn
from arp.tools.app.agent import ToolAgent
from arp.tools.build.backend import ToolBackend
from arp.tools.build.coding_log import log_to, logger
from arp.tools.build.messages import Outcome, ToolRequest, message_with
from arp.tools.registry.models import AgentBusMessage
from arp.tools.run.runtime import HealthAlert
from arp.tools.service import ToolService
from tests.support.serving import Serving, serving
from tests.tools.house import settings_in

EXAMPLE = Path(__file__).parents[3] / "examples" / "toolsmith"
WAIT_S = 60.0

T = TypeVar("T")


class Smithy(NamedTuple):
    """The server, and what belongs to it."""

    server: Serving
    agent: ToolAgent
    log: list[str]
    """Lines of the coding agent's log."""
    sent: Sequence[AgentBusMessage] = ()
    """Messages between the router and the coding agent."""

    @property
    def url(self) -> str:
        return self.server.http

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work(), self.server.loop).result(WAIT_S)

    def ask_for(self, description: str, **more: Any) -> str:
        """Ask for a tool over HTTP; return the id of the task."""
        body = {"description": description, **more}
        answer = httpx.post(f"{self.url}/tools/request", json=body, timeout=WAIT_S)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["task_id"])

    def task(self, task_id: str) -> JsonObject:
        """Return the status of a task."""
        value: JsonObject = httpx.get(f"{self.url}/tasks/{task_id}/status").json()
        return value

    def becomes(self, task_id: str, *statuses: str) -> JsonObject:
        """Wait until a task has one of some statuses; return what it says."""
        until = time.monotonic() + WAIT_S
        while (task := self.task(task_id))["status"] not in statuses:
            assert time.monotonic() < until, task
            time.sleep(0.05)
        return task

    def answer(self, session_id: str, *, allow: bool, scope: Any = None) -> JsonObject:
        """Answer the open permission of a session by the control plane; return its question."""

        async def work() -> JsonObject:
            control: Control = await self.server.application.control()
            read = await control.sessions.read(ReadSession(session_id=session_id))
            (pending,) = read["threads"][0]["pendingRequests"]
            request = Respond(
                session_id=session_id, action_id=pending["actionId"], response=allow, scope=scope
            )
            await control.actions.respond(request)
            return dict(pending)

        return self.run(work)

    def facts(self, session_id: str) -> list[JsonObject]:
        """Return the facts of a session."""

        async def work() -> list[JsonObject]:
            control: Control = await self.server.application.control()
            page = await control.sessions.events(ReadEvents(session_id=session_id))
            return [msgspec.json.decode(bytes(event)) for event in page.events]

        return self.run(work)


def scripted_smith() -> Any:
    """The coding agent of the example, which costs $0.02 here."""
    if str(EXAMPLE) not in sys.path:
        sys.path.insert(0, str(EXAMPLE))
    from smith import ScriptedSmith  # type: ignore[import-not-found]  # it lies beside the example

    class PaidSmith(ScriptedSmith):  # type: ignore[misc]  # as above
        async def _work(self, turn: FunctionTurn) -> str:
            turn.used = ari.Usage(cost=0.02, currency="USD")
            return str(await super()._work(turn))

    return PaidSmith()


@contextmanager
def smithy(data_dir: Path, **settings: object) -> Iterator[Smithy]:
    """Serve a Tool Agent that can build."""
    data_dir.chmod(0o755)
    service = ToolService(settings_in(data_dir, health_check_interval_s=3_600, **settings))
    agent = ToolAgent(scripted_smith(), service=service)
    app = App("Smithy", tools=agent)

    @app.agent
    async def user(turn: Turn) -> None:
        tool_id, _, quality = turn.text.partition(" ")
        await turn.use(tool_id, {"image": data_url(noise()), "quality": int(quality or 60)})

    lines: list[str] = []
    handler = log_to(lines.append)
    sent = messages_of(agent.backend)
    try:
        with serving(app, ledger="memory:") as server:
            yield Smithy(server, agent, lines, sent)
    finally:
        logger.removeHandler(handler)


def messages_of(backend: ToolBackend) -> list[AgentBusMessage]:
    """Return a list of the messages between the router and the coding agent from now on."""
    sent: list[AgentBusMessage] = []
    coding = backend.coding
    begin, record_alert = coding.begin, coding.record_alert

    def begin_too(request: ToolRequest) -> None:
        sent.append(message_with(request))
        begin(request)

    def record_too(alert: HealthAlert) -> None:
        sent.append(message_with(alert))
        record_alert(alert)

    async def ends(outcome: Outcome) -> None:
        sent.append(message_with(outcome))

    coding.begin = begin_too  # type: ignore[method-assign]  # listens to the router
    coding.record_alert = record_too  # type: ignore[method-assign]  # as above
    coding.on_outcome(ends)
    return sent


def noise(width: int = 64, height: int = 48) -> bytes:
    """A picture that does not become small by itself."""
    out = io.BytesIO()
    pixels = Random(7).randbytes(width * height * 3)
    Image.frombytes("RGB", (width, height), pixels).save(out, "PNG")
    return out.getvalue()


def data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"
