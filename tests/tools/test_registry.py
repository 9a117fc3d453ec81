"""The registry: its format, its changes, and the endpoints of tools in their exact shapes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from arp.tools.errors import DataFileDamaged, InvalidToolMeta, ToolConflict, UnknownTool
from arp.tools.registry.models import RuntimeInfo, RuntimeType, ToolMeta, ToolStatus
from arp.tools.registry.registry import ToolRegistry, url_of
from tests.tools.test_models import TOOL


def named(tool_id: str, category: str = "general") -> ToolMeta:
    return ToolMeta(tool_id, tool_id.title(), category)


def test_a_file_of_the_document_is_read_and_written_unchanged(tmp_path: Path) -> None:
    """Section 2."""
    text = {"tools": [TOOL], "version": "1.0"}
    (tmp_path / "registry.json").write_text(json.dumps(text))
    registry = ToolRegistry(tmp_path)
    tool = registry.get("image_compress_api")
    assert tool.name == "图片压缩 API"
    registry.update("image_compress_api", lambda one: msgspec.structs.replace(one, name="x"))
    registry.update("image_compress_api", lambda one: msgspec.structs.replace(one, name=tool.name))
    assert json.loads(registry.path.read_text()) == text
    assert "图片压缩 API" in registry.path.read_text()


def test_an_empty_registry_has_a_version(tmp_path: Path) -> None:
    registry = ToolRegistry(tmp_path)
    assert registry.tools() == []
    registry.add(named("a"))
    assert json.loads(registry.path.read_text())["version"] == "1.0"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"tools": [], "version": "2.0"}, "version '2.0' is not known"),
        ({"tools": [TOOL, TOOL], "version": "1.0"}, "the same tool_id"),
        ({"tools": [{**TOOL, "tool_id": "../x"}], "version": "1.0"}, "tool_id"),
    ],
)
def test_what_no_registry_can_be_is_refused(tmp_path: Path, document: object, message: str) -> None:
    (tmp_path / "registry.json").write_text(json.dumps(document))
    for _ in range(2):
        with pytest.raises(DataFileDamaged, match=message):
            ToolRegistry(tmp_path).tools()


def test_tools_are_added_changed_and_removed(tmp_path: Path) -> None:
    registry = ToolRegistry(tmp_path)
    for tool in (named("b", "text"), named("a", "cv"), named("c", "text")):
        registry.add(tool)
    assert [tool.tool_id for tool in registry] == ["a", "b", "c"]
    with pytest.raises(ToolConflict, match="tool_id a is taken"):
        registry.add(named("a"))
    registry.add(named("a", "other"), replace=True)
    assert registry.get("a").category == "other"
    assert registry.remove("b").tool_id == "b"
    for missing in (registry.get, registry.remove, registry.get_endpoint):
        with pytest.raises(UnknownTool):
            missing("b")
    assert registry.find("b") is None
    assert registry.tools(ToolStatus.ACTIVE) == []


def test_fields_of_another_version_stay_with_their_tool(tmp_path: Path) -> None:
    ours = [named("a"), named("b")]
    written = [{**msgspec.to_builtins(tool), "owner": f"of {tool.tool_id}"} for tool in ours]
    (tmp_path / "registry.json").write_text(json.dumps({"tools": written, "version": "1.1"}))
    registry = ToolRegistry(tmp_path)
    registry.remove("a")
    registry.add(named("c"))
    tools = json.loads(registry.path.read_text())["tools"]
    assert [(tool["tool_id"], tool.get("owner")) for tool in tools] == [("b", "of b"), ("c", None)]


def test_many_changes_at_once_lose_nothing(tmp_path: Path) -> None:
    registry = ToolRegistry(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ToolRegistry(tmp_path).add(named(f"t{number}")), range(40)))
    assert len(registry.tools()) == 40


@pytest.mark.parametrize(
    "schema",
    [{"type": "no such type"}, {"properties": []}, {"pattern": "("}, {"pattern": "^(a+)+$"}],
)
def test_a_tool_with_a_schema_that_is_none_is_refused(tmp_path: Path, schema: object) -> None:
    tool = msgspec.structs.replace(named("x"), input_schema=schema)
    with pytest.raises(InvalidToolMeta, match="input_schema"):
        ToolRegistry(tmp_path).add(tool)


def endpoint(tmp_path: Path, runtime: RuntimeInfo) -> object:
    registry = ToolRegistry(tmp_path)
    registry.add(ToolMeta("x", "X", runtime=runtime))
    return registry.get_endpoint("x")


def test_the_endpoint_of_a_docker_tool_has_the_shape_of_the_document(tmp_path: Path) -> None:
    runtime = RuntimeInfo(
        type=RuntimeType.DOCKER,
        container_id="abc123...",
        host_dir="C:/staging/project",
        host_port=9001,
        internal_port=8080,
        endpoint_path="/api/compress",
    )
    assert endpoint(tmp_path, runtime) == {
        "type": "docker",
        "url": "http://localhost:9001/api/compress",
        "host_port": 9001,
        "internal_port": 8080,
        "container_id": "abc123...",
        "host_dir": "C:/staging/project",
        "http_method": "POST",
    }


def test_the_endpoint_of_a_local_tool_has_the_shape_of_the_document(tmp_path: Path) -> None:
    runtime = RuntimeInfo(host_dir="C:/tools/local/my_tool", host_port=9001)
    assert endpoint(tmp_path, runtime) == {
        "type": "local",
        "host_dir": "C:/tools/local/my_tool",
        "http_method": "POST",
        "endpoint_path": "/",
    }


@pytest.mark.parametrize(
    ("runtime", "url"),
    [
        (RuntimeInfo(host_port=9001, endpoint_path="run"), "http://localhost:9001/run"),
        (RuntimeInfo(), ""),
        (
            RuntimeInfo(type=RuntimeType.API, entry="https://x.example/v1/", endpoint_path="/a"),
            "https://x.example/v1/a",
        ),
        (RuntimeInfo(type=RuntimeType.API, entry="https://x.example"), "https://x.example"),
        (RuntimeInfo(type=RuntimeType.BROWSER, entry="https://x.example"), "https://x.example"),
    ],
)
def test_a_tool_has_the_address_at_which_it_is_called(runtime: RuntimeInfo, url: str) -> None:
    assert url_of(ToolMeta("x", "X", runtime=runtime)) == url
