"""Tasks in sessions: money that a person approves, a stop, a repair, tools of other agents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from arp import App, Turn
from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.tools.app.agent import ToolAgent
from arp.tools.app.ari_coder import NOT_OURS, AriCoder
from arp.tools.build.backend import ToolBackend
from arp.tools.build.coding_job import CodingJob, CodingOutcome
from arp.tools.build.router import TaskRequest
from arp.tools.build.toolbox import Toolbox
from arp.tools.build.toolbox_server import ToolboxServer
from arp.tools.build.workplace import Headless
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskBook, TaskStatus
from arp.tools.tasks.task_money import TaskMoney
from arp.tools.tasks.task_specs import BuildTool
from tests.support.serving import serving
from tests.tools.app.smithy import WAIT_S, Smithy
from tests.tools.house import settings_in

pytestmark = pytest.mark.timeout(120)


class CostlyCoder:
    """Builds nothing, and costs something."""

    name = "costly"

    def __init__(self, cost_usd: float) -> None:
        self.cost_usd = cost_usd
        self.began = asyncio.Event()
        self.ended = False

    async def work(self, job: CodingJob) -> CodingOutcome:
        self.began.set()
        if self.cost_usd:
            return CodingOutcome("I only think.", self.cost_usd, "thinker-1")
        try:
            await job.spent(0.5, "thinker-1")
            await asyncio.Event().wait()
        finally:
            self.ended = True
        raise AssertionError


@contextmanager
def costly(
    data_dir: Path, cost_usd: float, **settings: object
) -> Iterator[tuple[Smithy, CostlyCoder]]:
    coder = CostlyCoder(cost_usd)
    agent = ToolAgent(coder, service=ToolService(settings_in(data_dir, **settings)))
    app = App("Costly", tools=agent)

    @app.agent
    async def buyer(turn: Turn) -> None:
        await agent.spend(turn, "openai", float(turn.text), "API key")
        await turn.say("It is paid.")

    with serving(app, ledger="memory:") as server:
        yield Smithy(server, agent, []), coder


@pytest.mark.parametrize("allow", [True, False])
def test_estimate_above_the_threshold_is_asked_in_the_session_of_the_task(
    tmp_path: Path, allow: bool
) -> None:
    """Before anything is spent; the log has what was spent then."""
    with costly(tmp_path, 3.25, coding_task_usd=12.5) as (made, coder):
        task_id = made.ask_for("fold paper")
        waiting = made.becomes(task_id, "waiting_approval", "failed")
        assert waiting["waiting_for"] == "Pay up to $12.50 to costly?"
        assert not coder.began.is_set()
        made.answer(waiting["session_id"], allow=allow)
        error = made.becomes(task_id, "failed")["error"]
        assert coder.began.is_set() is allow
        if allow:
            assert error == "no tool was registered: I only think."
        else:
            assert error == "$12.50 to costly was not approved"
        paid = made.agent.service.budget.transactions()
        wanted = [("costly", Decimal("3.25"), f"fold paper (task {task_id})")] if allow else []
        assert [(one.provider, one.amount_usd, one.description) for one in paid] == wanted
        assert made.agent.service.budget.reservations() == []
        costs = [
            fact["payload"]["amount"]
            for fact in made.facts(waiting["session_id"])
            if fact["type"] == "cost.recorded"
        ]
        assert costs == ([3.25] if allow else [])


def test_small_amount_is_spent_alone_and_a_large_one_is_refused(tmp_path: Path) -> None:
    with costly(tmp_path, 1.0) as (made, _):
        small = httpx.post(f"{made.url}/buyer", json={"message": "5"}, timeout=WAIT_S).json()
        assert small["text"] == "It is paid."
        large = httpx.post(f"{made.url}/buyer", json={"message": "21"}, timeout=WAIT_S).json()
        assert large["status"] == "failed"
        assert "a single payment is at most" in str(large["errors"])
        middle = httpx.post(f"{made.url}/buyer", json={"message": "15"}, timeout=WAIT_S).json()
        assert middle["status"] == "waiting"
        made.answer(middle["run_id"].rpartition(".")[0], allow=True)
        until = time.monotonic() + WAIT_S
        while len(made.agent.service.budget.transactions()) < 2:
            assert time.monotonic() < until
            time.sleep(0.02)
        paid = made.agent.service.budget.transactions()
        assert [(one.provider, one.amount_usd) for one in paid] == [
            ("openai", Decimal(5)),
            ("openai", Decimal(15)),
        ]


def test_task_that_is_stopped_ends_its_coder_and_is_cancelled(tmp_path: Path) -> None:
    with costly(tmp_path, 0.0) as (made, coder):
        task_id = made.ask_for("fold paper")
        made.run(lambda: asyncio.wait_for(coder.began.wait(), WAIT_S))
        session_id = made.agent.backend.book.get(task_id).session_id

        async def stop() -> None:
            from arp.control.turns import CancelTurn

            control = await made.server.application.control()
            await control.turns.cancel(CancelTurn(session_id=session_id))

        made.run(stop)
        assert made.becomes(task_id, "cancelled")["error"] == "cancelled"
        assert coder.ended
        (paid,) = made.agent.service.budget.transactions()
        assert (paid.amount_usd, paid.description) == (
            Decimal("0.5"),
            f"fold paper (task {task_id})",
        )


def test_nothing_begins_when_nothing_is_left_of_the_month(tmp_path: Path) -> None:
    with costly(tmp_path, 1.0) as (made, coder):
        (tmp_path / "config.json").write_text('{"budget": {"monthly_limit_usd": 0}}')
        failed = made.becomes(made.ask_for("fold paper"), "failed")
        assert "$0.00 of $0.00 are left of this month" in failed["error"]
        assert not coder.began.is_set()


# -- any runtime -----------------------------------------------------------------------------------


class Curious(FunctionRuntime):
    """An agent that tries its own tools first."""

    takes = FunctionRuntime.takes | {"mcp_servers", "instructions"}
    more_capabilities = (*FunctionRuntime.more_capabilities, "instructions", "mcp_servers")

    def __init__(self) -> None:
        super().__init__(self._work, name="curious")
        self.told: list[str] = []

    async def _work(self, turn: FunctionTurn) -> str:
        for name in ("Bash", "mcp__other__run_in_uv", "mcp__tool_agent__run_in_uv"):
            with turn.tool(name, {"command": "id"}) as call:
                answer = await call.allowed()
                self.told.append(f"{name}: {answer.decision} {answer.message}".strip())
        return "That is all."


@asynccontextmanager
async def job_in(data_dir: Path) -> AsyncIterator[CodingJob]:
    service = ToolService(settings_in(data_dir))
    book = TaskBook(data_dir)
    task = book.add("x")
    book.set(task.task_id, TaskStatus.RUNNING)
    async with service:
        box = Toolbox(service, BuildTool("x"), asks=True)
        yield CodingJob(task, "Do it.", box, Headless(False), book)


async def test_own_tools_of_a_runtime_are_refused_and_the_ten_are_not(tmp_path: Path) -> None:
    runtime = Curious()
    coder = AriCoder(runtime)
    async with job_in(tmp_path) as job:
        outcome = await coder.work(job)
    assert outcome.text == "That is all."
    assert runtime.told == [
        f"Bash: deny {NOT_OURS}",
        f"mcp__other__run_in_uv: deny {NOT_OURS}",
        "mcp__tool_agent__run_in_uv: allow",
    ]
    sessions = (await runtime.list_sessions(ari.ListSessionsRequest())).sessions
    assert sessions == ()
    await coder.aclose()


class Costly(FunctionRuntime):
    """An agent whose requests to a model cost $0.30 each, and that never ends."""

    takes = Curious.takes
    more_capabilities = Curious.more_capabilities

    def __init__(self, requests: int) -> None:
        super().__init__(self._work, name="costly")
        self.requests = requests
        self.began = asyncio.Event()

    async def _work(self, turn: FunctionTurn) -> str:
        for number in range(1, self.requests + 1):
            turn.tell(ari.Lifecycle.USAGE, model="thinker-1", cost=0.3, currency="USD")
            # A request that is cut off counts in the turn alone.
            turn.used = ari.Usage(cost=0.3 * number + 0.05, currency="USD")
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_runtime_is_stopped_before_it_costs_more_than_is_reserved(tmp_path: Path) -> None:
    """What the cancelled turn says at its end is in the log."""
    coder = AriCoder(Costly(3))
    settings = settings_in(tmp_path, coding_task_usd=1, approve_builds=False)
    backend = ToolBackend(ToolService(settings), coder)
    await backend.start()
    async with asyncio.timeout(WAIT_S):
        task = await backend.router.request(TaskRequest("fold paper"))
        done = await backend.book.wait_for_end(task.task_id)
    budget = backend.service.budget
    await backend.aclose()
    await coder.aclose()
    assert "it has cost $0.90 of the $1.00 that a task may cost" in done.error
    assert [one.amount_usd for one in budget.transactions()] == [Decimal("0.95")]
    assert budget.reservations() == []


async def test_cancelled_turn_says_what_it_has_cost(tmp_path: Path) -> None:
    runtime = Costly(1)
    coder = AriCoder(runtime)
    async with job_in(tmp_path) as job:
        job.money = TaskMoney(job.toolbox._service.budget, "fold paper")
        await job.money.reserve("costly", 5.0, None)
        working = asyncio.create_task(coder.work(job))
        await asyncio.wait_for(runtime.began.wait(), WAIT_S)
        working.cancel()
        await asyncio.wait([working])
        assert job.money.used_usd == Decimal("0.35")
        await job.money.close()
    await coder.aclose()


async def test_address_of_the_ten_tools_is_of_one_task_and_needs_its_token(tmp_path: Path) -> None:
    server = ToolboxServer()
    hello: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with job_in(tmp_path) as job, httpx.AsyncClient() as client:
        async with server.offered(job) as address:
            place, headers = address.url, address.headers

            async def status(url: str, **more: str) -> int:
                given = {"accept": "application/json, text/event-stream", **more}
                return (await client.post(url, json=hello, headers=given)).status_code

            assert await status(place) == 401
            assert await status(place, authorization="Bearer x") == 401
            assert await status(place, **headers, origin="http://evil.example") == 401
            assert await status(place, **headers, host="evil.example") == 404
            assert await status(place.replace("/mcp", "x/mcp"), **headers) == 404
            assert await status(place, **headers) not in (401, 404)
        assert await status(place, **headers) == 404
    await server.aclose()


async def test_headless_task_asks_nobody_so_it_is_refused(tmp_path: Path) -> None:
    async with job_in(tmp_path) as job:
        project = (await job.call("create_uv_project", {"name": "x"}))["project_dir"]
        with pytest.raises(Exception, match="no person is available to approve it"):
            await job.call("run_in_uv", {"project_dir": project, "command": "python -V"})


async def test_app_without_a_hub_builds_headless(tmp_path: Path) -> None:
    """A program of its own: no sessions, so the operator's settings say what may run."""
    backend = ToolBackend(ToolService(settings_in(tmp_path)))
    await backend.start()
    task = await backend.router.request(TaskRequest("fold paper"))
    done = await backend.book.wait_for_end(task.task_id)
    assert done.status is TaskStatus.FAILED
    assert "no coding agent is configured" in done.error
    await backend.aclose()
