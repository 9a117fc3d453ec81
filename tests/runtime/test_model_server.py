"""The fake model server speaks each dialect as its clients want it, and keeps what it was told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.runtime.model_server import ModelServer

Object = dict[str, Any]

HTTP = httpx.Client(verify=False)  # a server without TLS

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)


class Messages:
    """A client of Anthropic Messages."""

    path = "/v1/messages?beta=true"
    shell = "Bash"
    command = "command"

    def body(self, *turns: Object, tools: bool = True) -> Object:
        tool = {"name": self.shell, "input_schema": {"type": "object"}}
        body = {"model": "fake-1", "max_tokens": 100, "messages": list(turns), "stream": True}
        return {**body, "tools": [tool]} if tools else body

    def user(self, text: str, *, image: bool = False) -> Object:
        content: list[Object] = [{"type": "text", "text": text}]
        if image:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            content.insert(0, {"type": "image", "source": source})
        return {"role": "user", "content": content}

    def called(self, call_id: str, arguments: Object) -> Object:
        call = {"type": "tool_use", "id": call_id, "name": self.shell, "input": arguments}
        return {"role": "assistant", "content": [call]}

    def returned(self, call_id: str, text: str) -> Object:
        result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return {"role": "user", "content": [result]}

    def text(self, events: list[Object]) -> str:
        return "".join(e["delta"].get("text", "") for e in self._deltas(events))

    def thinking(self, events: list[Object]) -> str:
        return "".join(e["delta"].get("thinking", "") for e in self._deltas(events))

    def _deltas(self, events: list[Object]) -> list[Object]:
        return [event for event in events if event["type"] == "content_block_delta"]

    def calls(self, events: list[Object]) -> list[tuple[str, str, Object]]:
        starts = [event for event in events if event["type"] == "content_block_start"]
        found = []
        for start in starts:
            block = start["content_block"]
            if block["type"] == "tool_use":
                parts = [d for d in self._deltas(events) if d["index"] == start["index"]]
                arguments = "".join(part["delta"]["partial_json"] for part in parts)
                found.append((block["id"], block["name"], json.loads(arguments)))
        return found

    def is_whole(self, events: list[Object]) -> bool:
        return [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]

    def text_at_once(self, answer: Object) -> str:
        return "".join(block["text"] for block in answer["content"])


class Responses:
    """A client of OpenAI Responses."""

    path = "/v1/responses"
    shell = "exec_command"
    command = "cmd"

    def body(self, *turns: Object, tools: bool = True) -> Object:
        tool = {"type": "function", "name": self.shell, "parameters": {"type": "object"}}
        return {
            "model": "gpt-5.5",
            "input": list(turns),
            "stream": True,
            "tools": [tool, {"type": "web_search"}] if tools else [],
        }

    def user(self, text: str, *, image: bool = False) -> Object:
        content: list[Object] = [{"type": "input_text", "text": text}]
        if image:
            url = f"data:image/png;base64,{PIXEL}"
            content.insert(0, {"type": "input_image", "image_url": url})
        return {"type": "message", "role": "user", "content": content}

    def called(self, call_id: str, arguments: Object) -> Object:
        call = {"call_id": call_id, "name": self.shell, "arguments": json.dumps(arguments)}
        return {"type": "function_call", **call}

    def returned(self, call_id: str, text: str) -> Object:
        return {"type": "function_call_output", "call_id": call_id, "output": text}

    def text(self, events: list[Object]) -> str:
        return self._joined(events, "response.output_text.delta")

    def thinking(self, events: list[Object]) -> str:
        return self._joined(events, "response.reasoning_summary_text.delta")

    def _joined(self, events: list[Object], kind: str) -> str:
        return "".join(event["delta"] for event in events if event["type"] == kind)

    def calls(self, events: list[Object]) -> list[tuple[str, str, Object]]:
        items = [e["item"] for e in events if e["type"] == "response.output_item.done"]
        return [
            (item["call_id"], item["name"], json.loads(item["arguments"]))
            for item in items
            if item["type"] == "function_call"
        ]

    def is_whole(self, events: list[Object]) -> bool:
        last = events[-1]
        total = last["response"]["usage"]["total_tokens"]
        return (last["type"], total) == ("response.completed", 18)

    def text_at_once(self, answer: Object) -> str:
        return "".join(part["text"] for item in answer["output"] for part in item["content"])


class Chat:
    """A client of OpenAI Chat Completions."""

    path = "/v1/chat/completions"
    shell = "bash"
    command = "command"

    def body(self, *turns: Object, tools: bool = True) -> Object:
        tool = {"type": "function", "function": {"name": self.shell, "parameters": {}}}
        body = {"model": "fake-1", "messages": list(turns), "stream": True}
        return {**body, "tools": [tool]} if tools else body

    def user(self, text: str, *, image: bool = False) -> Object:
        content: list[Object] = [{"type": "text", "text": text}]
        if image:
            url = {"url": f"data:image/png;base64,{PIXEL}"}
            content.insert(0, {"type": "image_url", "image_url": url})
        return {"role": "user", "content": content}

    def called(self, call_id: str, arguments: Object) -> Object:
        function = {"name": self.shell, "arguments": json.dumps(arguments)}
        call = {"id": call_id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def returned(self, call_id: str, text: str) -> Object:
        return {"role": "tool", "tool_call_id": call_id, "content": text}

    def text(self, events: list[Object]) -> str:
        return "".join(delta.get("content", "") for delta in self._deltas(events))

    def thinking(self, events: list[Object]) -> str:
        return "".join(delta.get("reasoning_content", "") for delta in self._deltas(events))

    def _deltas(self, events: list[Object]) -> list[Object]:
        return [choice["delta"] for event in events for choice in event["choices"]]

    def calls(self, events: list[Object]) -> list[tuple[str, str, Object]]:
        calls = [call for d in self._deltas(events) for call in d.get("tool_calls", [])]
        assert [call["index"] for call in calls] == list(range(len(calls)))
        return [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in calls
        ]

    def is_whole(self, events: list[Object]) -> bool:
        reasons = [choice["finish_reason"] for event in events for choice in event["choices"]]
        return reasons[-1] is not None and events[-1]["usage"]["total_tokens"] == 18

    def text_at_once(self, answer: Object) -> str:
        text: str = answer["choices"][0]["message"]["content"]
        return text


Client = Messages | Responses | Chat


@pytest.fixture(params=[Messages, Responses, Chat])
def client(request: pytest.FixtureRequest) -> Client:
    made: Client = request.param()
    return made


def events_of(lines: Iterator[str]) -> Iterator[Object]:
    """Yield the data of each server-sent event."""
    for line in lines:
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def post(server: ModelServer, client: Client, body: Object) -> httpx.Response:
    return HTTP.post(server.address + client.path, json=body)


def stream(server: ModelServer, client: Client, *turns: Object) -> list[Object]:
    answer = post(server, client, client.body(*turns))
    assert answer.headers["content-type"] == "text/event-stream"
    events = list(events_of(iter(answer.text.splitlines())))
    assert client.is_whole(events)
    return events


def test_text_comes_in_pieces_that_join_to_the_whole(
    model_server: ModelServer, client: Client
) -> None:
    events = stream(model_server, client, client.user("echo: one\n\n  two three "))
    assert client.text(events) == "one\n\n  two three"
    assert sum(client.text([event]) != "" for event in events) == 3


def test_thinking_comes_before_the_text(model_server: ModelServer, client: Client) -> None:
    events = stream(model_server, client, client.user("think"))
    assert client.thinking(events) == "I think before I answer."
    assert client.text(events) == "I have thought."


def test_a_command_is_called_and_its_result_is_quoted(
    model_server: ModelServer, client: Client
) -> None:
    asked = client.user("run: touch f")
    [(call_id, name, arguments)] = client.calls(stream(model_server, client, asked))
    assert (name, arguments[client.command]) == (client.shell, "touch f")
    assert model_server.last_tool_result() is None

    called = client.called(call_id, arguments)
    result = client.returned(call_id, "not on a Monday")
    events = stream(model_server, client, asked, called, result)
    assert client.text(events) == "The tool returned: not on a Monday"
    assert client.calls(events) == []
    assert model_server.last_tool_result() == "not on a Monday"
    assert model_server.what_the_model_was_told() == ["run: touch f", "not on a Monday"]


def test_two_commands_are_called_in_one_answer(model_server: ModelServer, client: Client) -> None:
    calls = client.calls(stream(model_server, client, client.user("two: touch a @@ touch b")))
    assert [call[2][client.command] for call in calls] == ["touch a", "touch b"]
    assert calls[0][0] != calls[1][0]


def test_steps_are_called_one_after_the_other(model_server: ModelServer, client: Client) -> None:
    turns = [client.user("steps: touch a @@ touch b")]
    for command in ("touch a", "touch b"):
        [(call_id, _, arguments)] = client.calls(stream(model_server, client, *turns))
        assert arguments[client.command] == command
        turns += [client.called(call_id, arguments), client.returned(call_id, "done " + command)]
    text = client.text(stream(model_server, client, *turns))
    assert text == "The tool returned: done touch a\n\nThe tool returned: done touch b"


def test_a_text_after_a_tool_result_is_a_new_turn(
    model_server: ModelServer, client: Client
) -> None:
    call = client.called("c1", {client.command: "touch f"})
    turns = [client.user("run: touch f"), call, client.returned("c1", "done")]
    assert client.text(stream(model_server, client, *turns, client.user("hello"))) == (
        "Hello from the model."
    )


def test_the_model_names_the_media_type_that_it_received(
    model_server: ModelServer, client: Client
) -> None:
    events = stream(model_server, client, client.user("hello", image=True))
    assert client.text(events) == "I received image/png, 70 bytes.\nHello from the model."


def test_texts_that_a_cli_adds_do_not_count(model_server: ModelServer, client: Client) -> None:
    added = client.user("<system-reminder>fail 400</system-reminder>")
    events = stream(model_server, client, client.user("hello"), added)
    assert client.text(events) == "Hello from the model."
    assert model_server.what_the_model_was_told() == ["hello"]


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_failure_has_its_status_and_an_error_that_clients_know(
    model_server: ModelServer, client: Client, status: int
) -> None:
    answer = post(model_server, client, client.body(client.user(f"fail {status}")))
    kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    kinds[500] = "api_error" if isinstance(client, Messages) else "server_error"
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == kinds[status]
    assert answer.json()["error"]["message"] == f"the script says: fail {status}"


def test_a_retry_works_the_second_time(model_server: ModelServer, client: Client) -> None:
    body = client.body(client.user("retry"))
    assert post(model_server, client, body).status_code == 503
    assert client.text(stream(model_server, client, client.user("retry"))) == (
        "It worked the second time."
    )


def test_a_request_without_tools_gets_plain_text(model_server: ModelServer, client: Client) -> None:
    """It is the CLI's own, such as for a title: it must not fail in place of the turn."""
    for text in ("fail 400", "retry", "run: touch f"):
        body = client.body(client.user(text), tools=False)
        events = list(events_of(iter(post(model_server, client, body).text.splitlines())))
        assert client.text(events) == f"You said: {text}"
        assert client.calls(events) == []
    assert len(model_server.helper_requests) == 3
    assert model_server.requests == []


