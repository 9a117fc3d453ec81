from __future__ import annotations

import json
import ssl
from typing import Any

import httpx
import pytest

from arp.client.address import parse_address
from arp.client.errors import LinkLost, ServerRefused
from arp.client.links.http_access import answer_frame, lost_by_network, new_http_client
from arp.client.options import LinkSettings

URL = "http://h/_arp/v1/input"


def answered(status: int, body: Any) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    frame = answer_frame(status, raw, URL, "i1")
    return None if frame is None else json.loads(frame)


def error(code: int, **more: Any) -> dict[str, Any]:
    return {"v": 1, "type": "error", "payload": {"error": "no", "code": code, **more}}


def test_accepted_input_gives_the_answer_as_it_is() -> None:
    assert answered(200, [{"type": "ack", "id": "i1"}]) == [{"type": "ack", "id": "i1"}]
    assert answer_frame(200, b"not json", URL, "i1") == b"not json"
    assert answered(202, b"") is None


def test_refusal_in_arp_is_taken_to_answer_this_input() -> None:
    assert answered(400, error(11)) == [error(11, id="i1")]
    assert answered(429, [error(16, id="other")]) == [error(16, id="other")]
    assert answered(500, error(19)) == [error(19, id="i1")]


def test_answer_that_refuses_and_acknowledges_keeps_both() -> None:
    ack = {"v": 1, "type": "ack", "id": "i0"}
    assert answered(400, [ack, error(11)]) == [ack, error(11, id="i1")]


@pytest.mark.parametrize(("status", "code"), [(401, 14), (403, 15), (413, 4), (404, 11), (301, 11)])
def test_refusal_by_something_else_becomes_a_coded_error(status: int, code: int) -> None:
    assert answered(status, b"<h1>no\x1b</h1>") == [
        {
            "v": 1,
            "type": "error",
            "payload": {
                "error": f"HTTP {status} from {URL}: <h1>no␛</h1>",
                "code": code,
                "id": "i1",
            },
        }
    ]


def test_refusal_without_a_word_says_the_status() -> None:
    assert answered(404, b"")[0]["payload"]["error"] == f"HTTP 404 from {URL}"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_failure_that_passes_is_worth_another_try(status: int) -> None:
    with pytest.raises(LinkLost) as lost:
        answered(status, b"later")
    assert lost.value.error is None


@pytest.mark.parametrize("status", [502, 503, 504])
def test_gateway_that_speaks_arp_is_worth_another_try_all_the_same(status: int) -> None:
    with pytest.raises(LinkLost):
        answered(status, error(17))


def test_network_failure_is_worth_coming_back_for() -> None:
    lost = lost_by_network(httpx.ConnectError("refused"), URL)
    assert (lost.reason, lost.error) == (f"{URL}: refused", None)
    assert lost_by_network(httpx.ReadError(""), URL).reason == f"{URL}: ReadError"
    assert "no data arrived in time" in lost_by_network(httpx.ReadTimeout(""), URL).reason


def test_certificate_that_is_not_trusted_ends_it() -> None:
    cause = ssl.SSLCertVerificationError("x")
    cause.verify_message = "self-signed certificate"
    failure = httpx.ConnectError("tls")
    failure.__cause__ = OSError("wrapped")
    failure.__cause__.__context__ = cause
    lost = lost_by_network(failure, URL)
    assert isinstance(lost.error, ServerRefused)
    assert "self-signed certificate" in lost.reason


async def test_token_is_in_the_header_and_not_in_the_url() -> None:
    async with new_http_client(parse_address("http://h"), LinkSettings(token="tok")) as client:
        request = client.build_request("GET", URL)
    assert request.headers["Authorization"] == "Bearer tok"
    assert "tok" not in str(request.url)


async def test_no_proxy_stands_between_us_and_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:1")
    for url, proxied in (("http://127.0.0.1:9", False), ("http://example.com", True)):
        async with new_http_client(parse_address(url), LinkSettings()) as client:
            assert any(mount is not None for mount in client._mounts.values()) is proxied
