"""`named_runtime`: the runtime for a name on the command line, such as `claude-code`."""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arp.runtime.contract.errors import InvalidArgument, Unavailable
from arp.runtime.contract.services import RuntimeService
from arp.store.location import path_of

if TYPE_CHECKING:
    from arp.runtime.contract.types import McpServer
    from arp.runtime.mcp.tools import McpTools
    from arp.turn.tool import ModelTools

NAMES = (
    "claude-code",
    "codex",
    "acp:COMMAND",
    "langgraph:MODULE:NAME",
    "openai-agents:MODULE:NAME",
    "pydantic-ai:MODULE:NAME",
    "ag-ui:URL",
    "grpc(s)://HOST:PORT",
    "http(s)://HOST:PORT",
    "MODULE:NAME",
)
"""Forms of names."""

OF_REMOTE = ("ARP_RUNTIME_TOKEN", "ARP_RUNTIME_CA", "ARP_RUNTIME_PLAINTEXT")
"""Variables with the settings of a remote client: its token, a file with authorities for TLS, and
whether the token may be sent without TLS."""

PASSED = (
    "HOME", "LANG", "LC_*", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "XDG_*",
)  # fmt: skip
"""Environment variables that every agent gets; they hold paths and settings, but no secrets of
other programs."""

OWN: dict[str, tuple[str, ...]] = {
    "grpc": OF_REMOTE,
    "grpcs": OF_REMOTE,
    "http": OF_REMOTE,
    "https": OF_REMOTE,
    "claude-code": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("CODEX_*", "OPENAI_*"),
    "acp": ("ANTHROPIC_*", "CURSOR_*", "GEMINI_*", "GOOGLE_*", "OPENAI_*", "OPENCODE_*", "QWEN_*"),
}
"""Further variables for each runtime: its own settings and keys."""


