"""The library of gRPC, without its `fork` handlers.

Write `from arp.net.grpc_library import grpc`, never `import grpc`; an import contract checks it.

Theory of operation. uvloop starts a program with `fork`, and gRPC's handlers then try to repair the
state of gRPC in the child. If calls are running, the child crashes (SIGSEGV) or hangs: the program
never starts, and its parent sees a child that was ended by a signal. Here an `exec` follows each
`fork` at once, so no repair is needed. gRPC reads the setting when it is imported; afterwards the
environment is restored, because our programs inherit it. Code that imports gRPC before this module
keeps the handlers, unless it sets `GRPC_ENABLE_FORK_SUPPORT=0`.

Source: `doc/fork_support.md` of gRPC.
"""

from __future__ import annotations

import os

_SETTING = "GRPC_ENABLE_FORK_SUPPORT"
_before = os.environ.get(_SETTING)
os.environ[_SETTING] = "0"
try:
    import grpc as grpc
finally:
    if _before is None:
        del os.environ[_SETTING]
    else:
        os.environ[_SETTING] = _before
