"""Which files an input names, and what is noticed of them between the question and the answer."""

from __future__ import annotations

import os
import shlex
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from arp.turn.approval import named_files
from arp.turn.approval.named_files import SeenFiles, difference, recorded, seen_files


def nothing(_: str) -> bool:
    return False


async def seen(place: Path, tool_input: Any, *, is_command: bool = True) -> SeenFiles:
    return await seen_files(tool_input, str(place), nothing, is_command=is_command)


async def names(place: Path, command: str) -> set[str]:
    """Return the paths, below the place, of the files that a command names."""
    found = await seen(place, {"command": command})
    assert not found.problem
    return {str(Path(file.path).relative_to(place)) for file in found.files.values()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory with some scripts."""
    tmp_path = tmp_path.resolve()
    for name in ("run.sh", "x.py", "my script.sh", "sub/inner.sh", "sub/deep/d.sh"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"echo {name}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sh run.sh", {"run.sh"}),
        ("./run.sh --fast", {"run.sh"}),
        (".//run.sh;ls", {"run.sh"}),
        ("python x.py < run.sh", {"x.py", "run.sh"}),
        ("cat<run.sh&&true", {"run.sh"}),
        ("sh 'my script.sh'", {"my script.sh"}),
        (r"sh my\ script.sh", {"my script.sh"}),
        ("bash -lc 'sh run.sh'", {"run.sh"}),
        ("""sh -c 'bash -c "sh \\"my script.sh\\""'""", {"my script.sh"}),
        ("x=$(./run.sh)", {"run.sh"}),
        ("echo `./run.sh`", {"run.sh"}),
        ("(./run.sh)", {"run.sh"}),
        ("sh \\\n  run.sh", {"run.sh"}),
        ("env FILE=run.sh sh x", {"run.sh"}),
        ("make --file=run.sh", {"run.sh"}),
        ("make -frun.sh", {"run.sh"}),
        ("curl -d @run.sh http://127.0.0.1", {"run.sh"}),
        ("python -c \"exec(open('x.py').read())\"", {"x.py"}),
        ("pytest x.py::test_one", {"x.py"}),
        ("cd sub && ./inner.sh", {"sub/inner.sh"}),
        ("cd sub; cd deep; sh d.sh", {"sub/deep/d.sh"}),
        ("git -C sub apply inner.sh", {"sub/inner.sh"}),
        ("sh sub/../run.sh", {"run.sh"}),
        ("sh 'run.sh", {"run.sh"}),
        ("ls", set()),
        ("sh missing.sh", set()),
        ("cat sub", set()),
    ],
)
async def test_words_of_a_command_that_are_files(
    place: Path, command: str, expected: set[str]
) -> None:
    assert await names(place, command) == expected


async def test_words_are_found_wherever_the_input_has_them(place: Path) -> None:
    """As argv, in lists of objects, below a directory of the input, and as a plain path."""
    argv = await seen(place, {"argv": ["bash", "-lc", "sh run.sh"]}, is_command=False)
    assert [Path(path).name for path in argv.files] == ["run.sh"]
    below = await seen(place, {"command": "./inner.sh", "cwd": str(place / "sub")})
    assert [Path(file.path).name for file in below.files.values()] == ["inner.sh"]
    by_name = {"changes": {"x.py": {"type": "update"}}}
    changes = await seen(place, by_name, is_command=False)
    assert [Path(path).name for path in changes.files] == ["x.py"]
    edits = {"edits": [{"file_path": str(place / "x.py"), "new": "see run.sh"}]}
    edit = await seen(place, edits, is_command=False)
    assert [Path(path).name for path in edit.files] == ["x.py"]


async def test_home_is_the_users(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place / "sub"))
    assert await names(place, "sh ~/inner.sh") == {"sub/inner.sh"}


async def test_digest_is_that_of_the_content(place: Path) -> None:
    found = await seen(place, {"command": "sh run.sh; sh ./run.sh"})
    content = b"echo run.sh\n"
    path = str(place / "run.sh")
    expected = {"path": path, "bytes": 12, "sha256": sha256(content).hexdigest()}
    assert recorded(found) == [expected]


def rewrite(place: Path) -> None:
    (place / "run.sh").write_text("echo RUN.sh\n")


def replace(place: Path) -> None:
    (place / "new").write_text("rm -r .\n")
    os.replace(place / "new", place / "run.sh")


def remove(place: Path) -> None:
    (place / "run.sh").unlink()


def become_directory(place: Path) -> None:
    (place / "run.sh").unlink()
    (place / "run.sh").mkdir()


def link_elsewhere(place: Path) -> None:
    """The content is the same: a file elsewhere is another one all the same."""
    (place / "other").write_text("echo run.sh\n")
    (place / "run.sh").unlink()
    (place / "run.sh").symlink_to("other")


def swap_parent(place: Path) -> None:
    (place / "sub").rename(place / "was")
    (place / "sub").symlink_to("evil")


def appear(place: Path) -> None:
    (place / "later.sh").write_text("rm -r .\n")


def same_again(place: Path) -> None:
    replace(place)
    rewrite(place)
    (place / "run.sh").write_text("echo run.sh\n")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (rewrite, "run.sh changed after it was shown"),
        (replace, "run.sh changed after it was shown"),
        (remove, "run.sh vanished after it was shown"),
        (become_directory, "run.sh vanished after it was shown"),
        (link_elsewhere, "run.sh leads to another file after it was shown"),
        (swap_parent, "sub/inner.sh leads to another file after it was shown"),
        (appear, "later.sh appeared after it was shown"),
        (same_again, ""),
        (lambda _: None, ""),
    ],
)
async def test_changes_are_told_with_the_name_of_the_file(
    place: Path, change: Any, sentence: str
) -> None:
    (place / "evil").mkdir()
    (place / "evil" / "inner.sh").write_text("echo sub/inner.sh\n")
    command = {"command": "sh run.sh; sh sub/inner.sh; sh later.sh"}
    before = await seen(place, command)
    change(place)
    assert difference(before, await seen(place, command)) == sentence


async def test_several_changes_are_counted(place: Path) -> None:
    before = await seen(place, {"command": "cat run.sh x.py"})
    rewrite(place)
    (place / "x.py").unlink()
    told = difference(before, await seen(place, {"command": "cat run.sh x.py"}))
    assert told == "run.sh (and 1 more) changed after it was shown"


async def test_another_input_is_compared_where_both_name_a_file(place: Path) -> None:
    """Also under another name; what only the other one names is approved as it is then."""
    before = await seen(place, {"command": "sh run.sh"})
    (place / "x.py").write_text("import os\n")
    edited = {"command": f"sh {place}/run.sh; python x.py"}
    assert difference(before, await seen(place, edited)) == ""
    rewrite(place)
    assert "changed after" in difference(before, await seen(place, edited))
    assert difference(before, await seen(place, {"command": "python x.py"})) == ""


async def test_large_file_is_known_by_its_place_and_times(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its times can be set back, but not the one of its last change."""
    monkeypatch.setattr(named_files, "MAX_FILE_BYTES", 5)
    file = place / "run.sh"
    before = await seen(place, {"command": "sh run.sh"})
    assert recorded(before) == [{"path": str(file), "bytes": 12}]
    assert difference(before, await seen(place, {"command": "sh run.sh"})) == ""
    times = file.stat()
    file.write_text("echo RUN.sh\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = await seen(place, {"command": "sh run.sh"})
    assert difference(before, after) == "run.sh changed after it was shown"


async def test_files_together_are_read_up_to_a_limit(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files, "MAX_READ_BYTES", 12)
    found = await seen(place, {"command": "cat run.sh x.py"})
    assert ["sha256" in one for one in recorded(found)] == [True, False]


async def test_pipes_devices_and_files_of_the_kernel_are_no_files(place: Path) -> None:
    """A pipe that nobody writes to would wait for ever."""
    os.mkfifo(place / "pipe")
    found = await seen(place, {"command": "cat pipe /dev/zero /dev/tty /proc/uptime < /dev/null"})
    assert found.files == {}
    assert found.problem == ""


async def test_pipe_that_takes_the_place_of_a_file_is_noticed(place: Path) -> None:
    before = await seen(place, {"command": "sh run.sh"})
    (place / "run.sh").unlink()
    os.mkfifo(place / "run.sh")
    after = await seen(place, {"command": "sh run.sh"})
    assert difference(before, after) == "run.sh vanished after it was shown"


async def test_links_in_a_circle_and_names_that_cannot_be_are_no_files(place: Path) -> None:
    (place / "loop").symlink_to("loop")
    words = {"command": f"cat loop {'x' * 5000} {'a/' * 3000}"}
    assert (await seen(place, words)).files == {}
    assert (await seen(place, {"command": "a\0b"})).files == {}


async def test_too_many_words_or_directories_are_no_approval(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the one that matters would stand behind the last that is looked at."""
    monkeypatch.setattr(named_files, "MAX_WORDS", 20)
    many = await seen(place, {"command": shlex.join(f"w{number}" for number in range(30))})
    assert many.problem == "the input has more than 20 words"
    assert difference(many, many) == many.problem
    monkeypatch.setattr(named_files, "MAX_DIRECTORIES", 2)
    for number in range(3):
        (place / f"d{number}").mkdir()
    wide = await seen(place, {"command": "cd d0; cd ../d1; cd ../d2"})
    assert wide.problem == "the input names more than 2 directories"


async def test_look_that_takes_too_long_is_no_approval(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files, "LOOK_S", -1.0)
    found = await seen(place, {"command": "sh run.sh"})
    assert found.problem == "its files could not be read in time"


async def test_digest_of_a_file_with_a_secret_is_not_told(place: Path) -> None:
    """Who reads the ledger could try secrets with it; a change is noticed all the same."""
    (place / ".env").write_text("PIN=1234\n")

    def hides(text: str) -> bool:
        return "PIN" in text

    async def again() -> SeenFiles:
        return await seen_files({"command": "cat .env"}, str(place), hides, is_command=True)

    before = await again()
    assert recorded(before) == [{"path": str(place / ".env"), "bytes": 9}]
    (place / ".env").write_text("PIN=1235\n")
    assert difference(before, await again()) == ".env changed after it was shown"