def test_an_answer_that_is_not_streamed_is_one_object(
    model_server: ModelServer, client: Client
) -> None:
    body = {**client.body(client.user("hello")), "stream": False}
    answer = post(model_server, client, body)
    assert client.text_at_once(answer.json()) == "Hello from the model."


def test_a_slow_answer_ends_when_its_client_leaves(
    model_server: ModelServer, client: Client
) -> None:
    address, body = model_server.address + client.path, client.body(client.user("slow"))
    with HTTP.stream("POST", address, json=body) as answer:
        events = []
        for event in events_of(answer.iter_lines()):
            events.append(event)
            if client.text(events).startswith("step 1"):
                break
        assert model_server.requests[0].is_streaming
    model_server.wait_for(lambda: model_server.requests[0].client_left)
    assert not model_server.requests[0].is_streaming


def test_a_server_that_is_closed_ends_its_slow_answers(client: Client) -> None:
    with ModelServer() as server:
        address, body = server.address + client.path, client.body(client.user("slow"))
        with HTTP.stream("POST", address, json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.__exit__(None, None, None)
            assert not client.text(list(events_of(lines))).endswith("step 300")
    assert server.requests[0].client_left


def test_a_body_in_chunks_is_read(model_server: ModelServer, client: Client) -> None:
    data = json.dumps(client.body(client.user("hello"))).encode()
    half = len(data) // 2
    answer = HTTP.post(
        model_server.address + client.path,
        content=iter([data[:half], data[half:]]),
        headers={"x-api-key": "test"},
    )
    assert client.text(list(events_of(iter(answer.text.splitlines())))) == "Hello from the model."
    assert model_server.requests[0].headers["x-api-key"] == "test"


def test_what_cannot_be_read_fails_the_test_that_sent_it(client: Client) -> None:
    with pytest.raises(AssertionError, match="could not read"), ModelServer() as server:
        assert post(server, client, {"model": "fake-1"}).status_code == 500


def test_probes_are_answered_and_kept(model_server: ModelServer) -> None:
    assert HTTP.head(f"{model_server.address}/").status_code == 200
    assert HTTP.head(f"{model_server.address}/api/hello").status_code == 200
    models = HTTP.get(f"{model_server.openai_address}/models").json()
    assert [model["id"] for model in models["data"]] == ["fake-1", "fake-2", "gpt-5.5"]
    counted = HTTP.post(f"{model_server.address}/v1/messages/count_tokens", json={})
    assert counted.json() == {"input_tokens": 11}
    assert model_server.other_requests == [
        "HEAD /",
        "HEAD /api/hello",
        "GET /v1/models",
        "POST /v1/messages/count_tokens",
    ]


def test_what_does_not_come_to_hold_is_told_with_what_was_requested(
    model_server: ModelServer,
) -> None:
    stream(model_server, Chat(), Chat().user("hello"))
    with pytest.raises(AssertionError, match=r"within 0\.01 s; requests: \['chat: hello'\]"):
        model_server.wait_for(lambda: model_server.last_tool_result(), within_s=0.01)
