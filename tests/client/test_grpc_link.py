"""gRPC as the client sees it: what each status means (the rest: `test_grpc_port.py`)."""

from __future__ import annotations

import grpc
import pytest

from arp.client.errors import ServerRefused, SessionDeleted
from arp.client.links.grpc_link import lost_by_code
from arp.protocol.errors import PermissionDenied, Unauthenticated

STATUS = grpc.StatusCode


@pytest.mark.parametrize(
    ("code", "close_code", "error"),
    [
        (STATUS.UNAUTHENTICATED, 0, Unauthenticated),
        (STATUS.PERMISSION_DENIED, 0, PermissionDenied),
        (STATUS.UNIMPLEMENTED, 0, ServerRefused),
        (STATUS.INVALID_ARGUMENT, 0, ServerRefused),
        (STATUS.UNAVAILABLE, 0, None),
        (STATUS.DEADLINE_EXCEEDED, 0, None),
        (STATUS.CANCELLED, 0, None),
        (STATUS.INTERNAL, 0, None),
        (STATUS.RESOURCE_EXHAUSTED, 0, None),
        (STATUS.OK, 1000, SessionDeleted),
        (STATUS.PERMISSION_DENIED, 1008, PermissionDenied),
        (STATUS.INVALID_ARGUMENT, 1003, ServerRefused),
        (STATUS.UNAVAILABLE, 1012, None),
    ],
)
def test_a_status_decides_about_coming_back(
    code: grpc.StatusCode, close_code: int, error: type[Exception] | None
) -> None:
    """A close code of ours says more than the status."""
    lost = lost_by_code(code, "why\x1b", close_code, "grpc:h:1")
    assert type(lost.error) is (error or type(None))
    assert "why" in lost.reason
    assert "\x1b" not in lost.reason
