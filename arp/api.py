"""The public names besides `arp`: runtimes, MCP servers, parts of the client and of the Tool Agent.

    from arp import App
    from arp.api import McpServer, LangGraphRuntime

These names stay here; the modules that define them may move. A name is loaded on first use, so an
extra is needed only by the names that come from it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from arp.access.django import django_user
    from arp.client.callbacks import Callbacks
    from arp.client.errors import (
        ClientClosed,
        InvalidAddress,
        ServerRefused,
        ServerUnreachable,
        SessionDeleted,
        UploadUnavailable,
    )
    from arp.client.events import Connected, Disconnected, Skipped
    from arp.control.turns import StartTurn, TurnInput
    from arp.protocol.errors import ResourceLimit, SessionNotFound, Unauthenticated
    from arp.protocol.messages import (
        Commit,
        Delta,
        FileRef,
        Render,
        RendererCapabilities,
        TurnMessage,
    )
    from arp.runtime.contract import types as ari
    from arp.runtime.contract.driven import DrivenRuntime
    from arp.runtime.contract.errors import AriError
    from arp.runtime.contract.feed import PendingPermission, SessionFeed
    from arp.runtime.contract.task_runtime import TaskSession
    from arp.runtime.contract.types import CreateSessionRequest, McpServer
    from arp.runtime.frameworks.ag_ui import AgUiRuntime as AgUiRuntime
    from arp.runtime.frameworks.langgraph import LangGraphRuntime as LangGraphRuntime
    from arp.runtime.frameworks.openai_agents import OpenAIAgentsRuntime as OpenAIAgentsRuntime
    from arp.runtime.frameworks.pydantic_ai import PydanticAIRuntime as PydanticAIRuntime
    from arp.runtime.named import environment_of, named_runtime
    from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
    from arp.runtime.programs.acp.acp import AcpRuntime
    from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
    from arp.runtime.programs.codex.codex import CodexRuntime
    from arp.runtime.remote.grpc_runtime import GrpcRuntime as GrpcRuntime
    from arp.runtime.remote.http_gateway import HttpGateway
    from arp.runtime.remote.http_runtime import HttpRuntime
    from arp.runtime.turns.agent import RuntimeAgent
    from arp.runtime.turns.agent_sessions import RuntimeLimits
    from arp.runtime.turns.session_commands import RuntimeOffers
    from arp.server.login.own_secrets import RedactingFormatter
    from arp.surface.schema_form import form_of_schema
    from arp.tools.app.agent import ToolAgent as ToolAgent
    from arp.tools.build.callbacks import verify_callback as verify_callback
    from arp.tools.build.planning import existing_tool
    from arp.tools.service import ToolService as ToolService
    from arp.tools.settings import LiveSettings as LiveSettings
    from arp.tools.settings import ToolSettings as ToolSettings
    from arp.turn.approval.approval import RecheckResult, SecondLook
    from arp.turn.feedback import Feedback

__all__ = [
    "AcpRuntime",
    "AriError",
    "Callbacks",
    "ClaudeCodeOptions",
    "ClaudeCodeRuntime",
    "ClientClosed",
    "CodexRuntime",
    "Commit",
    "Connected",
    "CreateSessionRequest",
    "Delta",
    "Disconnected",
    "DrivenRuntime",
    "Feedback",
    "FileRef",
    "FunctionRuntime",
    "FunctionTurn",
    "HttpGateway",
    "HttpRuntime",
    "InvalidAddress",
    "McpServer",
    "PendingPermission",
    "RecheckResult",
    "RedactingFormatter",
    "Render",
    "RendererCapabilities",
    "ResourceLimit",
    "RuntimeAgent",
    "RuntimeLimits",
    "RuntimeOffers",
    "SecondLook",
    "ServerRefused",
    "ServerUnreachable",
    "SessionDeleted",
    "SessionFeed",
    "SessionNotFound",
    "Skipped",
    "StartTurn",
    "TaskSession",
    "TurnInput",
    "TurnMessage",
    "Unauthenticated",
    "UploadUnavailable",
    "ari",
    "django_user",
    "environment_of",
    "existing_tool",
    "form_of_schema",
    "named_runtime",
]

_LATER: Final = {
    "AcpRuntime": "arp.runtime.programs.acp.acp",
    "AgUiRuntime": "arp.runtime.frameworks.ag_ui",
    "AriError": "arp.runtime.contract.errors",
    "Callbacks": "arp.client.callbacks",
    "ClaudeCodeOptions": "arp.runtime.programs.claude.claude_code",
    "ClaudeCodeRuntime": "arp.runtime.programs.claude.claude_code",
    "ClientClosed": "arp.client.errors",
    "CodexRuntime": "arp.runtime.programs.codex.codex",
    "Commit": "arp.protocol.messages",
    "Connected": "arp.client.events",
    "CreateSessionRequest": "arp.runtime.contract.types",
    "Delta": "arp.protocol.messages",
    "Disconnected": "arp.client.events",
    "DrivenRuntime": "arp.runtime.contract.driven",
    "Feedback": "arp.turn.feedback",
    "FileRef": "arp.protocol.messages",
    "FunctionRuntime": "arp.runtime.plain.function",
    "FunctionTurn": "arp.runtime.plain.function",
    "GrpcRuntime": "arp.runtime.remote.grpc_runtime",
    "HttpGateway": "arp.runtime.remote.http_gateway",
    "HttpRuntime": "arp.runtime.remote.http_runtime",
    "InvalidAddress": "arp.client.errors",
    "LangGraphRuntime": "arp.runtime.frameworks.langgraph",
    "LiveSettings": "arp.tools.settings",
    "McpServer": "arp.runtime.contract.types",
    "OpenAIAgentsRuntime": "arp.runtime.frameworks.openai_agents",
    "PendingPermission": "arp.runtime.contract.feed",
    "PydanticAIRuntime": "arp.runtime.frameworks.pydantic_ai",
    "RecheckResult": "arp.turn.approval.approval",
    "RedactingFormatter": "arp.server.login.own_secrets",
    "Render": "arp.protocol.messages",
    "RendererCapabilities": "arp.protocol.messages",
    "ResourceLimit": "arp.protocol.errors",
    "RuntimeAgent": "arp.runtime.turns.agent",
    "RuntimeLimits": "arp.runtime.turns.agent_sessions",
    "RuntimeOffers": "arp.runtime.turns.session_commands",
    "SecondLook": "arp.turn.approval.approval",
    "ServerRefused": "arp.client.errors",
    "ServerUnreachable": "arp.client.errors",
    "SessionDeleted": "arp.client.errors",
    "SessionFeed": "arp.runtime.contract.feed",
    "SessionNotFound": "arp.protocol.errors",
    "Skipped": "arp.client.events",
    "StartTurn": "arp.control.turns",
    "TaskSession": "arp.runtime.contract.task_runtime",
    "ToolAgent": "arp.tools.app.agent",
    "ToolService": "arp.tools.service",
    "ToolSettings": "arp.tools.settings",
    "TurnInput": "arp.control.turns",
    "TurnMessage": "arp.protocol.messages",
    "Unauthenticated": "arp.protocol.errors",
    "UploadUnavailable": "arp.client.errors",
    "django_user": "arp.access.django",
    "environment_of": "arp.runtime.named",
    "existing_tool": "arp.tools.build.planning",
    "form_of_schema": "arp.surface.schema_form",
    "named_runtime": "arp.runtime.named",
    "verify_callback": "arp.tools.build.callbacks",
}
"""The module that defines each name."""

_MODULES: Final = {"ari": "arp.runtime.contract.types"}
"""The names that are modules: `ari` has the requests, responses and events of agent runtimes."""

_EXTRAS: Final = {
    "AgUiRuntime": "ag-ui",
    "GrpcRuntime": "grpc",
    "LangGraphRuntime": "langgraph",
    "LiveSettings": "tools",
    "OpenAIAgentsRuntime": "openai-agents",
    "PydanticAIRuntime": "llm",
    "ToolAgent": "tools",
    "ToolService": "tools",
    "ToolSettings": "tools",
    "verify_callback": "tools",
}
"""Extras that names need. They are not in `__all__`, so `from arp.api import *` works without."""


def names() -> dict[str, str]:
    """Return every public name, with the extra that it needs, or an empty string."""
    return {name: _EXTRAS.get(name, "") for name in (*_LATER, *_MODULES)}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _LATER:
        raise AttributeError(f"module 'arp.api' has no attribute {name!r}")
    try:
        return getattr(import_module(_LATER[name]), name)
    except Exception as error:
        # Without their packages, modules of `arp.tools` raise an error of their own from the
        # failed import; callers of this module expect `ModuleNotFoundError` for every extra.
        missing = error.__cause__ or error
        if name not in _EXTRAS or not isinstance(missing, ModuleNotFoundError):
            raise
        install = f'pip install "agent-rendering-protocol[{_EXTRAS[name]}]"'
        what = f"{name} needs {missing.name}, which is not installed: {install}"
        raise ModuleNotFoundError(what, name=missing.name) from missing
