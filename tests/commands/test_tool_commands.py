"""`arp tools stop | enable | disable | remove`: a real server, a real tool, and its restarts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pytest

from arp.access.principal import User
from arp.access.settings import Access
from arp.protocol.json_value import JsonObject
from arp.tools.registry.models import ToolMeta, ToolStatus
from arp.tools.registry.registry import ToolRegistry
from tests.tools.house import settings_in
from tests.tools.local_tools import active, local, processes_of, serving
from tests.tools.serving_routes import tool_house
from tests.tools.test_service import HOLDS
from tests.tools.test_toolbox import STREAMING_PROCESS

pytestmark = pytest.mark.timeout(120)

WAIT_S = 60.0
TOKEN = "long-enough-token"


class Lives(NamedTuple):
    """A data directory with the tool `holds`, and one server of it after the other."""

    data_dir: Path

    @property
    def project(self) -> Path:
        return self.data_dir / "projects" / "demo"

    @property
    def tool(self) -> ToolMeta:
        return ToolRegistry(self.data_dir).get("holds")

    @contextmanager
    def serve(self, end: signal.Signals = signal.SIGTERM) -> Iterator[str]:
        """Run `arp tools serve` as a process; yield its address; end it by a signal."""
        words = ("tools", "serve", "--ledger", "memory:", "--port", "0", "--token", TOKEN)
        process = subprocess.Popen(
            [sys.executable, "-m", "arp.cli", *words],
            env={**os.environ, "TOOL_AGENT_DATA_DIR": str(self.data_dir)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                yield line.strip().removeprefix("ARP on ")
            finally:
                process.send_signal(end)
                process.wait(WAIT_S)

    def invoke(self, url: str, **params: object) -> httpx.Response:
        """Call the tool over HTTP."""
        headers = {"authorization": f"Bearer {TOKEN}"}
        body = {"params": params}
        path = f"{url}/tools/holds/invoke"
        return httpx.post(path, json=body, headers=headers, timeout=WAIT_S)


def started(url: str, *words: str) -> subprocess.Popen[str]:
    """Begin a command of the command line."""
    return subprocess.Popen(
        [sys.executable, "-m", "arp.cli", "tools", *words, "--url", url, "--token", TOKEN],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(url: str, *words: str) -> tuple[int, str]:
    """Run a command of the command line; return its exit code and its output."""
    with started(url, *words) as process:
        text, _ = process.communicate(timeout=WAIT_S)
        return process.returncode, text


def until(holds: object) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():  # type: ignore[operator] # a function
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    tmp_path.chmod(0o755)
    made = Lives(tmp_path / "data")

    async def make() -> None:
        settings = settings_in(made.data_dir)
        async with serving(settings) as service:
            service.projects.write_file("demo/server.py", HOLDS)
            active(service, local(service, "holds"))

    asyncio.run(make())
    return made


@pytest.mark.parametrize("command", ["stop", "disable", "remove"])
def test_command_waits_for_the_call_that_runs(lives: Lives, command: str) -> None:
    with lives.serve() as url:
        calling = subprocess.Popen(
            [
                *(sys.executable, "-m", "arp.cli", "tools", "invoke", "holds", '{"hold": true}'),
                *("--url", url, "--token", TOKEN),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        with calling:
            until((lives.project / "began").exists)
            ending = started(url, command, "holds")
            if command != "stop":
                until(lambda: lives.tool.status is ToolStatus.INACTIVE)
                refused = lives.invoke(url)
                assert refused.status_code == 409
            assert ending.poll() is None
            (lives.project / "go").touch()
            answer, _ = calling.communicate(timeout=WAIT_S)
            assert json.loads(answer)["life"]
            said, _ = ending.communicate(timeout=WAIT_S)
            assert ending.returncode == 0, said
        wanted = {
            "stop": "holds  active  stopped\n",
            "disable": "holds  inactive  stopped\n",
            "remove": "removed holds, project demo\n",
        }
        assert said == wanted[command]
        assert processes_of(lives.data_dir) == []
        if command == "stop":
            assert lives.invoke(url).json()["result"]["life"] != json.loads(answer)["life"]
        if command == "remove":
            assert lives.invoke(url).status_code == 404
            assert not lives.project.exists()
            assert run(url, command, "holds")[0] == 1


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_disabled_tool_stays_disabled_in_the_next_life(lives: Lives, end: signal.Signals) -> None:
    with lives.serve(end) as url:
        assert lives.invoke(url).status_code == 200
        assert run(url, "disable", "holds") == (0, "holds  inactive  stopped\n")
    with lives.serve() as url:
        assert lives.invoke(url).status_code == 409
        assert "inactive" in run(url, "list")[1]
        assert run(url, "enable", "holds") == (0, "holds  active  stopped\n")
        assert lives.invoke(url).status_code == 200


def test_removal_that_the_end_of_the_server_cut_off_is_done_by_the_next(lives: Lives) -> None:
    """The tool is disabled in between; its calls were running."""
    with lives.serve(signal.SIGKILL) as url:
        headers = {"authorization": f"Bearer {TOKEN}"}
        call = started(url, "invoke", "holds", '{"hold": true}')
        until((lives.project / "began").exists)
        removing = started(url, "remove", "holds")
        until(lambda: lives.tool.status is ToolStatus.INACTIVE)
    for process in (call, removing):
        with process:
            process.communicate(timeout=WAIT_S)
    with lives.serve() as url:
        assert lives.invoke(url).status_code == 409
        answer = httpx.delete(f"{url}/tools/holds", headers=headers, timeout=WAIT_S)
        assert answer.json() == {"tool_id": "holds", "removed": ["project demo"], "kept": []}
        assert not lives.project.exists()
        assert httpx.get(f"{url}/tools", headers=headers).json() == {"tools": []}


def test_two_removals_at_once_remove_once(lives: Lives) -> None:
    with lives.serve() as url:
        running = [started(url, "remove", "holds") for _ in range(2)]
        said = sorted(process.communicate(timeout=WAIT_S)[0] for process in running)
        codes = sorted(process.returncode for process in running)
    assert codes == [0, 1]
    assert said[0].startswith("arp: There is no tool 'holds'")
    assert said[1] == "removed holds, project demo\n"


def test_pieces_of_a_process_are_printed_as_they_come(lives: Lives) -> None:
    """The tool goes on when its first piece has been read."""
    (lives.project / "main.py").write_text(STREAMING_PROCESS)
    registry = ToolRegistry(lives.data_dir)
    runtime = msgspec.structs.replace(
        lives.tool.runtime, entry="python -S main.py", internal_port=0, host_port=0
    )
    streams = ToolMeta("streams", "Streams", runtime=runtime, status=ToolStatus.ACTIVE)
    registry.add(streams)
    with lives.serve() as url, started(url, "invoke", "streams", "--stream") as calling:
        assert calling.stdout is not None
        assert calling.stdout.readline() == "half\n"
        (lives.project / "heard").touch()
        assert calling.stdout.read().splitlines() == ["done", '{"ok":true}']
        assert calling.wait(WAIT_S) == 0


# -- over HTTP ------------------------------------------------------------------------------------

WHO = {"ada": User("ada", roles=("boss",)), "bob": User("bob")}


def test_only_admins_change_tools_where_users_are_told_apart(tmp_path: Path) -> None:
    access = Access(
        authenticate=lambda connection: WHO.get(connection.token or ""), admin_role="boss"
    )
    with tool_house(tmp_path, access) as made:

        def ask(who: str, method: str, path: str, body: JsonObject | None = None) -> httpx.Response:
            headers = {"authorization": f"Bearer {who}"}
            return httpx.request(method, f"{made.url}{path}", json=body, headers=headers)

        for command in ("stop", "disable", "enable"):
            path = f"/tools/add/{command}"
            assert ask("nobody", "POST", path, {}).status_code == 401
            refused = ask("bob", "POST", path, {})
            assert (refused.status_code, refused.json()["code"]) == (403, "refused")
            assert ask("ada", "POST", path, {}).status_code == 200
        assert ask("bob", "DELETE", "/tools/add").status_code == 403
        assert ask("bob", "POST", "/tools/add/invoke", {"params": {"a": 1, "b": 2}}).is_success
        assert ask("ada", "DELETE", "/tools/add").status_code == 200
        assert ask("ada", "DELETE", "/tools/add").status_code == 404


def test_commands_have_the_exact_answers_and_are_sent_by_no_form(tmp_path: Path) -> None:
    with tool_house(tmp_path) as made:
        path = f"{made.url}/tools/add/disable"
        assert httpx.post(path, data={"x": "1"}).status_code == 415
        assert httpx.post(path, json={"force": True}).status_code == 400
        answer = httpx.post(path, json={})
        assert answer.json() == {"tool_id": "add", "status": "inactive", "state": "stopped"}
        assert httpx.post(f"{made.url}/tools/none/stop", json={}).status_code == 404
        names = [spec.name for spec in made.agent.tools()]
        assert "add" not in names
