"""The real CLIs start in their explicit environment, and do what the fake model's script says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest

from tests.runtime import mcp_server
from tests.runtime.clis import Cli, JsonLinesPeer, Message, running
from tests.runtime.model_server import ModelServer

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
SUMS = [sys.executable, mcp_server.__file__]


class Claude:
    """Raw stream-json."""

    def __init__(self, peer: JsonLinesPeer) -> None:
        self.peer = peer

    async def say(self, text: str, *before: Message) -> None:
        message = {"role": "user", "content": [*before, {"type": "text", "text": text}]}
        await self.peer.send({"type": "user", "message": message})

    async def result(self) -> Message:
        return await self.peer.receive(lambda message: message["type"] == "result")

    async def question(self) -> Message:
        return await self.peer.receive(
            lambda message: (
                message["type"] == "control_request"
                and message["request"]["subtype"] == "can_use_tool"
            )
        )

    async def answer(self, question: Message, response: Message) -> None:
        done = {"subtype": "success", "request_id": question["request_id"], "response": response}
        await self.peer.send({"type": "control_response", "response": done})


async def test_claude_answers_hello(claude_cli: Cli, model_server: ModelServer) -> None:
    async with running(claude_cli) as peer:
        claude = Claude(peer)
        await claude.say("hello")
        result = await claude.result()
    assert (result["is_error"], result["result"]) == (False, "Hello from the model.")
    assert model_server.what_the_model_was_told() == ["hello"]


async def test_claude_asks_before_it_runs_a_command_and_tells_the_model_why_not(
    claude_cli: Cli, model_server: ModelServer
) -> None:
    async with running(claude_cli) as peer:
        claude = Claude(peer)
        await claude.say("run: touch f")
        question = await claude.question()
        assert question["request"]["input"]["command"] == "touch f"
        await claude.answer(question, {"behavior": "deny", "message": "not on a Monday"})
        await claude.result()
        assert model_server.last_tool_result() == "not on a Monday"
        assert not (claude_cli.cwd / "f").exists()

        await claude.say("run: touch f")
        question = await claude.question()
        allow = {"behavior": "allow", "updatedInput": question["request"]["input"]}
        await claude.answer(question, allow)
        assert (await claude.result())["is_error"] is False
    assert (claude_cli.cwd / "f").exists()


async def test_claude_leaves_a_slow_model_when_it_is_interrupted(
    claude_cli: Cli, model_server: ModelServer
) -> None:
    async with running(claude_cli) as peer:
        claude = Claude(peer)
        await claude.say("slow")
        await peer.receive(lambda message: "step" in json.dumps(message.get("event", "")))
        interrupt = {"type": "control_request", "request_id": "r1"}
        await peer.send({**interrupt, "request": {"subtype": "interrupt"}})
        assert (await claude.result())["terminal_reason"] == "aborted_streaming"
        await model_server.reaches(lambda: model_server.requests[0].client_left)


async def test_claude_tells_of_a_retry(claude_cli: Cli) -> None:
    async with running(claude_cli) as peer:
        claude = Claude(peer)
        await claude.say("retry")
        again = await peer.receive(lambda message: message.get("subtype") == "api_retry")
        assert (again["attempt"], again["error_status"]) == (1, 503)
        assert (await claude.result())["result"] == "It worked the second time."


async def test_claude_shows_the_model_an_image(claude_cli: Cli) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    async with running(claude_cli) as peer:
        claude = Claude(peer)
        await claude.say("hello", {"type": "image", "source": source})
        assert (await claude.result())["result"].startswith("I received image/png, 70 bytes.")


async def test_claude_asks_before_it_calls_a_tool_of_an_mcp_server(claude_cli: Cli) -> None:
    servers = {"mcpServers": {"sums": {"command": SUMS[0], "args": SUMS[1:]}}}
    async with running(claude_cli.but("--mcp-config", json.dumps(servers))) as peer:
        claude = Claude(peer)
        await claude.say('mcp: sums add {"a": 2, "b": 3}')
        question = await claude.question()
        assert question["request"]["tool_name"] == "mcp__sums__add"
        allow = {"behavior": "allow", "updatedInput": question["request"]["input"]}
        await claude.answer(question, allow)
        assert (await claude.result())["result"] == "The tool returned: 5"


class Rpc:
    """JSON-RPC over lines, as Codex (without the member `jsonrpc`) and ACP speak it."""

    def __init__(self, peer: JsonLinesPeer) -> None:
        self.peer = peer
        self.last_id = 0

    async def begin(self, method: str, params: Message) -> int:
        self.last_id += 1
        request = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        await self.peer.send(request)
        return self.last_id

    async def result(self, request_id: int) -> Message:
        answer = await self.peer.receive(
            lambda message: "method" not in message and message.get("id") == request_id
        )
        result: Message = answer["result"]
        return result

    async def call(self, method: str, params: Message) -> Message:
        return await self.result(await self.begin(method, params))

    async def message(self, method: str) -> Message:
        return await self.peer.receive(lambda message: message.get("method") == method)

    async def answer(self, question: Message, result: Message) -> None:
        await self.peer.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    def sent(self, method: str) -> list[Message]:
        return [
            message["params"] for message in self.peer.messages if message.get("method") == method
        ]


async def codex_thread(
    peer: JsonLinesPeer, cli: Cli, config: Message | None = None
) -> tuple[Rpc, str]:
    rpc = Rpc(peer)
    client = {"name": "tests", "version": "1"}
    capabilities = {"experimentalApi": True}
    await rpc.call("initialize", {"clientInfo": client, "capabilities": capabilities})
    await peer.send({"method": "initialized"})
    thread = await rpc.call("thread/start", {"cwd": str(cli.cwd), "config": config or {}})
    return rpc, thread["thread"]["id"]


async def codex_turn(rpc: Rpc, thread: str, text: str, *before: Message) -> str:
    content = [*before, {"type": "text", "text": text}]
    started = await rpc.call("turn/start", {"threadId": thread, "input": content})
    turn_id: str = started["turn"]["id"]
    return turn_id


async def test_codex_answers_hello(codex_cli: Cli, model_server: ModelServer) -> None:
    async with running(codex_cli) as peer:
        rpc, thread = await codex_thread(peer, codex_cli)
        await codex_turn(rpc, thread, "hello")
        ended = await rpc.message("turn/completed")
        deltas = rpc.sent("item/agentMessage/delta")
    assert ended["params"]["turn"]["status"] == "completed"
    assert "".join(delta["delta"] for delta in deltas) == "Hello from the model."
    assert model_server.what_the_model_was_told() == ["hello"]


async def test_codex_asks_before_it_runs_a_command_outside_its_sandbox(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    question_method = "item/commandExecution/requestApproval"
    async with running(codex_cli) as peer:
        rpc, thread = await codex_thread(peer, codex_cli)
        await codex_turn(rpc, thread, "run: touch f")
        question = await rpc.message(question_method)
        assert "touch f" in question["params"]["command"]
        await rpc.answer(question, {"decision": "decline"})
        await rpc.message("turn/completed")
        assert "rejected by user" in (model_server.last_tool_result() or "")
        assert not (codex_cli.cwd / "f").exists()

        await codex_turn(rpc, thread, "run: touch f")
        await rpc.answer(await rpc.message(question_method), {"decision": "accept"})
        await rpc.message("turn/completed")
    assert (codex_cli.cwd / "f").exists()


async def test_codex_asks_before_it_writes_outside_its_sandbox(
    codex_cli: Cli, tmp_path: Path
) -> None:
    outside = tmp_path / "codex" / "outside.txt"
    async with running(codex_cli) as peer:
        rpc, thread = await codex_thread(peer, codex_cli, {"sandbox_mode": "read-only"})
        await codex_turn(rpc, thread, f"write: {outside}")
        question = await rpc.message("item/fileChange/requestApproval")
        assert not outside.exists()
        await rpc.answer(question, {"decision": "accept"})
        await rpc.message("turn/completed")
    assert outside.read_text() == "written by the model\n"


async def test_codex_leaves_a_slow_model_when_it_is_interrupted(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    async with running(codex_cli) as peer:
        rpc, thread = await codex_thread(peer, codex_cli)
        turn_id = await codex_turn(rpc, thread, "slow")
        await rpc.message("item/agentMessage/delta")
        await rpc.call("turn/interrupt", {"threadId": thread, "turnId": turn_id})
        ended = await rpc.message("turn/completed")
        assert ended["params"]["turn"]["status"] == "interrupted"
        await model_server.reaches(lambda: model_server.requests[0].client_left)


async def test_codex_tells_of_a_retry_and_shows_the_model_an_image(codex_cli: Cli) -> None:
    async with running(codex_cli) as peer:
        rpc, thread = await codex_thread(peer, codex_cli)
        await codex_turn(rpc, thread, "retry")
        again = await rpc.message("error")
        assert again["params"]["willRetry"] is True
        ended = await rpc.message("turn/completed")
        assert ended["params"]["turn"]["items"][-1]["text"] == "It worked the second time."

        image = {"type": "image", "url": f"data:image/png;base64,{PIXEL}"}
        await codex_turn(rpc, thread, "hello", image)
        ended = await rpc.message("turn/completed")
        text = ended["params"]["turn"]["items"][-1]["text"]
        assert text == "I received image/png, 70 bytes.\nHello from the model."


async def test_codex_asks_before_it_calls_a_tool_of_an_mcp_server(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    """It asks by an elicitation, not by a request for approval."""
    config = {"mcp_servers": {"sums": {"command": SUMS[0], "args": SUMS[1:]}}}
    async with running(codex_cli) as peer:
        rpc, thread = await codex_thread(peer, codex_cli, config)
        await codex_turn(rpc, thread, 'mcp: sums add {"a": 2, "b": 3}')
        question = await rpc.message("mcpServer/elicitation/request")
        assert question["params"]["_meta"]["codex_approval_kind"] == "mcp_tool_call"
        await rpc.answer(question, {"action": "accept", "content": {}})
        await rpc.message("turn/completed")
    assert (model_server.last_tool_result() or "").endswith("Output:\n5")


async def opencode_session(peer: JsonLinesPeer, cli: Cli, *mcp_servers: Message) -> tuple[Rpc, str]:
    rpc = Rpc(peer)
    await rpc.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = await rpc.call("session/new", {"cwd": str(cli.cwd), "mcpServers": mcp_servers})
    return rpc, session["sessionId"]


def prompt(session: str, text: str, *before: Message) -> Message:
    return {"sessionId": session, "prompt": [*before, {"type": "text", "text": text}]}


@pytest.mark.soak
async def test_opencode_speaks_asks_retries_shows_an_image_uses_a_server_and_is_cancelled(
    opencode_cli: Cli, model_server: ModelServer
) -> None:
    """In one process: it needs seconds to start."""
    sums = {"name": "sums", "command": SUMS[0], "args": SUMS[1:], "env": []}
    async with running(opencode_cli) as peer:
        rpc, session = await opencode_session(peer, opencode_cli, sums)

        async def said(text: str, *before: Message) -> str:
            first = len(rpc.sent("session/update"))
            await rpc.call("session/prompt", prompt(session, text, *before))
            updates = [update["update"] for update in rpc.sent("session/update")[first:]]
            chunks = [u for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
            return "".join(chunk["content"]["text"] for chunk in chunks)

        assert await said("hello") == "Hello from the model."
        assert model_server.what_the_model_was_told() == ["hello"]
        for kind, is_run in (("reject_once", False), ("allow_once", True)):
            turn = await rpc.begin("session/prompt", prompt(session, "run: touch f"))
            question = await rpc.message("session/request_permission")
            options = {option["kind"]: option for option in question["params"]["options"]}
            chosen = {"outcome": "selected", "optionId": options[kind]["optionId"]}
            await rpc.answer(question, {"outcome": chosen})
            await rpc.result(turn)
            assert (opencode_cli.cwd / "f").exists() is is_run
        assert await said("retry") == "It worked the second time."
        image = {"type": "image", "mimeType": "image/png", "data": PIXEL}
        assert (await said("hello", image)).startswith("I received image/png, 70 bytes.")
        assert await said('mcp: sums add {"a": 2, "b": 3}') == "The tool returned: 5"

        turn = await rpc.begin("session/prompt", prompt(session, "slow"))
        await peer.receive(lambda message: "step" in json.dumps(message))
        await peer.send(
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        )
        assert (await rpc.result(turn))["stopReason"] == "cancelled"
        await model_server.reaches(lambda: model_server.requests[-1].client_left)


async def test_claude_sees_its_environment_alone(claude_cli: Cli) -> None:
    async with running(claude_cli) as peer:
        claude = Claude(peer)
        await claude.say("hello")
        await claude.result()
        process = psutil.Process(peer.process.pid)
        assert process.environ() == claude_cli.environment
