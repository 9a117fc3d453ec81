"""A value that an enum does not have is refused with the allowed ones: everywhere the same way."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from arp.protocol.framing.protobuf import ProtoError
from arp.runtime.contract import types as ari
from arp.runtime.contract.enum_values import refusal_of
from arp.runtime.contract.errors import AriCode, InvalidArgument
from arp.runtime.contract.services import RuntimeService
from arp.runtime.plain.fake import FakeRuntime
from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions
from arp.runtime.remote.proto_codec import decode, encode
from tests.runtime import test_grpc, test_http

ODD: Any = "maybe"
STATES = "created, idle, running, waiting, failed, closed"

REQUESTS: list[tuple[str, Any, str]] = [
    (
        "respond_permission",
        ari.RespondPermissionRequest("s", "r", ari.PermissionResponse(ODD)),
        "response.decision: expected one of allow, deny; got 'maybe'",
    ),
    (
        "send_message",
        ari.SendMessageRequest("s", ari.RuntimeMessage(role=ODD, content="x")),
        "message.role: expected one of user, assistant, tool, system; got 'maybe'",
    ),
    (
        "send_message",
        ari.SendMessageRequest(
            "s",
            ari.RuntimeMessage(parts=(ari.ContentPart("text", "x"), ari.ContentPart(ODD))),
        ),
        "message.parts[1].type: expected one of text, image, audio, file; got 'maybe'",
    ),
    (
        "create_session",
        ari.CreateSessionRequest(history=(ari.RuntimeMessage(role=ODD),)),
        "history[0].role: expected one of user, assistant, tool, system; got 'maybe'",
    ),
    (
        "list_sessions",
        ari.ListSessionsRequest(ari.SessionFilter(states=(ari.SessionState.IDLE, ODD))),
        f"filter.states[1]: expected one of {STATES}; got 'maybe'",
    ),
]


def without_numbers(text: str) -> str:
    """Return a text with `[...]` for each number: decoders do not tell it."""
    return text.replace("[0]", "[...]").replace("[1]", "[...]")


async def refusal(runtime: RuntimeService, method: str, request: Any) -> str:
    with pytest.raises(InvalidArgument) as refused:
        await getattr(runtime, method)(request)
    return refused.value.message


@pytest.mark.parametrize(("method", "request_", "wanted"), REQUESTS)
async def test_in_this_process(method: str, request_: Any, wanted: str) -> None:
    assert await refusal(FakeRuntime(), method, request_) == wanted


async def test_over_http() -> None:
    async with test_http.served(FakeRuntime()) as url, httpx.AsyncClient() as client:
        for method, request, wanted in REQUESTS:
            answer = await client.post(f"{url}/ari/v1/{method}", json=msgspec.to_builtins(request))
            assert answer.status_code == 400
            assert answer.json()["code"] == AriCode.INVALID_ARGUMENT
            told = answer.json()["message"]
            assert without_numbers(told) == without_numbers(f"{method}: {wanted}")


async def test_over_grpc() -> None:
    async with (
        test_grpc.served(FakeRuntime()) as address,
        test_grpc.connected(address) as remote,
    ):
        for method, request, wanted in REQUESTS:
            message = await refusal(remote, method, request)
            field, _, values = wanted.partition(": ")
            assert message.endswith(values)
            assert field.rpartition(".")[2].removesuffix("[1]") in message


def test_number_that_an_enum_does_not_have() -> None:
    known = encode(ari.SessionFilter(states=(ari.SessionState.IDLE,)))
    assert known.startswith(b"\x12\x01\x02")
    with pytest.raises(ProtoError) as refused:
        decode(ari.SessionFilter, b"\x12\x01\x09")
    assert str(refused.value) == (
        "SessionFilter.states: expected one of 1 (created), 2 (idle), 3 (running), 4 (waiting), "
        "5 (failed), 6 (closed); got 9"
    )


def test_options_of_claude_code() -> None:
    with pytest.raises(ValueError, match=r"setting_sources: .* user, project, local; got users"):
        ClaudeCodeOptions(setting_sources=("users",))  # type: ignore[arg-type]


def test_other_refusals_stay_as_they_are() -> None:
    assert refusal_of(ValueError("Expected `int`"), ari.Event) == "Expected `int`"
    assert refusal_of(ValueError("Invalid enum value 9"), AriCode) == (
        f"expected one of {', '.join(AriCode)}; got 9"
    )
