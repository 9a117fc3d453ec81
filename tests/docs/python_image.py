"""An image named `python:3.13-slim`, made of this machine's files, since no registry can be asked.

It has what the real one has for the page's Dockerfile: a shell with its tools, `useradd`, `python`
and `pip`. What differs: Python is the one of these tests, and the shell is busybox. The packages
that `pip install` needs lie in it as wheels, packed from the installed ones, and pip is told to
look there and nowhere else.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "python:3.13-slim"
CHANGES = (
    "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LD_LIBRARY_PATH=/usr/local/lib",
)
"""What the image says of itself, as that of a registry does."""

LEFT_OUT = ("site-packages", "test", "idlelib", "tkinter", "turtledemo", "lib2to3", "__pycache__")
RUN_PIP = "#!/usr/local/bin/python\nfrom pip._internal.cli.main import main\n\nmain()\n"
PIP = "[global]\nno-index = true\nfind-links = /wheels\ndisable-pip-version-check = true\n"
APPLETS = ("sh", "mkdir", "chown", "rm", "cat", "ls")
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shadow": "root:*:1:0:99999:7:::\n",
    "etc/login.defs": "UID_MIN 1000\nUID_MAX 60000\nUSERGROUPS_ENAB yes\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/pip.conf": PIP,
    "usr/local/bin/pip": RUN_PIP,
}


class Image:
    """A tar archive of a root file system, which grows."""

    def __init__(self) -> None:
        self._data = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._data, mode="w")  # noqa: SIM115 - closed in `bytes`
        self._names: set[str] = set()

    def add(self, path: Path, name: str) -> None:
        """Add a file or a link's target."""
        if name not in self._names:
            self._names.add(name)
            self._tar.add(path.resolve(), name, recursive=False)

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Add a file with this content."""
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), mode
        self._tar.addfile(info, io.BytesIO(content))

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        info = tarfile.TarInfo(name)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(info)

    def folder(self, name: str, mode: int = 0o755) -> None:
        """Add an empty folder."""
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(info)

    def bytes(self) -> bytes:
        """Return the archive."""
        self._tar.close()
        return self._data.getvalue()


def python_image() -> bytes:
    """Return the files of the image."""
    image = Image()
    for name, mode in (("tmp", 0o1777), ("root", 0o700), ("home", 0o755), ("wheels", 0o755)):
        image.folder(name, mode)
    for name, text in FILES.items():
        image.write(name, text.encode(), 0o755 if "/bin/" in name else 0o644)
    image.add(Path("/bin/busybox"), "bin/busybox")
    for applet in APPLETS:
        image.link(f"bin/{applet}", "busybox")
    useradd = Path("/usr/sbin/useradd")
    python = Path(sys.base_prefix) / "bin" / f"python{sysconfig.get_python_version()}"
    image.add(useradd, "usr/sbin/useradd")
    image.add(python, "usr/local/bin/python")
    image.link("usr/local/bin/python3", "python")
    standard = Path(sysconfig.get_path("stdlib"))
    for path in standard.rglob("*"):
        parts = path.relative_to(standard).parts
        is_left_out = set(LEFT_OUT) & set(parts) or parts[0].startswith("config-")
        if path.is_file() and not is_left_out:
            image.add(path, f"usr/local/lib/{standard.name}/{path.relative_to(standard)}")
    required = required_by("agent-rendering-protocol")
    extensions = [one for one in standard.glob("lib-dynload/*.so") if "tkinter" not in one.name]
    for package in required:
        files = map(str, package.files or ())
        extensions += [Path(str(package.locate_file(one))) for one in files if one.endswith(".so")]
    for library in libraries((useradd, python, *extensions)):
        # The home of root, where this Python may be, is closed to others.
        is_ours = library.is_relative_to(sys.base_prefix)
        image.add(library, f"usr/local/lib/{library.name}" if is_ours else str(library).lstrip("/"))
    (pip,) = standard.glob("ensurepip/_bundled/pip-*.whl")
    with zipfile.ZipFile(pip) as wheel:
        for name in wheel.namelist():
            image.write(f"usr/local/lib/{standard.name}/site-packages/{name}", wheel.read(name))
    for name, content in map(wheel_of, required):
        image.write(f"wheels/{name}", content)
    return image.bytes()


def libraries(programs: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that programs load, at the places where they look for them."""
    command = ["ldd", *map(str, programs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {Path(found) for found in re.findall(r"(?:=> |^\t)(/\S+)", done.stdout, re.MULTILINE)}


def required_by(root: str) -> list[Distribution]:
    """Return what a distribution requires without its extras, itself left out."""
    pending, seen = [(root, frozenset[str]())], {root}
    while pending:
        name, extras = pending.pop()
        for wanted in map(Requirement, distribution(name).requires or ()):
            marker, required = wanted.marker, canonicalize_name(wanted.name)
            applies = marker is None or any(marker.evaluate({"extra": x}) for x in ("", *extras))
            if applies and required not in seen:
                seen.add(required)
                pending.append((required, frozenset(wanted.extras)))
    return [distribution(name) for name in sorted(seen - {root})]


def wheel_of(installed: Distribution) -> tuple[str, bytes]:
    """Return an installed distribution as the wheel that it was: its name, and its content."""
    told = installed.read_text("WHEEL") or ""
    tag = re.findall(r"^Tag: (\S+)$", told, re.MULTILINE)
    name = re.sub(r"[-_.]+", "_", installed.metadata["Name"])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as wheel:
        for file in installed.files or ():
            is_its_own = not str(file).startswith("..") and not str(file).endswith(".pyc")
            if is_its_own and Path(str(file.locate())).is_file() and file.name != "direct_url.json":
                wheel.write(str(file.locate()), str(file))
    python, abi = tag[0].split("-")[:2]
    platform = ".".join(sorted({one.split("-")[2] for one in tag}))
    return f"{name}-{installed.version}-{python}-{abi}-{platform}.whl", data.getvalue()
