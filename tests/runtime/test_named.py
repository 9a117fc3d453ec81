"""Runtimes by name, as `arp serve --runtime` takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from langgraph.graph import MessagesState, StateGraph

from arp import App
from arp.access.settings import Access
from arp.cli import main
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import InvalidArgument
from arp.runtime.frameworks.langgraph import LangGraphRuntime
from arp.runtime.named import environment_of, named_runtime
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.runtime.programs.acp.acp import AcpRuntime
from arp.runtime.remote.grpc_server import GrpcServer
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.testing import FakeRuntime


async def twice(turn: FunctionTurn) -> AsyncIterator[str]:
    """Say everything twice."""
    yield turn.text
    yield turn.text


fake = FakeRuntime()


def test_an_agent_gets_its_own_variables_and_no_others() -> None:
    environment = {
        "HOME": "/home/ada",
        "PATH": "/bin",
        "LC_ALL": "C",
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "o",
        "ARP_TOKEN": "t",
        "ARP_RUNTIME_TOKEN": "r",
        "AWS_SECRET_ACCESS_KEY": "s",
        "MY_PROXY": "p",
    }
    common = {"HOME", "PATH", "LC_ALL"}
    assert set(environment_of("claude-code", environment)) == {*common, "ANTHROPIC_API_KEY"}
    assert set(environment_of("grpc://h:1", environment)) == {*common, "ARP_RUNTIME_TOKEN"}
    assert set(environment_of("codex", environment)) == {*common, "OPENAI_API_KEY"}
    assert set(environment_of("acp:x --acp", environment, ["MY_*"])) == {
        *common, "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_PROXY",
    }  # fmt: skip


async def test_names(tmp_path: Path) -> None:
    assert isinstance(named_runtime(f"{__name__}:twice", cwd=tmp_path), FunctionRuntime)
    assert named_runtime(f"{__name__}:fake") is fake
    assert isinstance(named_runtime(f"{__name__}:FakeRuntime"), FakeRuntime)
    agent = named_runtime('acp:opencode acp --port "1 2"', cwd=tmp_path)
    assert isinstance(agent, AcpRuntime)
    assert agent.command == ("opencode", "acp", "--port", "1 2")
    await agent.close()
    remote = named_runtime("http://127.0.0.1:1")
    assert isinstance(remote, HttpRuntime)
    await remote.close(ari.CloseRequest())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clude", "there is no runtime 'clude'; there are claude-code, codex"),
        ("acp:", "command: it is empty"),
        ("no.such.module:x", "No module named 'no'"),
        (f"{__name__}:nothing", "nothing"),
        (f"{__name__}:CliRunner", "is no runtime, and no agent of a framework"),
    ],
)
def test_what_is_no_runtime_is_refused(name: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        named_runtime(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give exactly one of TARGET, --runtime and --model"),
        (["app.py", "--runtime", "codex"], "Give exactly one of TARGET, --runtime and --model"),
        (["--runtime", "clude"], "--runtime clude: there is no runtime 'clude'"),
        (["--runtime", "codex", "--cwd", "no/such"], "--cwd: there is no directory no/such"),
        (["--runtime", "codex", "--reload"], "--reload watches the files beside TARGET"),
    ],
)
def test_command_line_says_what_is_wrong(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code != 0
    assert message in result.output


async def test_a_runtime_behind_grpc_is_named_by_its_address() -> None:
    server = GrpcServer(FakeRuntime(), Access(token="s3cret"))
    port = await server.start()
    remote = named_runtime(f"grpc://127.0.0.1:{port}", environment={"ARP_RUNTIME_TOKEN": "s3cret"})
    assert (await remote.version(ari.VersionRequest())).runtime_name == "fake"
    await remote.close(ari.CloseRequest())
    await server.stop()
    for wrong in ("grpc:127.0.0.1:1", "grpc://127.0.0.1", "grpc://"):
        with pytest.raises(InvalidArgument, match="write grpc://HOST:PORT"):
            named_runtime(wrong)


def test_graph_that_is_not_compiled_says_what_to_write() -> None:
    builder = StateGraph(MessagesState)
    with pytest.raises(InvalidArgument, match=r"got StateGraph; write graph.compile\(\)"):
        App().runtime(builder)
    with pytest.raises(InvalidArgument, match=r"expected a compiled graph, got dict$"):
        LangGraphRuntime({})  # type: ignore[arg-type]  # the mistake
