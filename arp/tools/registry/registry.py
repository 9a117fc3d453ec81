"""`ToolRegistry`: all tools, in `registry.json`.

Source: internal_api.md 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import field

from arp.protocol.json_value import JsonObject
from arp.tools.errors import ToolConflict, UnknownTool
from arp.tools.registry.json_table import JsonTable, TableDocument
from arp.tools.registry.models import RuntimeType, ToolMeta, ToolStatus, check_tool_id
from arp.tools.registry.schemas import check_schemas

REGISTRY_FILE: Final = "registry.json"
VERSION: Final = "1.0"


class RegistryDocument(TableDocument[ToolMeta], frozen=True):
    """Content of `registry.json`."""

    rows: list[ToolMeta] = field(default_factory=list, name="tools")
    version: str = VERSION

    def __post_init__(self) -> None:
        if self.version.partition(".")[0] != "1":
            raise ValueError(f"version {self.version!r:.20} is not known; this is for version 1.x")
        ids = [tool.tool_id for tool in self.rows]
        if len(set(ids)) < len(ids):
            raise ValueError("two tools have the same tool_id")


class ToolRegistry:
    """Tools of one data directory; changes are on disk when a method returns.

    Safe to use from threads, tasks and processes at the same time.

    Args:
        data_dir: Directory of `registry.json`.
    """

    def __init__(self, data_dir: Path) -> None:
        self._table = JsonTable(
            data_dir / REGISTRY_FILE, RegistryDocument, key=lambda tool: tool.tool_id
        )

    @property
    def path(self) -> Path:
        """Path of `registry.json`."""
        return self._table.path

    def tools(self, status: ToolStatus | None = None) -> list[ToolMeta]:
        """Return all tools by category, and within a category in order of addition.

        Args:
            status: Status to select; `None` means all.

        Raises:
            DataFileDamaged: The registry cannot be read; it is not changed.
        """
        found = [tool for tool in self._table.rows() if status in (None, tool.status)]
        return sorted(found, key=lambda tool: tool.category)

    def find(self, tool_id: str) -> ToolMeta | None:
        """Return a tool, or `None` if no tool has this id."""
        return self._table.find(tool_id)

    def get(self, tool_id: str) -> ToolMeta:
        """Return a tool.

        Raises:
            UnknownTool: No tool has this id.
        """
        return _known(tool_id, self._table.find(tool_id))

    def add(self, tool: ToolMeta, replace: bool = False) -> ToolMeta:
        """Add a tool and return it.

        Args:
            tool: Tool to add.
            replace: Whether it may replace a tool with the same id.

        Raises:
            ToolConflict: The id is taken.
            InvalidToolMeta: The id is invalid, or a schema is not a JSON Schema.
        """
        check_tool_id(tool.tool_id)
        check_schemas(tool)
        if not self._table.add(tool, replace):
            raise ToolConflict(
                f"tool_id {tool.tool_id} is taken; choose another one, or replace it"
            )
        return tool

    def update(
        self, tool_id: str, change: Callable[[ToolMeta], ToolMeta], durable: bool = True
    ) -> ToolMeta:
        """Replace a tool with the result of `change`, and return the result.

        Args:
            tool_id: Id of the tool.
            change: Receives the current tool. If it raises, the exception is passed on and nothing
                has changed. It must not change the registry itself.
            durable: Whether the change must survive a loss of power; statistics need not.

        Raises:
            UnknownTool: No tool has this id.
        """
        return _known(tool_id, self._table.update(tool_id, change, durable))

    def remove(self, tool_id: str) -> ToolMeta:
        """Remove a tool and return it.

        Raises:
            UnknownTool: No tool has this id.
        """
        return _known(tool_id, next(iter(self._table.remove(tool_id)), None))

    def get_endpoint(self, tool_id: str) -> JsonObject:
        """Return how a tool is called, in the shape that the document defines for its runtime.

        Raises:
            UnknownTool: No tool has this id.
        """
        return endpoint_of(self.get(tool_id))

    def __iter__(self) -> Iterator[ToolMeta]:
        return iter(self.tools())


def endpoint_of(tool: ToolMeta) -> JsonObject:
    """Return how a tool is called.

    The result for `docker` and `local` has exactly the fields of the document. The document does
    not cover `api` and `browser`; their result has `type`, `url` and `http_method`.
    """
    runtime = tool.runtime
    if runtime.type is RuntimeType.DOCKER:
        return {
            "type": "docker",
            "url": url_of(tool),
            "host_port": runtime.host_port,
            "internal_port": runtime.internal_port,
            "container_id": runtime.container_id,
            "host_dir": runtime.host_dir,
            "http_method": runtime.http_method,
        }
    if runtime.type is RuntimeType.LOCAL:
        return {
            "type": "local",
            "host_dir": runtime.host_dir,
            "http_method": runtime.http_method,
            "endpoint_path": runtime.endpoint_path,
        }
    return {
        "type": str(runtime.type),
        "url": url_of(tool),
        "http_method": runtime.http_method,
    }


def url_of(tool: ToolMeta) -> str:
    """Return the URL at which a tool is called; empty if it is started for each call."""
    runtime = tool.runtime
    path = "/" + runtime.endpoint_path.lstrip("/")
    if runtime.type is RuntimeType.API:
        return runtime.entry.rstrip("/") + (path if path != "/" else "")
    if runtime.type is RuntimeType.BROWSER:
        return runtime.entry
    return f"http://localhost:{runtime.host_port}{path}" if runtime.host_port else ""


def _known(tool_id: str, found: ToolMeta | None) -> ToolMeta:
    """Return the tool that was found.

    Raises:
        UnknownTool: None was found.
    """
    if found is None:
        raise UnknownTool(f"there is no tool {tool_id!r:.140}; GET /tools lists all of them")
    return found