def environment_of(
    name: str, environment: Mapping[str, str], passed: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables that an agent's process gets, and no others.

    Args:
        name: Name of the runtime, in one of the forms of `NAMES`.
        environment: Environment of this process.
        passed: Names or patterns of further variables.
    """
    patterns = (*PASSED, *OWN.get(name.partition(":")[0], ()), *passed)
    return {
        key: value
        for key, value in environment.items()
        if any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
    }


class Adapter(NamedTuple):
    """Module and class of an adapter, which is imported only when it is used."""

    module: str
    kind: str
    extra: str
    """Extra that the adapter needs; empty if it needs none."""


ADAPTERS = {
    "claude-code": Adapter(
        "arp.runtime.programs.claude.claude_code", "ClaudeCodeRuntime", "claude"
    ),
    "codex": Adapter("arp.runtime.programs.codex.codex", "CodexRuntime", "codex"),
    "acp": Adapter("arp.runtime.programs.acp.acp", "AcpRuntime", ""),
}

FRAMEWORKS = {
    "langgraph": Adapter("arp.runtime.frameworks.langgraph", "LangGraphRuntime", "langgraph"),
    "openai-agents": Adapter(
        "arp.runtime.frameworks.openai_agents", "OpenAIAgentsRuntime", "openai-agents"
    ),
    "pydantic-ai": Adapter("arp.runtime.frameworks.pydantic_ai", "PydanticAIRuntime", "llm"),
    "ag-ui": Adapter("arp.runtime.frameworks.ag_ui", "AgUiRuntime", "ag-ui"),
}
PACKAGES = {"langgraph": "langgraph", "agents": "openai-agents", "pydantic_ai": "pydantic-ai"}
"""Framework of an object, by the package of its class."""


def runtime_for(agent: object, cwd: str | Path = ".") -> RuntimeService:
    """Return the runtime for an agent: a runtime itself, or one made for an agent of a framework.

    An agent that speaks AG-UI is `"ag-ui:URL"`, or a function with a `RunAgentInput` as parameter.

    Raises:
        InvalidArgument: The object is neither.
        Unavailable: A package that the framework's runtime needs is not installed.
    """
    if isinstance(agent, type):
        name = agent.__name__
        raise InvalidArgument(f"{name} is a class; give an object of it: app.runtime({name}(…))")
    if hasattr(agent, "send_message"):
        runtime: RuntimeService = agent  # type: ignore[assignment]  # as far as can be seen
        return runtime
    if isinstance(agent, str) and agent.startswith("ag-ui:"):
        return _load(FRAMEWORKS["ag-ui"])(agent.removeprefix("ag-ui:"), cwd=cwd)
    if callable(agent) and _takes_run_input(agent):
        return _load(FRAMEWORKS["ag-ui"])(agent, cwd=cwd)
    for kind in type(agent).__mro__:
        framework = PACKAGES.get(kind.__module__.partition(".")[0])
        if framework is not None:
            made: RuntimeService = _load(FRAMEWORKS[framework])(agent, cwd=cwd)
            return made
    if isinstance(agent, str):
        raise InvalidArgument(
            f"{agent!r:.60} is a text; give a runtime, such as ClaudeCodeRuntime(); names are for "
            "the command line: arp serve --runtime NAME"
        )
    known = ", ".join(FRAMEWORKS)
    raise InvalidArgument(
        f"{type(agent).__name__} is no runtime, and no agent of a framework ({known})"
    )


def _takes_run_input(function: Callable[..., Any]) -> bool:
    """Return whether a function runs an agent of AG-UI, according to its annotations."""
    if isinstance(function, type):
        return False
    annotations = getattr(function, "__annotations__", {})
    first = next((kind for name, kind in annotations.items() if name != "return"), None)
    name = first if isinstance(first, str) else getattr(first, "__name__", "")
    return name.rpartition(".")[2] == "RunAgentInput"


def keep_beside(ledger: str, runtimes: Iterable[RuntimeService]) -> None:
    """Store the sessions of runtimes beside the ledger, unless they have another directory."""
    path = path_of(ledger)
    for runtime in runtimes:
        keep_in = getattr(runtime, "keep_in", None)
        name = str(getattr(runtime, "name", "runtime"))
        if keep_in is not None:
            keep_in(None if path is None else Path(f"{path}.runtimes") / name)


def mcp_tools(servers: Sequence[str | McpServer]) -> McpTools:
    """Return the tools of MCP servers, which are not connected yet.

    Raises:
        Unavailable: The client of MCP is not installed; the message says what to do.
    """
    try:
        from arp.runtime.mcp.tools import McpTools
    except ModuleNotFoundError as missing:
        raise not_installed(missing, "mcp") from missing
    return McpTools(servers)


def model_named(
    model: str,
    *,
    base_url: str | None = None,
    instructions: str | Callable[[], str] = "",
    tools: Sequence[Callable[..., Any]] | ModelTools = (),
    mcp: Sequence[str | McpServer] = (),
) -> RuntimeService:
    """Return the runtime of a model with tools; see `frameworks.model_agent.model_runtime`.

    Raises:
        InvalidArgument: The model does not exist, or its key is missing.
        Unavailable: A package that it needs is not installed; the message says what to do.
    """
    made = _load(Adapter("arp.runtime.frameworks.model_agent", "model_runtime", "llm"))
    return made(model, base_url=base_url, instructions=instructions, tools=tools, mcp=mcp)


def _load(adapter: Adapter) -> Callable[..., RuntimeService]:
    try:
        found: Callable[..., RuntimeService] = getattr(
            importlib.import_module(adapter.module), adapter.kind
        )
    except ModuleNotFoundError as missing:
        raise not_installed(missing, adapter.extra) from missing
    return found


def named_runtime(
    name: str, *, cwd: str | Path = ".", environment: Mapping[str, str] | None = None
) -> RuntimeService:
    """Return a runtime by its name.

    Args:
        name: One of `NAMES`. For `MODULE:NAME` the object is a runtime, a class or function without
            parameters that makes one, or a function of turns, which becomes a `FunctionRuntime`.
        cwd: Directory that its agents work in.
        environment: Complete environment of their processes.

    Raises:
        InvalidArgument: No runtime has this name.
        Unavailable: A package that it needs is not installed; the message says what to do.
    """
    kind, _, rest = name.partition(":")
    if kind in ("http", "https", "grpc", "grpcs"):
        return _remote_runtime(name, environment or {})
    if kind in FRAMEWORKS and rest:
        given = rest if kind == "ag-ui" else _import_object(*_module_and_name(rest))
        return _load(FRAMEWORKS[kind])(given, cwd=cwd)
    if kind in ADAPTERS:
        return _make_adapter(ADAPTERS[kind], rest, cwd, dict(environment or {}))
    if rest and "/" not in kind:
        return _runtime_of_object(kind, rest, cwd)
    raise InvalidArgument(f"there is no runtime {name!r:.80}; there are {', '.join(NAMES)}")


def _remote_runtime(name: str, environment: Mapping[str, str]) -> RuntimeService:
    token, ca, plaintext = (environment.get(variable, "") for variable in OF_REMOTE)
    # One variable serves all remote runtimes, but those without TLS refuse a `ca`.
    ca = ca if name.startswith(("https:", "grpcs:")) else ""
    if name.startswith("http"):
        from arp.runtime.remote.http_runtime import HttpRuntime

        return HttpRuntime(name, token=token, ca=ca, plaintext=plaintext == "1")
    kind, _, rest = name.partition("://")
    address = rest.rstrip("/")
    if kind not in ("grpc", "grpcs") or not address.rpartition(":")[2].isdigit():
        raise InvalidArgument(f"{name:.80}: write grpc://HOST:PORT or grpcs://HOST:PORT")
    try:
        from arp.runtime.remote.grpc_runtime import GrpcRuntime
    except ModuleNotFoundError as missing:
        raise not_installed(missing, "grpc") from missing
    return GrpcRuntime(f"{kind}://{address}", token=token, ca=ca, plaintext=plaintext == "1")


def not_installed(missing: ModuleNotFoundError, extra: str) -> Unavailable:
    """Return the error for a package that an extra of this project installs."""
    return Unavailable(
        f'{missing.name} is not installed: pip install "agent-rendering-protocol[{extra}]"'
    )


def _make_adapter(
    adapter: Adapter, command: str, cwd: str | Path, environment: dict[str, str]
) -> RuntimeService:
    options = {"command": shlex.split(command)} if adapter.kind == "AcpRuntime" else {}
    return _load(adapter)(cwd=cwd, environment=environment, **options)


def _runtime_of_object(module: str, name: str, cwd: str | Path) -> RuntimeService:
    from arp.runtime.plain.function import FunctionRuntime

    found = _import_object(module, name)
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        return FunctionRuntime(found, cwd=cwd)
    made = found() if isinstance(found, type) or inspect.isfunction(found) else found
    try:
        return runtime_for(made, cwd)
    except InvalidArgument as error:
        raise InvalidArgument(f"{module}:{name}: {error.message}") from error


def _module_and_name(rest: str) -> tuple[str, str]:
    module, _, name = rest.partition(":")
    if not name:
        raise InvalidArgument(f"{rest!r:.80}: write MODULE:NAME, such as my_agents:graph")
    return module, name


def _import_object(module: str, name: str) -> Any:
    """Return an object of a module in the current directory or of an installed module."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as missing:
        raise InvalidArgument(f"{module}:{name}: {missing}") from missing
