"""What makes tests with many projects cheaper."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from arp.tools.projects.project_table import Project
from arp.tools.projects.projects import LocalProjects


@pytest.fixture(scope="session")
def venvs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the first `.venv` of each Python is kept."""
    folder = tmp_path_factory.mktemp("venvs")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def copied_venvs(venvs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Projects get a copy of the first `.venv` that was made: uv needs 0.1 s of CPU time for each.

    Nothing in it but scripts for shells has the path of the project.
    """
    make = LocalProjects._make_venv

    async def copy_or_make(projects: LocalProjects, project: Project) -> None:
        made = projects.root / project.name / ".venv"
        kept = venvs / project.python.replace("/", "_")
        if not kept.exists():
            await make(projects, project)
            shutil.copytree(made, kept, symlinks=True)
            return
        shutil.copytree(kept, made, symlinks=True)
        if project.uid is not None:
            for path in (made, *made.rglob("*")):
                os.chown(path, project.uid, project.uid, follow_symlinks=False)

    monkeypatch.setattr(LocalProjects, "_make_venv", copy_or_make)
