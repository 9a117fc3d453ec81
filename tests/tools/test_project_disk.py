"""How much of the disk a project may use: real files, and real commands that write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arp.tools.errors import CapacityExceeded
from arp.tools.projects.project_disk import MIB, DiskLimit, DiskUse, disk_use
from arp.tools.projects.project_table import Project
from arp.tools.projects.projects import LocalProjects
from arp.tools.service import ToolService
from tests.tools.local_tools import settings_in
from tests.tools.test_toolbox import Person, box_of, workbench

pytestmark = pytest.mark.usefixtures("copied_venvs")

LIMIT_MB = 48
"""More than a new project has."""
FILLS = (
    "import sys, time\n"
    "for number in range(100):\n"
    "    with open(f'f{number}', 'wb') as file:\n"
    "        file.write(bytes(4 << 20))\n"
    "    print(number, flush=True)\n"
    "    time.sleep(0.02)\n"
)
REMOVES = (
    "import os, time\n"
    "held = []\n"
    "for number in range(100):\n"
    "    held.append(open('hidden', 'wb'))\n"
    "    os.unlink('hidden')\n"
    "    held[-1].write(bytes(4 << 20)); held[-1].flush(); time.sleep(0.02)\n"
    "print('all of it')\n"
)
MANY = "for number in range(100_000): open(f'm{number}', 'w').close()\nprint('all of it')\n"


async def a_project(service: ToolService) -> Project:
    return service.projects.project_of(await service.projects.create("full"))


@pytest.mark.parametrize("code", [FILLS, REMOVES], ids=["files", "removed and open"])
async def test_command_that_fills_the_disk_is_ended(tmp_path: Path, code: str) -> None:
    async with workbench(tmp_path, project_disk_mb=LIMIT_MB) as service:
        project = await a_project(service)
        service.projects.files(project).write("main.py", code)
        result = await service.projects.run(project.name, "python main.py", 60)
        assert result.exit_code != 0
        assert f"its limits are {LIMIT_MB} MiB and 200000 files" in result.stderr
        assert "99\n" not in result.stdout
        assert "all of it" not in result.stdout


async def test_command_that_makes_too_many_files_is_ended(tmp_path: Path) -> None:
    async with workbench(tmp_path, project_files=5_000) as service:
        project = await a_project(service)
        service.projects.files(project).write("main.py", MANY)
        result = await service.projects.run(project.name, "python main.py", 60)
        assert "its limits are 10240 MiB and 5000 files" in result.stderr
        assert "all of it" not in result.stdout


async def test_single_file_is_never_larger_than_the_limit(tmp_path: Path) -> None:
    async with workbench(tmp_path, project_disk_mb=LIMIT_MB) as service:
        project = await a_project(service)
        code = f"open('f', 'wb').truncate({(LIMIT_MB + 1) << 20}); print('done')"
        result = await service.projects.run(project.name, f'python -c "{code}"', 60)
        assert "done" not in result.stdout


async def test_full_project_takes_smaller_files_and_commands_that_clean_up(tmp_path: Path) -> None:
    async with workbench(tmp_path, project_disk_mb=LIMIT_MB) as service:
        box, person = box_of(service, asks=False), Person()
        made = await box.call("create_uv_project", {"name": "full"}, person)
        project = Path(str(made["project_dir"]))
        (project / "a").write_bytes(bytes(30 << 20))
        (project / "b").write_bytes(bytes(30 << 20))
        file = {"path": "c", "content": "x" * 9_000}
        with pytest.raises(CapacityExceeded, match=f"its limits are {LIMIT_MB} MiB"):
            await box.call("write_file", file, person)
        await box.call("write_file", {"path": "a", "content": "x"}, person)  # is smaller
        (project / "a").write_bytes(bytes(30 << 20))
        clean = {
            "project_dir": str(project),
            "command": "python -c \"__import__('os').remove('a')\"",
        }
        assert (await box.call("run_in_uv", clean, person))["exit_code"] == 0
        await box.call("write_file", file, person)


async def test_nothing_runs_in_a_project_that_is_far_above_its_limit(tmp_path: Path) -> None:
    async with workbench(tmp_path, project_disk_mb=LIMIT_MB) as service:
        project = await a_project(service)
        for name in "abcd":
            (service.projects.root / "full" / name).write_bytes(bytes(LIMIT_MB << 19))
        (service.projects.root / "full" / "e").write_bytes(bytes(LIMIT_MB << 19))
        with pytest.raises(CapacityExceeded, match="nothing may run in this project: full uses"):
            await service.projects.run(project.name, "python -c 1", 60)


def test_sparse_files_and_names_of_one_file_count_as_the_disk_holds_them(tmp_path: Path) -> None:
    empty = disk_use(tmp_path)
    assert empty == DiskUse(0, 0)
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    assert disk_use(tmp_path).bytes < MIB
    (tmp_path / "real").write_bytes(bytes(2 * MIB))
    for number in range(5):
        os.link(tmp_path / "real", tmp_path / f"again{number}")
    used = disk_use(tmp_path)
    assert used.files == 7
    assert 2 * MIB <= used.bytes < 3 * MIB
    DiskLimit(tmp_path, 4 * MIB, 8).check_room(DiskUse(MIB, 1))
    with pytest.raises(CapacityExceeded, match="uses 2 MiB of the disk in 7 files"):
        DiskLimit(tmp_path, 3 * MIB, 8).check_room(DiskUse(2 * MIB, 1))
    with pytest.raises(CapacityExceeded):
        DiskLimit(tmp_path, 4 * MIB, 7).check_room(DiskUse(0, 1))


def test_directories_without_end_are_no_way_around_the_limit(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 120)).mkdir(parents=True)
    with pytest.raises(CapacityExceeded, match="nested deeper"):
        DiskLimit(tmp_path, MIB, 8).for_a_run()


async def test_projects_have_the_limits_of_the_settings(tmp_path: Path) -> None:
    projects = LocalProjects(settings_in(tmp_path, project_disk_mb=7, project_files=123))
    limit = projects.disk_limit(Project("a"))
    assert limit == DiskLimit(projects.root / "a", 7 * MIB, 123)
