"""Task specs: the exact shapes of section 4; nothing in one is an option, a path or an address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arp.tools.errors import InvalidToolMeta, ToolRefused
from arp.tools.tasks.task_specs import (
    BuildTool,
    GithubDeploy,
    RepairTool,
    check_package,
    check_repo_url,
    task_spec_of,
    task_spec_text,
)

DOCUMENTED = [
    {
        "type": "github_deploy",
        "repo_url": "https://github.com/user/project",
        "tool_name": "project_api",
        "runtime": "docker",
        "image": "python:3.12-slim",
        "ports": [8080],
        "description": "将该项目部署为 HTTP API 工具",
        "requirements": {"gpu": False, "memory_mb": 512},
        "api_spec": {
            "endpoint_path": "/api/run",
            "http_method": "POST",
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
    },
    {
        "type": "build_tool",
        "tool_name": "text_summarizer_api",
        "runtime": "uv",
        "description": "编写一个文本摘要工具,接受文本输入,返回摘要",
        "requirements": {
            "gpu": False,
            "memory_mb": 256,
            "dependencies": ["transformers", "torch"],
        },
        "api_spec": {
            "endpoint_path": "/summarize",
            "http_method": "POST",
            "input_schema": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "待摘要文本"},
                    "max_length": {"type": "integer", "description": "摘要最大长度"},
                },
                "required": ["text"],
            },
        },
    },
    {
        "type": "repair_tool",
        "tool_id": "image_compress_api",
        "error": "HTTP 503: Service Unavailable",
        "container_id": "abc123...",
        "description": "工具健康检查失败,需要诊断并修复",
    },
]


@pytest.mark.parametrize("number", range(3))
def test_each_spec_of_the_document_round_trips_unchanged(number: int) -> None:
    spec = task_spec_of(json.dumps(DOCUMENTED[number]))
    assert type(spec) is [GithubDeploy, BuildTool, RepairTool][number]
    assert json.loads(task_spec_text(spec)) == DOCUMENTED[number]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"type": "rm_rf"}, "type"),
        ({"tool_name": "../../etc"}, "tool_id"),
        ({"tool_name": "--help"}, "tool_id"),
        ({"tool_name": "a; rm -rf /"}, "tool_id"),
        ({"runtime": "kernel"}, "runtime"),
        ({"requirements": {"dependencies": ["--index-url=https://evil"]}}, "dependencies"),
        ({"requirements": {"dependencies": ["git+https://evil/x"]}}, "dependencies"),
        ({"requirements": {"dependencies": ["./here"]}}, "dependencies"),
        ({"requirements": {"dependencies": ["x; os_name == 'nt'"]}}, "dependencies"),
        ({"requirements": {"memory_mb": -1}}, "memory_mb"),
        ({"api_spec": {"endpoint_path": "http://evil/"}}, "endpoint_path"),
        ({"api_spec": {"http_method": "TRACE"}}, "http_method"),
        ({"api_spec": {"input_schema": {"type": 7}}}, "input_schema"),
        ({"api_spec": {"input_schema": {"pattern": "^(a|a)*$"}}}, "pattern"),
        ({"description": "x" * 20_001}, "description"),
    ],
)
def test_field_that_could_be_abused_is_refused_by_name(
    change: dict[str, object], told: str
) -> None:
    spec = {"type": "build_tool", "tool_name": "x", **change}
    with pytest.raises(InvalidToolMeta, match=told):
        task_spec_of(json.dumps(spec))


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "[" * 200_000, '{"type":"build_tool"}'])
def test_text_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(InvalidToolMeta, match="task_spec"):
        task_spec_of(text)


@pytest.mark.parametrize("package", ["pillow", "pillow>=11", "uvicorn[standard]==0.30,!=0.29"])
def test_package_with_versions_is_one(package: str) -> None:
    assert check_package(package, "package") == package


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% /tmp/x",
        "--upload-pack=touch /tmp/x",
        "-oProxyCommand=touch",
        "git@github.com:user/project",
        "ssh://github.com/user/project",
        "git://github.com/user/project",
        "http://github.com/user/project",
        "file:///etc",
        "/etc",
        "https://user:secret@github.com/user/project",
        "https://github.com@evil.example/user/project",
        "https://github.com:8443/user/project",
        "https://github.com.evil.example/user/project",
        "https://evil.example/github.com/project",
        "https://github.com/user/../../x",
        "https://github.com/user/project?x=https://evil",
        "https://github.com/user/project#x",
        "https://github.com\\@evil.example/user/project",
        "https://github.com/user/project --config=x",
        "https://github.com/user/project\n--upload-pack=x",
        "HTTPS://GITHUB.COM/user/project",
        "https://xn--gthub-n4a.com/user/project",
        "",
    ],
)
def test_repository_that_is_none_of_an_allowed_host_is_refused(url: str) -> None:
    with pytest.raises(ToolRefused, match="repo_url"):
        check_repo_url(url, ["github.com"])


def test_repository_of_an_allowed_host_or_folder_is_cloned(tmp_path: Path) -> None:
    url = "https://github.com/user/project.git"
    assert check_repo_url(url, ["GitHub.com"]) == url
    inside = tmp_path / "allowed" / "repo"
    assert check_repo_url(str(inside), [], [tmp_path / "allowed"]) == str(inside)
    for outside in (tmp_path / "other", tmp_path / "allowed" / ".." / "other"):
        with pytest.raises(ToolRefused):
            check_repo_url(str(outside), [], [tmp_path / "allowed"])


def test_link_out_of_an_allowed_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "link").symlink_to("/etc")
    with pytest.raises(ToolRefused):
        check_repo_url(str(tmp_path / "allowed" / "link"), [], [tmp_path / "allowed"])
