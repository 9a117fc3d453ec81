"""What some apps need besides `arp`: runtimes, MCP servers, feedback, users of Django.

    from arp import App
    from arp.api import McpServer, LangGraphRuntime

These names stay where they are here; the modules that define them may move. A name is loaded when
it is asked for, so nothing that it needs has to be installed before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from arp.access.django import django_user
    from arp.protocol.errors import SessionNotFound, Unauthenticated
    from arp.protocol.messages import FileRef
    from arp.runtime.contract.errors import AriError
    from arp.runtime.contract.types import CreateSessionRequest, McpServer
    from arp.runtime.frameworks.ag_ui import AgUiRuntime as AgUiRuntime
    from arp.runtime.frameworks.langgraph import LangGraphRuntime as LangGraphRuntime
    from arp.runtime.frameworks.openai_agents import OpenAIAgentsRuntime as OpenAIAgentsRuntime
    from arp.runtime.frameworks.pydantic_ai import PydanticAIRuntime as PydanticAIRuntime
    from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
    from arp.runtime.programs.acp.acp import AcpRuntime
    from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
    from arp.runtime.programs.codex.codex import CodexRuntime
    from arp.runtime.remote.grpc_runtime import GrpcRuntime as GrpcRuntime
    from arp.runtime.remote.http_runtime import HttpRuntime
    from arp.runtime.turns.agent_sessions import RuntimeLimits
    from arp.runtime.turns.session_commands import RuntimeOffers
    from arp.tools.app.agent import ToolAgent as ToolAgent
    from arp.turn.feedback import Feedback

__all__ = [
    "AcpRuntime",
    "AriError",
    "ClaudeCodeOptions",
    "ClaudeCodeRuntime",
    "CodexRuntime",
    "CreateSessionRequest",
    "Feedback",
    "FileRef",
    "FunctionRuntime",
    "FunctionTurn",
    "HttpRuntime",
    "McpServer",
    "RuntimeLimits",
    "RuntimeOffers",
    "SessionNotFound",
    "Unauthenticated",
    "django_user",
]

_LATER: Final = {
    "AcpRuntime": "arp.runtime.programs.acp.acp",
    "AgUiRuntime": "arp.runtime.frameworks.ag_ui",
    "AriError": "arp.runtime.contract.errors",
    "ClaudeCodeOptions": "arp.runtime.programs.claude.claude_code",
    "ClaudeCodeRuntime": "arp.runtime.programs.claude.claude_code",
    "CodexRuntime": "arp.runtime.programs.codex.codex",
    "CreateSessionRequest": "arp.runtime.contract.types",
    "Feedback": "arp.turn.feedback",
    "FileRef": "arp.protocol.messages",
    "FunctionRuntime": "arp.runtime.plain.function",
    "FunctionTurn": "arp.runtime.plain.function",
    "GrpcRuntime": "arp.runtime.remote.grpc_runtime",
    "HttpRuntime": "arp.runtime.remote.http_runtime",
    "LangGraphRuntime": "arp.runtime.frameworks.langgraph",
    "McpServer": "arp.runtime.contract.types",
    "OpenAIAgentsRuntime": "arp.runtime.frameworks.openai_agents",
    "PydanticAIRuntime": "arp.runtime.frameworks.pydantic_ai",
    "RuntimeLimits": "arp.runtime.turns.agent_sessions",
    "RuntimeOffers": "arp.runtime.turns.session_commands",
    "SessionNotFound": "arp.protocol.errors",
    "ToolAgent": "arp.tools.app.agent",
    "Unauthenticated": "arp.protocol.errors",
    "django_user": "arp.access.django",
}
"""Where each name is defined."""

_EXTRAS: Final = {
    "AgUiRuntime": "ag-ui",
    "GrpcRuntime": "grpc",
    "LangGraphRuntime": "langgraph",
    "OpenAIAgentsRuntime": "openai-agents",
    "PydanticAIRuntime": "llm",
    "ToolAgent": "tools",
}
"""Extras that names need. They are not in `__all__`: `from arp.api import *` works without any."""


def names() -> dict[str, str]:
    """Return every public name, with the extra that it needs; empty: none."""
    return {name: _EXTRAS.get(name, "") for name in _LATER}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'arp.api' has no attribute {name!r}")
    try:
        return getattr(import_module(_LATER[name]), name)
    except ModuleNotFoundError as missing:
        if name not in _EXTRAS:
            raise
        install = f'pip install "agent-rendering-protocol[{_EXTRAS[name]}]"'
        what = f"{name} needs {missing.name}, which is not installed: {install}"
        raise ModuleNotFoundError(what, name=missing.name) from missing
