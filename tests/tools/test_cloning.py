"""Repositories are cloned from allowed places alone, and run nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from arp.tools.build.cloning import cloned, copy_into
from arp.tools.errors import ToolCallFailed, ToolRefused
from arp.tools.projects.projects import LocalProjects
from tests.tools.house import settings_in

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.defpath}
AS = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")


def repository(folder: Path, files: dict[str, str]) -> Path:
    """A bare repository with some files and a link out of it."""
    work, bare = folder / "work", folder / "allowed" / "project.git"
    work.mkdir()
    for name, content in files.items():
        (work / name).write_text(content)
    (work / "link").symlink_to("/etc/passwd")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *AS, *words], cwd=work, env=GIT, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], env=GIT, check=True)
    return bare


async def test_files_of_a_repository_come_into_a_project_and_links_do_not(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    bare = repository(tmp_path, {"main.py": "print(1)", "notes.txt": "x"})
    projects = LocalProjects(settings_in(tmp_path))
    project = await projects.create("project")
    async with cloned(str(bare), [], [tmp_path / "allowed"]) as folder:
        scratch = folder
        assert copy_into(folder, projects, project) == 3  # git wrote the link as a small file
    assert not scratch.exists()
    assert (project / "main.py").read_text() == "print(1)"
    assert not (project / "link").is_symlink()
    assert not (project / ".git").exists()


async def test_hooks_and_filters_of_a_repository_do_not_run(tmp_path: Path) -> None:
    bare = repository(tmp_path, {".gitattributes": "* filter=evil", "a": "b"})
    mark = tmp_path / "owned"
    hook = bare / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    async with cloned(str(bare), [], [tmp_path / "allowed"]) as folder:
        assert (folder / "a").read_text() == "b"
    assert not mark.exists()


@pytest.mark.parametrize("url", ["ext::sh -c touch% owned", "--upload-pack=touch owned", "/etc"])
async def test_other_addresses_start_no_git(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolRefused):
        async with cloned(url, ["github.com"], [tmp_path / "allowed"]):
            """Not reached."""
    assert os.listdir(tmp_path) == []


async def test_folder_that_is_no_repository_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "allowed" / "none").mkdir(parents=True)
    with pytest.raises(ToolCallFailed, match="the repository cannot be cloned"):
        async with cloned(str(tmp_path / "allowed" / "none"), [], [tmp_path / "allowed"]):
            """Not reached."""
