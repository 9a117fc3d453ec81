from __future__ import annotations

import pytest

from arp.client.errors import (
    LinkLost,
    ServerRefused,
    SessionDeleted,
    coded_error,
    lost_by_close,
    lost_by_refusal,
    lost_by_status,
    printable,
    reason_in,
)
from arp.protocol.errors import (
    AgentFailed,
    ArpError,
    ErrorPayload,
    InvalidComponent,
    InvalidMessage,
    PermissionDenied,
    RateLimited,
    RemoteError,
    ResourceLimit,
    SessionBusy,
    SessionNotFound,
    Unauthenticated,
)


@pytest.mark.parametrize("code", [1001, 1002, 1005, 1006, 1011, 1012, 1013, 4000])
def test_close_codes_that_pass_are_worth_coming_back_for(code: int) -> None:
    lost = lost_by_close(code, "restarting")
    assert lost.error is None
    assert lost.reason == f"closed with {code}: restarting"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1000, SessionDeleted),
        (1003, ServerRefused),
        (1008, PermissionDenied),
        (1009, ServerRefused),
        (1010, ServerRefused),
    ],
)
def test_close_codes_that_would_come_again_end_it(code: int, kind: type[ArpError]) -> None:
    lost = lost_by_close(code, "")
    assert type(lost.error) is kind
    assert lost.reason == f"closed with {code}"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_pass_are_worth_coming_back_for(status: int) -> None:
    lost = lost_by_status(status, "http://h/", b"wait")
    assert (lost.error, lost.unavailable) == (None, True)
    assert lost.reason == f"HTTP {status} from http://h/: wait"


@pytest.mark.parametrize(
    ("status", "kind", "unavailable"),
    [
        (401, Unauthenticated, False),
        (403, PermissionDenied, True),
        (404, ServerRefused, True),
        (302, ServerRefused, True),
    ],
)
def test_statuses_that_would_come_again_end_it(
    status: int, kind: type[ArpError], unavailable: bool
) -> None:
    lost = lost_by_status(status, "http://h/")
    assert type(lost.error) is kind
    assert lost.unavailable is unavailable


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (4, ResourceLimit),
        (8, SessionNotFound),
        (11, InvalidMessage),
        (12, InvalidComponent),
        (14, Unauthenticated),
        (16, RateLimited),
        (17, SessionBusy),
        (18, AgentFailed),
    ],
)
def test_coded_error_has_the_class_of_its_code(code: int, kind: type[ArpError]) -> None:
    error = coded_error(ErrorPayload("what", code, "where"))
    assert type(error) is kind
    assert (error.message, error.detail, int(error.code)) == ("what", "where", code)


@pytest.mark.parametrize("code", [98, 99, -1])
def test_code_without_a_class_is_told_in_words(code: int) -> None:
    error = coded_error(ErrorPayload("what", code))
    assert type(error) is RemoteError
    assert error.message == f"what (code {code})"


@pytest.mark.parametrize("code", [7, 8, 11, 14, 15])
def test_hello_that_would_be_refused_again_ends_it(code: int) -> None:
    lost = lost_by_refusal(ErrorPayload("no\x07", code))
    assert lost.reason == "our hello was refused: no␇"
    assert lost.error is not None
    assert lost.error.code == code


@pytest.mark.parametrize("code", [4, 16, 17, 19, 99])
def test_hello_that_was_refused_for_now_is_said_again(code: int) -> None:
    assert lost_by_refusal(ErrorPayload("later", code)).error is None
    assert lost_by_refusal(ErrorPayload("later", 14, retryable=True)).error is None


def test_reason_of_a_peer_carries_no_control_characters_and_is_cut() -> None:
    assert printable("a\x1b[31mb\r\n\x07 \u202ec\n") == "a␛[31mb ␇ <U+202E>c"
    assert len(printable("x" * 1000)) == 200
    assert lost_by_close(1011, "\x1b]0;title\x07").reason == "closed with 1011: ␛]0;title␇"


def test_body_of_a_refusal_is_told_in_the_servers_own_words() -> None:
    body = b'{"v":1,"type":"error","payload":{"error":"a token is needed","code":14}}'
    assert reason_in(body) == "a token is needed"
    assert reason_in(b"[" + body + b',{"v":1,"type":"ack","id":"x"},' + body + b"]") == (
        "a token is needed; a token is needed"
    )
    assert reason_in(b"<h1>no\xff\x1b</h1>") == "<h1>no\ufffd␛</h1>"
    assert (
        lost_by_status(401, "http://h/", body).reason
        == "HTTP 401 from http://h/: a token is needed"
    )


def test_link_lost_says_its_reason() -> None:
    assert str(LinkLost("gone")) == "gone"
