"""Share one TLS context between all HTTP clients of a test process.

httpx, and httpx2 (which the model SDKs use), read all certificate authorities for each new client,
even for `http://` addresses. This takes 30 ms of processor time, which is more than most tests take
with a server that runs in a thread.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any


def share() -> None:
    """Make all clients that verify certificates in the default way use the same context."""
    for library in ("httpx", "httpx2"):
        with suppress(ModuleNotFoundError):  # older SDKs have no httpx2
            default = vars(import_module(f"{library}._transports.default"))
            default["create_ssl_context"] = sharing(default["create_ssl_context"])


def sharing(create: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
    """Add a cache of the default contexts to the function with which a library creates contexts."""

    @cache
    def shared(trust_env: bool, *_: str | None) -> ssl.SSLContext:
        return create(trust_env=trust_env)

    def context(
        verify: ssl.SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True
    ) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return create(verify=verify, cert=cert, trust_env=trust_env)
        # A test may set other authorities in the environment. They are part of the key of the
        # cache, so that such a test does not get the context of another test.
        return shared(trust_env, *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))

    return context
