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
    from arp.hub.feedback import Feedback
    from arp.protocol.errors import SessionNotFound, Unauthenticated
    from arp.protocol.messages import FileRef
    from arp.runtime.acp import AcpRuntime
    from arp.runtime.ag_ui import AgUiRuntime as AgUiRuntime
    from arp.runtime.agent_sessions import RuntimeLimits
    from arp.runtime.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
    from arp.runtime.codex import CodexRuntime
    from arp.runtime.errors import AriError
    from arp.runtime.function import FunctionRuntime, FunctionTurn
    from arp.runtime.grpc_runtime import GrpcRuntime as GrpcRuntime
    from arp.runtime.http_runtime import HttpRuntime
    from arp.runtime.langgraph import LangGraphRuntime as LangGraphRuntime
    from arp.runtime.openai_agents import OpenAIAgentsRuntime as OpenAIAgentsRuntime
    from arp.runtime.pydantic_ai import PydanticAIRuntime as PydanticAIRuntime
    from arp.runtime.session_commands import RuntimeOffers
    from arp.runtime.types import CreateSessionRequest, McpServer
    from arp.tool_agent.agent import ToolAgent as ToolAgent

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
    "AcpRuntime": "arp.runtime.acp",
    "AgUiRuntime": "arp.runtime.ag_ui",
    "AriError": "arp.runtime.errors",
    "ClaudeCodeOptions": "arp.runtime.claude_code",
    "ClaudeCodeRuntime": "arp.runtime.claude_code",
    "CodexRuntime": "arp.runtime.codex",
    "CreateSessionRequest": "arp.runtime.types",
    "Feedback": "arp.hub.feedback",
    "FileRef": "arp.protocol.messages",
    "FunctionRuntime": "arp.runtime.function",
    "FunctionTurn": "arp.runtime.function",
    "GrpcRuntime": "arp.runtime.grpc_runtime",
    "HttpRuntime": "arp.runtime.http_runtime",
    "LangGraphRuntime": "arp.runtime.langgraph",
    "McpServer": "arp.runtime.types",
    "OpenAIAgentsRuntime": "arp.runtime.openai_agents",
    "PydanticAIRuntime": "arp.runtime.pydantic_ai",
    "RuntimeLimits": "arp.runtime.agent_sessions",
    "RuntimeOffers": "arp.runtime.session_commands",
    "SessionNotFound": "arp.protocol.errors",
    "ToolAgent": "arp.tool_agent.agent",
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
