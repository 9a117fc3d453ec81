"""`named_runtime`: the runtime that a command line names, such as `claude-code`."""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from arp.runtime.errors import InvalidArgument, Unavailable
from arp.runtime.services import RuntimeService

NAMES = (
    "claude-code",
    "codex",
    "acp:COMMAND",
    "grpc(s)://HOST:PORT",
    "http(s)://HOST:PORT",
    "MODULE:NAME",
)
"""What can be named."""

OF_REMOTE = ("ARP_RUNTIME_TOKEN", "ARP_RUNTIME_CA", "ARP_RUNTIME_PLAINTEXT")
"""What a client takes for a remote runtime: its token, a file with authorities for TLS, and whether
the token may be sent without TLS."""

PASSED = (
    "HOME", "LANG", "LC_*", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "XDG_*",
)  # fmt: skip
"""Variables of the environment that every agent gets: where things are, no secrets of others."""

OWN: dict[str, tuple[str, ...]] = {
    "grpc": OF_REMOTE,
    "grpcs": OF_REMOTE,
    "http": OF_REMOTE,
    "https": OF_REMOTE,
    "claude-code": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("CODEX_*", "OPENAI_*"),
    "acp": ("ANTHROPIC_*", "CURSOR_*", "GEMINI_*", "GOOGLE_*", "OPENAI_*", "OPENCODE_*", "QWEN_*"),
}
"""Variables that an agent gets besides: its own settings and keys."""


def environment_of(
    name: str, environment: Mapping[str, str], passed: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables that an agent's process gets, and no others.

    Args:
        name: The runtime, as `NAMES` has it.
        environment: Of this process.
        passed: Names or patterns of further variables.
    """
    patterns = (*PASSED, *OWN.get(name.partition(":")[0], ()), *passed)
    return {
        key: value
        for key, value in environment.items()
        if any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
    }


class Adapter(NamedTuple):
    """Where an adapter is, which is imported only if it is named."""

    module: str
    kind: str
    extra: str
    """Empty: it needs none."""


ADAPTERS = {
    "claude-code": Adapter("arp.runtime.claude_code", "ClaudeCodeRuntime", "claude"),
    "codex": Adapter("arp.runtime.codex", "CodexRuntime", "codex"),
    "acp": Adapter("arp.runtime.acp", "AcpRuntime", ""),
}


def named_runtime(
    name: str, *, cwd: str | Path = ".", environment: Mapping[str, str] | None = None
) -> RuntimeService:
    """Return a runtime by its name.

    Args:
        name: One of `NAMES`; of `MODULE:NAME` the object is a runtime, or called without arguments
            to make one; a function of turns becomes a `FunctionRuntime`.
        cwd: Where its agents work.
        environment: The whole environment of their processes.

    Raises:
        InvalidArgument: There is none of that name.
        Unavailable: What it needs is not installed; the message says what to do.
    """
    kind, _, rest = name.partition(":")
    if kind in ("http", "https", "grpc", "grpcs"):
        return _remote(name, environment or {})
    if kind in ADAPTERS:
        return _adapter(ADAPTERS[kind], rest, cwd, dict(environment or {}))
    if rest and "/" not in kind:
        return _object(kind, rest, cwd)
    raise InvalidArgument(f"there is no runtime {name!r:.80}; there are {', '.join(NAMES)}")


def _remote(name: str, environment: Mapping[str, str]) -> RuntimeService:
    token, ca, plaintext = (environment.get(variable, "") for variable in OF_REMOTE)
    ca = ca if name.startswith(("https:", "grpcs:")) else ""  # A variable is for all of them.
    if name.startswith("http"):
        from arp.runtime.http_runtime import HttpRuntime

        return HttpRuntime(name, token=token, ca=ca, plaintext=plaintext == "1")
    kind, _, rest = name.partition("://")
    address = rest.rstrip("/")
    if kind not in ("grpc", "grpcs") or not address.rpartition(":")[2].isdigit():
        raise InvalidArgument(f"{name:.80}: write grpc://HOST:PORT or grpcs://HOST:PORT")
    try:
        from arp.runtime.grpc_runtime import GrpcRuntime
    except ModuleNotFoundError as missing:
        raise not_installed(missing, "grpc") from missing
    return GrpcRuntime(f"{kind}://{address}", token=token, ca=ca, plaintext=plaintext == "1")


def not_installed(missing: ModuleNotFoundError, extra: str) -> Unavailable:
    """Return the error for a package that an extra of this project installs."""
    return Unavailable(
        f'{missing.name} is not installed: pip install "agent-rendering-protocol[{extra}]"'
    )


def _adapter(
    adapter: Adapter, command: str, cwd: str | Path, environment: dict[str, str]
) -> RuntimeService:
    try:
        kind = getattr(importlib.import_module(adapter.module), adapter.kind)
    except ModuleNotFoundError as missing:
        raise not_installed(missing, adapter.extra) from missing
    options = {"command": shlex.split(command)} if adapter.kind == "AcpRuntime" else {}
    runtime: RuntimeService = kind(cwd=cwd, environment=environment, **options)
    return runtime


def _object(module: str, name: str, cwd: str | Path) -> RuntimeService:
    from arp.runtime.function import FunctionRuntime

    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as missing:
        raise InvalidArgument(f"{module}:{name}: {missing}") from missing
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        return FunctionRuntime(found, cwd=cwd)
    runtime = found() if isinstance(found, type) or inspect.isfunction(found) else found
    if not hasattr(runtime, "send_message"):
        raise InvalidArgument(f"{module}:{name} is no runtime, and makes none")
    checked: RuntimeService = runtime
    return checked
