"""One TLS context for all HTTP clients of a test process.

httpx reads all certificate authorities for each new client, also for `http://` addresses. That
takes 30 ms of processor time, more than most tests of a server that runs in a thread.
"""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

from httpx import _config
from httpx._transports import default

_create = _config.create_ssl_context


def share() -> None:
    """Make clients that verify certificates in the default way share their context."""
    vars(default)["create_ssl_context"] = _shared


def _shared(
    verify: ssl.SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True
) -> ssl.SSLContext:
    if verify is not True or cert is not None:
        return _create(verify=verify, cert=cert, trust_env=trust_env)
    # A test may name other authorities for as long as it runs.
    authorities = (os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return _of_authorities(trust_env, *authorities)


@cache
def _of_authorities(trust_env: bool, *_: str | None) -> ssl.SSLContext:
    return _create(trust_env=trust_env)
