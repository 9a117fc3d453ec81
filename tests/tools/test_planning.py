"""From words to an existing tool, or to the spec of a task."""

from __future__ import annotations

import pytest

from arp.tools.build.planning import existing_tool, name_for, spec_for
from arp.tools.registry.models import ToolMeta, ToolStatus
from arp.tools.tasks.task_specs import BuildTool, GithubDeploy

TOOLS = [
    ToolMeta(
        "image_compress_api", "图片压缩 API", "cv", "基于 PIL 的图片压缩", status=ToolStatus.ACTIVE
    ),
    ToolMeta("mailer", "Mailer", "mail", "Sends letters", status=ToolStatus.ACTIVE),
    ToolMeta("translator", "Translator", "text", "Translates text", status=ToolStatus.INACTIVE),
]


@pytest.mark.parametrize(
    ("request_text", "found"),
    [
        ("需要一个图片压缩工具", "image_compress_api"),
        ("I need a tool that compresses images", "image_compress_api"),
        ("please use mailer for this very long story about something else", "mailer"),
        ("send a letter", "mailer"),
        ("translate this text", None),
        ("需要一个文本摘要工具", None),
        ("resize images and compress nothing at all in the cloud", None),
        ("a tool, please", None),
    ],
)
def test_request_finds_the_active_tool_that_it_means(request_text: str, found: str | None) -> None:
    tool = existing_tool(request_text, TOOLS)
    assert (tool and tool.tool_id) == found


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("I need a tool that compresses images", "compresses_images"),
        ("Build me a tool: résumé → PDF!", "resume_pdf"),
        ("需要一个图片压缩工具", "tool_6e080caf"),
        ("../../etc/passwd; rm -rf /", "etc_passwd_rm_rf"),
    ],
)
def test_name_is_an_id_made_of_the_request(request_text: str, name: str) -> None:
    assert name_for(request_text) == name


def test_address_of_an_allowed_repository_is_a_project_to_deploy() -> None:
    text = "Deploy https://github.com/user/paper.folder.git, please."
    assert spec_for(text, ["github.com"], has_docker=True) == GithubDeploy(
        "https://github.com/user/paper.folder.git", "paper_folder", "docker", description=text
    )
    other = spec_for("See https://evil.example/user/project", ["github.com"], has_docker=True)
    assert isinstance(other, BuildTool)
    assert other.runtime == "uv"
