"""What a person allowed is what runs: everything in a project counts, however it is changed.

Real projects, without any package.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Unpack

import pytest

from arp.protocol.json_value import JsonObject
from arp.session.approval import ApprovalAnswer
from arp.tools.build.toolbox import Toolbox
from arp.tools.errors import ToolRefused
from arp.tools.projects.project_look import MAX_SHOWN, ProjectLook, look_at
from arp.tools.registry.models import ToolStatus
from arp.turn.approval.approval import Approval, PermissionOptions
from tests.tools.test_toolbox import ALWAYS, YES, Person, box_of, workbench

pytestmark = pytest.mark.usefixtures("copied_venvs")

SWAPPED = "import os; os.system('id')"
HIDDEN = [
    ".venv/lib/zz.pth",
    ".venv/bin/activate_this.py",
    ".venv/pyvenv.cfg",
    ".home/.config/uv/uv.toml",
    ".git/hooks/post-checkout",
    "__pycache__/helper.cpython-311.pyc",
    "node_modules/.bin/vite",
    "pkg/__pycache__/mod.cpython-311.pyc",
    "last_run.log",
]
TOOL = {
    "tool_id": "sly",
    "name": "Sly",
    "description": "Writes where it is asked to.",
    "runtime_type": "local",
    "host_port": 0,
    "internal_port": 0,
}
WRITES_WHERE_ASKED = (
    "import json, os, sys\n"
    "name = json.load(sys.stdin)['name']\n"
    "os.makedirs(os.path.dirname(os.path.abspath(name)), exist_ok=True)\n"
    f"open(name, 'w').write({SWAPPED!r})\n"
    "print('{}')\n"
)


class ThinkingPerson(Person):
    """A person during whose thinking something happens."""

    def __init__(self, *answers: ApprovalAnswer) -> None:
        super().__init__(*answers)
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def ask_permission(
        self, title: str, *, rule: str, input: JsonObject, **options: Unpack[PermissionOptions]
    ) -> Approval:
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().ask_permission(title, rule=rule, input=input, **options)


async def project_with(box: Toolbox, *names: str) -> Path:
    """A project of a task with these files, and a `main.py`."""
    made = await box.call("create_uv_project", {"name": "sly"}, Person())
    project = Path(str(made["project_dir"]))
    for name in ("main.py", *names):
        content = WRITES_WHERE_ASKED if name == "main.py" else "pass"
        await box.call("write_file", {"path": name, "content": content}, Person())
    return project


def running(project: Path, command: str = "python -c print(1)") -> JsonObject:
    return {"project_dir": str(project), "command": command}


def look(project: Path, most_bytes: int = 1 << 30) -> ProjectLook:
    return look_at(project, uid=None, readable=[], most_bytes=most_bytes)


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "swapped"])
@pytest.mark.parametrize("way", ["write_file", "by hand", "a tool"])
async def test_hidden_file_that_changes_under_an_open_question_is_not_run(
    tmp_path: Path, way: str, *, is_new: bool
) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), ThinkingPerson(*[YES] * (len(HIDDEN) + 1))
        project = await project_with(box, *([] if is_new else HIDDEN))
        if way == "a tool":
            await box.call("register_tool", TOOL, person)

        async def swap(name: str) -> None:
            if way == "write_file":
                await box.call("write_file", {"path": name, "content": SWAPPED}, Person())
            elif way == "a tool":  # approved before, and running while the question is open
                await service.call("sly", {"name": name})
            else:
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                (project / name).write_text(SWAPPED)

        # A call of the tool writes the log itself.
        for name in HIDDEN[:-1] if way == "a tool" else HIDDEN:
            person.meanwhile = partial(swap, name)
            with pytest.raises(ToolRefused, match="changed after they were shown"):
                await box.call("run_in_uv", running(project), person)
            assert (project / name).read_text() == SWAPPED
        assert person.runs == []


async def test_what_an_approved_command_changed_is_first_in_the_next_question(
    tmp_path: Path,
) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(YES, YES)
        project = await project_with(box)
        code = "open('.venv/lib/zz.pth', 'w').write('import x'); open('b.py', 'w')"
        command = f'python -c "{code}"'
        await box.call("run_in_uv", running(project, command), person)
        await box.call("run_in_uv", running(project), person)
        first, second = person.asked
        assert first.changed == ["main.py"]
        assert second.changed == [".venv/lib/zz.pth", "b.py", "last_run.log"]
        assert second.files[:3] == second.changed
        assert {"main.py", "pyproject.toml", ".venv/", "./"} <= set(second.files)
        assert second.files[-1] == "./"


async def test_time_and_size_that_were_set_back_hide_no_change(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), ThinkingPerson(YES)
        project = await project_with(box, ".venv/a.pth")
        path = project / ".venv/a.pth"

        async def swap() -> None:
            before = path.stat()
            path.write_text("fail")  # as long as before
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

        person.meanwhile = swap
        with pytest.raises(ToolRefused, match="changed after they were shown"):
            await box.call("run_in_uv", running(project), person)


async def test_files_of_a_mounted_project_count_for_a_container(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), ThinkingPerson(YES)
        project = await project_with(box)
        from arp.tools.registry.models import ContainerInfo

        service.containers.add(ContainerInfo("c" * 64, volumes={str(project): "/app"}))
        box.containers.add("c" * 64)

        async def swap() -> None:
            args = {"path": "main.py", "content": SWAPPED}
            await box.call("write_file", args, Person())

        person.meanwhile = swap
        command = {"container_id": "c" * 64, "command": "python /app/main.py"}
        with pytest.raises(ToolRefused, match="changed after they were shown"):
            await box.call("run_in_docker", command, person)
        assert "main.py" in person.asked[0].files


async def test_nothing_else_runs_in_a_project_while_a_question_about_it_is_open(
    tmp_path: Path,
) -> None:
    async with workbench(tmp_path) as service, AsyncExitStack() as ends:
        box = box_of(service)
        project = await project_with(box)
        asked, answered = asyncio.Event(), asyncio.Event()
        first, second = ThinkingPerson(YES), ThinkingPerson(YES)

        async def think() -> None:
            asked.set()
            await answered.wait()

        first.meanwhile = think
        one = asyncio.create_task(box.call("run_in_uv", running(project), first))
        ends.callback(one.cancel)
        await asked.wait()
        other = asyncio.create_task(box.call("run_in_uv", running(project), second))
        ends.callback(other.cancel)
        # A question of another project is asked meanwhile, so the second has had its chance.
        made = await box.call("create_uv_project", {"name": "calm"}, Person())
        await box.call("run_in_uv", running(Path(str(made["project_dir"]))), Person(YES))
        assert second.asked == []
        answered.set()
        await one
        await other
        assert len(second.asked) == 1


async def test_tool_whose_files_a_task_changes_is_off_until_it_is_registered_again(
    tmp_path: Path,
) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(YES, YES)
        await project_with(box)
        await box.call("register_tool", TOOL, person)
        assert service.registry.get("sly").status is ToolStatus.ACTIVE
        await box.call("write_file", {"path": "main.py", "content": "print('{}')"}, person)
        assert service.registry.get("sly").status is ToolStatus.STAGING
        await box.call("register_tool", TOOL, person)
        assert service.registry.get("sly").status is ToolStatus.ACTIVE
        assert (await service.call("sly", {})).result == {}


async def test_who_allowed_all_of_a_task_is_asked_no_more(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(ALWAYS)
        project = await project_with(box)
        await box.call("run_in_uv", running(project), person)
        await box.call("write_file", {"path": ".venv/x.pth", "content": "# 2"}, person)
        await box.call("run_in_uv", running(project), person)
        assert len(person.asked) == 1


# -- looks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pipe", ".venv/pipe", "main.py"])
async def test_pipe_in_a_project_is_refused_at_once_and_can_be_replaced(
    tmp_path: Path, name: str
) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(YES)
        project = await project_with(box)
        (project / name).unlink(missing_ok=True)
        os.mkfifo(project / name)
        async with asyncio.timeout(10):
            with pytest.raises(ToolRefused, match="pipe or a device"):
                await box.call("run_in_uv", running(project), person)
        await box.call("write_file", {"path": name, "content": "pass"}, person)
        await box.call("run_in_uv", running(project), person)


def test_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    before = look(tmp_path)
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")
    with pytest.raises(ToolRefused, match="pipe or a device"):
        look(tmp_path)
    (tmp_path / "a").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "a"))
        assert look(tmp_path) != before


def test_link_counts_with_what_it_leads_to(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    (project / "main.py").symlink_to(elsewhere)
    nothing = look(project)
    elsewhere.write_text("print(1)")
    first = look(project)
    elsewhere.write_text("print(2)")
    assert len({one.digest() for one in (nothing, first, look(project))}) == 3
    elsewhere.unlink()
    elsewhere.mkdir()
    with pytest.raises(ToolRefused, match="its content cannot be shown"):
        look(project)


def test_link_into_the_system_or_the_project_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib64").symlink_to("lib")
    (tmp_path / "bin").symlink_to("/usr/bin")
    assert set(look(tmp_path).entries) == {"lib", "lib64", "bin"}


def test_permissions_directories_and_names_that_are_no_text_count(tmp_path: Path) -> None:
    looks = [look(tmp_path)]
    (tmp_path / "a.sh").write_text("id")
    looks.append(look(tmp_path))
    (tmp_path / "a.sh").chmod(0o755)
    looks.append(look(tmp_path))
    (tmp_path / "empty").mkdir()
    looks.append(look(tmp_path))
    open(os.fsencode(tmp_path) + b"/\xff", "w").close()
    looks.append(look(tmp_path))
    assert len({one.digest() for one in looks}) == len(looks)
    assert "\\xff" in [row["path"] for row in looks[-1].rows(None)[0]]


def test_long_list_has_what_changed_first_and_a_digest_of_everything(tmp_path: Path) -> None:
    for number in range(MAX_SHOWN + 20):
        (tmp_path / f"{number:03}.py").write_text("pass")
    before = look(tmp_path)
    (tmp_path / "079.py").write_text("fail")
    after = look(tmp_path)
    rows, changed = after.rows(before)
    assert (changed, rows[0]["path"], len(rows)) == (1, "079.py", MAX_SHOWN + 1)
    assert rows[-1] == {"path": "./", "bytes": 4 * (MAX_SHOWN + 20), "sha256": after.digest()}
    assert rows[-1]["sha256"] != before.digest()


def test_project_that_nobody_could_look_at_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(3000))
    os.link(tmp_path / "big", tmp_path / "again")  # is read once
    assert len(look(tmp_path, most_bytes=4000).entries) == 2
    with pytest.raises(ToolRefused, match="cannot be approved"):
        look(tmp_path, most_bytes=2000)
    (tmp_path / "/".join("d" * 120)).mkdir(parents=True)
    with pytest.raises(ToolRefused, match="nested deeper"):
        look(tmp_path)
