"""The real CLIs start in their explicit environment, and ask before they run a command."""

from __future__ import annotations

from tests.runtime.clis import Cli, JsonLinesPeer, Message, running
from tests.runtime.model_server import ModelServer


class Claude:
    """Raw stream-json."""

    def __init__(self, peer: JsonLinesPeer) -> None:
        self.peer = peer

    async def say(self, text: str) -> None:
        message = {"role": "user", "content": text}
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


async def codex_thread(peer: JsonLinesPeer, cli: Cli) -> tuple[Rpc, str]:
    rpc = Rpc(peer)
    client = {"name": "tests", "version": "1"}
    capabilities = {"experimentalApi": True}
    await rpc.call("initialize", {"clientInfo": client, "capabilities": capabilities})
    await peer.send({"method": "initialized"})
    thread = await rpc.call("thread/start", {"cwd": str(cli.cwd)})
    return rpc, thread["thread"]["id"]


async def codex_turn(rpc: Rpc, thread: str, text: str) -> None:
    content = [{"type": "text", "text": text}]
    await rpc.call("turn/start", {"threadId": thread, "input": content})


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


async def opencode_session(peer: JsonLinesPeer, cli: Cli) -> tuple[Rpc, str]:
    rpc = Rpc(peer)
    await rpc.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = await rpc.call("session/new", {"cwd": str(cli.cwd), "mcpServers": []})
    return rpc, session["sessionId"]


def prompt(session: str, text: str) -> Message:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


async def test_opencode_answers_hello(opencode_cli: Cli, model_server: ModelServer) -> None:
    async with running(opencode_cli) as peer:
        rpc, session = await opencode_session(peer, opencode_cli)
        ended = await rpc.call("session/prompt", prompt(session, "hello"))
        updates = [update["update"] for update in rpc.sent("session/update")]
    text = [
        update["content"]["text"]
        for update in updates
        if update["sessionUpdate"] == "agent_message_chunk"
    ]
    assert ended["stopReason"] == "end_turn"
    assert "".join(text) == "Hello from the model."
    assert model_server.what_the_model_was_told() == ["hello"]


async def test_opencode_asks_before_it_runs_a_command(
    opencode_cli: Cli, model_server: ModelServer
) -> None:
    async with running(opencode_cli) as peer:
        rpc, session = await opencode_session(peer, opencode_cli)
        for kind, is_run in (("reject_once", False), ("allow_once", True)):
            turn = await rpc.begin("session/prompt", prompt(session, "run: touch f"))
            question = await rpc.message("session/request_permission")
            options = {option["kind"]: option for option in question["params"]["options"]}
            chosen = {"outcome": "selected", "optionId": options[kind]["optionId"]}
            await rpc.answer(question, {"outcome": chosen})
            await rpc.result(turn)
            assert (opencode_cli.cwd / "f").exists() is is_run
    assert model_server.last_tool_result() is not None
